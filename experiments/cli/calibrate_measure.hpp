#pragma once
// What `epocast calibrate compute` does without --from: times kernels on this machine.

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "costmodels/kernel_measurements.hpp"

namespace epocast {

struct MeasureArguments {
  std::vector<std::string> models;
  std::vector<std::int64_t> batches;
  int threads = 0;
  std::string optimizer = "sgd";
  std::string precision = "fp32";  ///< to time kernels in
  bool check = false;
  std::string kernels;  ///< "pytorch", "onednn"; empty: PyTorch's where it is installed
  std::string budget;   ///< empty: 10 min
  std::string kernel_list, layer_timings;
};

void add_measure_options(CLI::App& command, MeasureArguments& arguments);

/// Throws ConfigError if options are given that only mean something for measuring.
void check_not_measuring(const MeasureArguments& arguments);

/// Times the kernels of training steps; writes --layer-timings if asked to. Throws ConfigError.
KernelMeasurements measure_kernels(const MeasureArguments& arguments);

/// `--kernel-list` and `--check`; they return the exit code.
int list_kernels(const MeasureArguments& arguments);
int check_steps_here(const MeasureArguments& arguments);

}  // namespace epocast
