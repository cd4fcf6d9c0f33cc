#pragma once
// Lee 2020, "Scalable parallelization strategies for deep learning training" (Northwestern University).

#include "experiments/reproduce/target.hpp"

namespace epocast::lee2020 {

/// Overlap of two gradient chunks: VGG-A and its variants on up to 128 nodes.
Target chapter3();
/// Communication-efficient gradients: VGG-16 and ResNet-50 on up to 8192 cores.
Target chapter4();
/// Adaptive batch sizes: EDSR and ResNet-20 on up to 256 KNL nodes.
Target chapter5();
/// Equations 4.2 to 4.9 and table 4.1: messages and bytes of each step of chapter 4's exchanges.
Target equations();

}  // namespace epocast::lee2020
