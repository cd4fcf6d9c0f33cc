#pragma once
// Lee 2020, "Scalable parallelization strategies for deep learning training" (Northwestern University).

#include "experiments/reproduce/target.hpp"

namespace epocast::lee2020 {

/// Overlap of two gradient chunks: VGG-A and its variants on up to 128 nodes.
Target chapter3();
/// Communication-efficient gradients: VGG-16 and ResNet-50 on up to 8192 cores.
Target chapter4();

}  // namespace epocast::lee2020
