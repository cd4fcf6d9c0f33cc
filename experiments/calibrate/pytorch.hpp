#pragma once
// Times kernels on this machine with PyTorch, by workloads/microbench/pytorch_kernels.py.

#include <vector>

#include "costmodels/kernel_measurements.hpp"
#include "experiments/calibrate/microbench.hpp"
#include "sim/model.hpp"

namespace epocast {

/// Whether `python3` finds PyTorch.
bool pytorch_is_installed();

/// Runs the script for the kernels of `models`, which are those of the options. Throws ConfigError.
KernelMeasurements measure_pytorch_kernels(const std::vector<Model>& models, const MeasureOptions& options);

}  // namespace epocast
