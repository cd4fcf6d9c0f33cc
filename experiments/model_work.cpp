#include "experiments/model_work.hpp"

#include <set>
#include <string_view>
#include <vector>

#include "costmodels/layer_kernels.hpp"
#include "sim/cost_model.hpp"

namespace epocast {
namespace {

/// What is forgotten does not depend on times.
class NoTime final : public CostModel {
 public:
  PassTimes times(const Layer& /*layer*/, std::int64_t /*batch*/, const Device& /*device*/) const override {
    return {};
  }
};

}  // namespace

std::int64_t tokens_per_sample(const Model& model) {
  std::int64_t tokens = 0;
  std::set<std::vector<int>> read;  // several tables may look up the same words: what they are, and in which sentence
  for (const Layer& layer : model.layers)
    if (layer.kind == LayerKind::embedding && layer.variant == "table" && read.insert(layer.inputs).second)
      tokens += layer.output.positions();
  return tokens;
}

ProductFlop product_flop(const Model& model, const MemorySettings& memory) {
  WorkloadTrace trace = make_trace(model, NoTime(), 1, Device());
  memory.apply(trace);
  ProductFlop out;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    double forward = 0;
    for (const LayerKernel& kernel : layer_kernels(model.layers[l], 1, KernelPass::forward))
      if (std::string_view(kernel.shape.family()) != "memory")
        forward += kernel.repeats * kernel_work(kernel.shape).flop;
    // Of a network's backward products, half make gradients of activations and half those of weights.
    const Layer& layer = model.layers[l];
    const int passes = !layer.needs_gradient ? 1 : layer.frozen ? 2 : 3;
    out.model += passes * forward;
    if (trace.layers[l].segment >= 0) out.recomputed += forward;
  }
  return out;
}

}  // namespace epocast
