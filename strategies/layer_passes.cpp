#include "strategies/layer_passes.hpp"

namespace epocast {
namespace {

template <class TimeOf>
LayerTasks add_pass(CyclicTaskGraph& graph, QueueId compute, const WorkloadTrace& trace, bool last_layer_first,
                    const char* operation, TimeOf time_of) {
  LayerTasks out;
  const std::size_t layers = trace.layers.size();
  out.position.assign(layers, -1);
  for (std::size_t k = 0; k < layers; ++k) {
    const std::size_t l = last_layer_first ? layers - 1 - k : k;
    const LayerTrace& layer = trace.layers[l];
    if (const Seconds time = time_of(layer); time.value > 0)
      out.tasks.push_back(graph.compute(compute, time, {operation, layer.name}));
    out.position[l] = static_cast<int>(out.tasks.size()) - 1;
  }
  return out;
}

}  // namespace

LayerTasks add_forward(CyclicTaskGraph& graph, QueueId compute, const WorkloadTrace& trace) {
  return add_pass(graph, compute, trace, false, "forward", [](const LayerTrace& l) { return l.times.forward; });
}

LayerTasks add_backward(CyclicTaskGraph& graph, QueueId compute, const WorkloadTrace& trace) {
  return add_pass(graph, compute, trace, true, "backward", [](const LayerTrace& l) { return l.times.backward(); });
}

}  // namespace epocast
