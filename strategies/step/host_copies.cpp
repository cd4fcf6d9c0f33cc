#include "strategies/step/host_copies.hpp"

#include <algorithm>

#include "strategies/step/stage_memory.hpp"

namespace epocast {
namespace {

/// What copies add to a pass.
DeviceTime wait_beside(const DeviceTime& computing, Seconds copying, const HostLink& link,
                       const StrategyContext& context) {
  if (!link.overlaps) return copying;
  const auto wait = [&](Seconds compute) { return std::max(Seconds(0), copying - compute); };
  if (computing.is_same()) return wait(computing.longest());
  return DeviceTime::each(context.kinds, [&](DeviceId device) { return wait(computing.on(device)); });
}

}  // namespace

Bytes stays_on_device(const HostLink& link, Bytes offloaded, int passes_under_way) {
  return std::min(offloaded, link.buffer / passes_under_way);
}

void take_out_copies(WorkloadTrace& trace) {
  for (LayerTrace& layer : trace.layers) {
    layer.times.forward = layer.times.forward - layer.times.copy_out;
    layer.times.backward_data = layer.times.backward_data - layer.times.copy_in;
    layer.times.copy_out = layer.times.copy_in = {};
  }
}

std::vector<WorkloadTrace> wait_for_copies(StepPlan& plan, const StrategyContext& context) {
  std::vector<WorkloadTrace> traces;
  for (const WorkloadTrace* trace : plan.traces) traces.push_back(*trace);
  const std::vector<int> under_way = passes_under_way(plan);
  for (Chunk& chunk : plan.chunks) {
    const auto stage = static_cast<std::size_t>(chunk.stage);
    const HostLink& link = traces[stage].host_link;
    if (!link.any() || !(chunk.offloaded.value > 0)) continue;
    const Seconds copying = (chunk.offloaded - stays_on_device(link, chunk.offloaded, under_way[stage])) / link.rate;
    DeviceTime backward = chunk.recompute + chunk.backward_data;
    if (!splits_backward(plan.schedule)) backward += chunk.backward_weights;
    const DeviceTime out = wait_beside(chunk.forward, copying, link, context);
    const DeviceTime in = wait_beside(backward, copying, link, context);
    chunk.forward += out;
    chunk.backward_data += in;
    Bytes received = chunk.offloaded;
    for (std::size_t l = chunk.first; l < chunk.last; ++l) received = received - traces[stage].layers[l].offloaded;
    for (std::size_t l = chunk.first; l < chunk.last; ++l) {
      LayerTrace& layer = traces[stage].layers[l];
      const double share = (layer.offloaded + (l == chunk.first ? received : Bytes(0))) / chunk.offloaded;
      layer.times.forward += out * share;
      layer.times.copy_out += out * share;
      layer.times.backward_data += in * share;
      layer.times.copy_in += in * share;
    }
  }
  for (std::size_t s = 0; s < traces.size(); ++s) plan.traces[s] = &traces[s];
  return traces;
}

}  // namespace epocast
