#pragma once
// The interface of compute-cost models. Implementations live in costmodels/, one pair of files each.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/registry.hpp"
#include "sim/workload_trace.hpp"

namespace epocast {

/// Kernels that the passes of a layer start.
struct PassKernels {
  double forward = 0, backward_data = 0, backward_weights = 0;
};

/// Predicts how long one device takes for one layer.
class CostModel {
 public:
  virtual ~CostModel() = default;

  /// Times for `batch` samples of `layer` on `device`.
  /// Throws ConfigError if the model has no data for this layer, batch or device.
  virtual PassTimes times(const Layer& layer, std::int64_t batch, const Device& device) const = 0;

  /// How many kernels the passes consist of whose times it gives; none where it does not know kernels.
  virtual PassKernels kernels(const Layer& /*layer*/, std::int64_t /*batch*/) const { return {}; }

  /// Whether it knows times of parts of layers, and not only of the network's layers by name.
  virtual bool knows_parts() const { return true; }

  /// Whether the loss of a network in 16 bits is worked out in fp32, so that its output and gradient have four bytes.
  virtual bool loss_in_fp32() const { return true; }

  /// What measurements the times are made from, as in "calibration 'v100'". Empty if none.
  virtual std::string basis() const { return {}; }

  /// What a user must know before trusting the answer for this batch size, e.g. that it is extrapolated. Usually empty.
  virtual std::vector<std::string> caveats(std::int64_t /*batch*/) const { return {}; }
  /// The same for times on this device, e.g. that they are those of another, scaled.
  virtual std::vector<std::string> device_caveats(const Device& /*device*/) const { return {}; }
};

using CostModelRegistry = Registry<CostModel>;

/// Applies a cost model to every layer of a network. Gradients, parameters and activations have bytes_per_value().
/// Throws ConfigError if batch < 1, SimulationError if the cost model returns a time that is negative or not finite.
WorkloadTrace make_trace(const Model& model, const CostModel& cost, std::int64_t batch, const Device& device,
                         Precision precision = Precision::fp32);

}  // namespace epocast
