#include "strategies/layer_passes.hpp"

#include <algorithm>

#include "sim/error.hpp"

namespace epocast {

LayerPass add_forward(CyclicTaskGraph& graph, QueueId compute, const WorkloadTrace& trace, const PassOptions& options) {
  LayerPass pass;
  for (std::size_t l = 0; l < trace.layers.size(); ++l) {
    const LayerTrace& layer = trace.layers[l];
    if (options.hook) options.hook(l);
    pass.position.push_back(pass.tasks.size());
    if (layer.times.forward.any())
      pass.tasks.push_back(graph.compute(compute, layer.times.forward, {"forward", layer.name, options.micro_batch}));
  }
  if (pass.tasks.empty()) throw SimulationError("no layer of the network takes time in the forward pass");
  for (std::size_t& p : pass.position) p = std::min(p, pass.tasks.size() - 1);
  return pass;
}

namespace {

/// The second forward pass of a segment's layers.
void add_recompute(CyclicTaskGraph& graph, QueueId compute, const WorkloadTrace& trace, int segment, int micro_batch,
                   LayerPass& pass) {
  for (const LayerTrace& layer : trace.layers)
    if (layer.segment == segment && layer.times.recompute.any())
      pass.tasks.push_back(graph.compute(compute, layer.times.recompute, {"recompute", layer.name, micro_batch}));
}

}  // namespace

LayerPass add_backward(CyclicTaskGraph& graph, QueueId compute, const WorkloadTrace& trace,
                       const PassOptions& options) {
  LayerPass pass;
  pass.position.assign(trace.layers.size(), 0);
  for (std::size_t l = trace.layers.size(); l-- > 0;) {
    const LayerTrace& layer = trace.layers[l];
    const bool ends_segment =
        layer.segment >= 0 && (l + 1 == trace.layers.size() || trace.layers[l + 1].segment != layer.segment);
    if (ends_segment) add_recompute(graph, compute, trace, layer.segment, options.micro_batch, pass);
    if (const DeviceTime time = layer.times.backward_data + layer.times.backward_weights; time.any())
      pass.tasks.push_back(graph.compute(compute, time, {"backward", layer.name, options.micro_batch}));
    pass.position[l] = pass.tasks.empty() ? 0 : pass.tasks.size() - 1;
    if (options.hook) options.hook(l);
  }
  if (pass.tasks.empty()) throw SimulationError("no layer of the network takes time in the backward pass");
  return pass;
}

Bytes input_bytes(const WorkloadTrace& trace, std::size_t layer) {
  Bytes bytes;
  for (const int input : trace.layers[layer].inputs) bytes += trace.layers[static_cast<std::size_t>(input)].output;
  return bytes;
}

}  // namespace epocast
