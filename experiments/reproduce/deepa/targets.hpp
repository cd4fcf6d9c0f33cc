#pragma once
// DeePa: "Exploring the hidden dimension in accelerating convolutional neural networks", anonymous, under review 2017.

#include "experiments/reproduce/target.hpp"

namespace epocast::deepa {

/// Table 1: the convolutional layers of figures 1 and 2, in the shipped networks.
Target table_1();
/// Tables 2 and 3: equation 1 by the paper's rules, and what boxes over the platform's links would give.
Target table_2();
Target table_3();
/// All ratios that the text states: replayed, with equation 1 beside.
Target figures();
/// A.3: VGG-16 on four P100.
Target a3();
/// A.4: 21,841 classes.
Target imagenet22k();

}  // namespace epocast::deepa
