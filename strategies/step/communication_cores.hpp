#pragma once
// Cores that communicate do not compute.

#include <optional>

#include "sim/strategy.hpp"

namespace epocast {

/// The option `communication_cores`: how many cores of a device a pinned communication thread takes away, or how many
/// streaming multiprocessors the kernels of collectives occupy.
class CommunicationCores {
 public:
  /// None.
  CommunicationCores() = default;
  explicit CommunicationCores(const ConfigNode& options);
  static ParameterInfo parameter();

  /// The workers' trace of a batch with every computation slowed down by cores / (cores - taken). What is bound by
  /// memory loses less in reality. Throws ConfigError if a device has no core left.
  WorkloadTrace slowed_trace(const StrategyContext& context, std::int64_t batch) const;
  /// What a strategy sees whose workers' computations are slowed down. `context` outlives it.
  StrategyContext slowed(const StrategyContext& context) const;

 private:
  double slowdown(const Device& device) const;

  std::optional<ConfigNode> options_;  ///< none without
  std::int64_t taken_ = 0;
};

}  // namespace epocast
