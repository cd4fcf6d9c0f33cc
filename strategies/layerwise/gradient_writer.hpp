#pragma once
// How the gradients of parameters that several places hold are added up, and parameters updated, as tasks behind the
// passes of a step.

#include "strategies/layerwise/pass_writer.hpp"

namespace epocast {

struct LayerwiseSettings {
  GradientExchange exchange = GradientExchange::all_reduce;
  BytesPerSecond server_rate{0};  ///< of the server in host memory, there and back together
  bool overlap = true;            ///< gradients travel during the backward pass; else all after it
};

/// Adds exchanges and updates to a graph. REQUIRES: the passes have been written to it.
void write_exchange(const StrategyContext& context, const LayerwisePlan& plan, const LayerwiseSettings& settings,
                    PassWriter& passes, CyclicTaskGraph& graph);

}  // namespace epocast
