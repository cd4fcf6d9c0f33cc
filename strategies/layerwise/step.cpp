#include "strategies/layerwise/step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "strategies/layerwise/pass_writer.hpp"

namespace epocast {
namespace {

/// What a device holds at its peak: the tiles it has as if they were its network, and what it is sent; of all
/// micro-batches under way, what is kept for their backward passes.
MemoryUse memory_of(int device, const LayerwisePlan& plan, TileTimes& times, Optimizer optimizer, int in_flight) {
  WorkloadTrace own = times.whole();
  Bytes received, kept;
  std::vector<bool> here(own.layers.size(), false);
  for (const Division& division : plan.divisions) {
    const int place = division.place_on(device);
    if (place < 0) continue;
    const auto p = static_cast<std::size_t>(place);
    for (const std::size_t l : division.op().layers) {
      own.layers[l] = times.trace(division.number(), l, division.tile(p));
      here[l] = true;
      kept += own.layers[l].kept_activations;
    }
    for (std::size_t i = 0; i < division.op().inputs.size(); ++i) {
      const OperatorInput& input = division.op().inputs[i];
      const Division& from = plan.divisions[input.from];
      Bytes values(static_cast<double>(division.needed(input, p).values()));
      if (const int source = from.place_on(device); source >= 0)
        values -= Bytes(static_cast<double>(
            intersection(from.held(static_cast<std::size_t>(source)), division.needed(input, p)).values()));
      received += values * plan.value_bytes;
    }
  }
  for (std::size_t l = 0; l < own.layers.size(); ++l) {
    LayerTrace& layer = own.layers[l];
    if (here[l] || layer.kind == LayerKind::input) continue;
    layer.times = {};
    layer.gradients.clear();
    layer.parameters = layer.frozen = layer.output = layer.kept_activations = layer.inner = layer.workspace =
        layer.recomputed = {};
  }
  MemoryUse use = replica_memory(own, optimizer);
  use.activations += received * in_flight + kept * (in_flight - 1);
  return use;
}

TrainingStep step_of(const StrategyContext& context, const LayerwisePlan& plan, TileTimes& times,
                     const LayerwiseSettings& settings) {
  TrainingStep step;
  step.input_shares = plan.divisions.front().degrees()[Dimension::n];
  PassWriter passes(context, plan, times, step.graph);
  passes.write();
  write_exchange(context, plan, settings, passes, step.graph);
  const std::vector<StageProgram> programs = plan.pipeline.programs();
  for (std::size_t d = 0; d < context.workers.size(); ++d) {
    const int in_flight = peak_in_flight(programs[plan.pipeline.stage_of_worker(d)]);
    const MemoryUse use = memory_of(static_cast<int>(d), plan, times, context.optimizer, in_flight);
    const auto alike = std::ranges::find_if(step.memory, [&](const DeviceMemory& other) {
      return other.use.total() == use.total() && other.use.moment == use.moment;
    });
    if (alike != step.memory.end())
      alike->devices.push_back(context.workers[d]);
    else
      step.memory.push_back({fmt::format("device {}", d), {context.workers[d]}, use});
  }
  return step;
}

}  // namespace

TrainingStep layerwise_step(const StrategyContext& context, const LayerwisePlan& plan, TileTimes& times,
                            const LayerwiseSettings& settings) {
  if (plan.tables.empty()) return step_of(context, plan, times, settings);
  StrategyContext own = context;
  own.trace = traces_with_tables(context, plan.tables);
  TileTimes of_copies(own, *plan.network);
  return step_of(own, plan, of_copies, settings);
}

}  // namespace epocast
