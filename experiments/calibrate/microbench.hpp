#pragma once
// Runs epocast_microbench, which times the kernels of training steps on this machine, and reads what it prints.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodels/kernel_measurements.hpp"
#include "sim/memory.hpp"
#include "sim/model.hpp"
#include "sim/precision.hpp"
#include "sim/quantity.hpp"

namespace epocast {

struct MeasureOptions {
  std::vector<std::string> models;  ///< as in a study: name, path, or "{name: resnet50, image: 64}"
  std::vector<std::int64_t> batches;
  int threads = 0;  ///< 0: as many as CPUs may be used
  Optimizer optimizer = Optimizer::sgd;
  Precision precision = Precision::fp32;  ///< others: with PyTorch
  bool steps = false;                     ///< execute whole steps too, between the rounds over kernels
  bool rates = true;                      ///< measure peak rate and memory bandwidth
  int least = 7;                          ///< repetitions
  int most = 60;                          ///< repetitions
  Seconds budget{600};                    ///< for all models and batch sizes; then fewer repetitions have to do
};

/// One kernel of a step, or a whole step.
struct MeasuredPass {
  std::string model;  ///< as in the options
  std::int64_t batch = 0;
  std::string layer;  ///< empty for a whole step
  std::string pass;   ///< "forward", ..., "backward" (both gradients), "gradient_sum", "update", "step"
  int kernel = 0;     ///< those with the same number do the same and were timed once
  int repetitions = 0;
  Seconds time;  ///< median
  Seconds fastest;
  double spread = 0;  ///< interquartile range over median
};

struct MeasuredKernels {
  std::string device, library, date, threads;
  std::optional<FlopPerSecond> peak_rate;
  std::optional<BytesPerSecond> memory_bandwidth;
  std::optional<double> units;
  std::vector<MeasuredPass> passes;
};

/// Runs the program beside this one. Throws ConfigError if it is not there or cannot do what is asked.
MeasuredKernels measure_steps(const MeasureOptions& options);

/// The kernels as calibration fits them, each distinct one once. `models` are those of the options.
KernelMeasurements to_kernel_measurements(const MeasuredKernels& measured, const std::vector<Model>& models,
                                          const MeasureOptions& options);

/// The passes of one model as a layer timings file (costmodels/timings_file.hpp). What normalisation does for both
/// gradients in one kernel is written half to each; sums of gradients count as backward_data of the layer whose output
/// has several readers. `fastest`: the fastest repetitions instead of the medians.
std::string to_layer_timings(const MeasuredKernels& measured, const Model& model, const std::string& spec,
                             bool fastest = false);

}  // namespace epocast
