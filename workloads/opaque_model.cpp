#include "workloads/opaque_model.hpp"

#include <utility>

namespace epocast {
namespace {

constexpr double kMostParameters = 1e13;
constexpr double kMostTensors = 1e5;

/// One tensor whose multiplication stands for the layer: 2 FLOP per weight and sample in each of three passes.
Layer layer_of(int index, LayerKind kind, std::string name, std::int64_t values) {
  Layer layer;
  layer.name = std::move(name);
  layer.kind = kind;
  layer.inputs = {index - 1};
  layer.input = layer.output = Shape{.channels = 1};
  layer.input_values = 1;
  layer.forward_flop = kind == LayerKind::embedding ? 0 : 2 * static_cast<double>(values);
  layer.backward_data_flop = layer.forward_flop;
  layer.backward_weights_flop = 2 * static_cast<double>(values);
  layer.parameters = {{layer.name + ".weight", values}};
  layer.needs_gradient = true;
  layer.keeps_output = false;
  return layer;
}

}  // namespace

Model opaque_model(const ConfigNode& node) {
  Model model;
  model.name = node.at("opaque").as_string();
  model.description = "a network of which only the parameters are known";
  model.opaque = true;
  const std::int64_t parameters = node.at("parameters").as_int(Range{1, kMostParameters});
  const std::int64_t tensors = node.get("tensors", std::int64_t{100}, Range{1, kMostTensors});
  const std::int64_t last = node.get("last", std::int64_t{0}, Range{0, kMostParameters});
  node.check_all_read();
  if (last >= parameters)
    throw node.at("last").error("must be fewer than all parameters; leave it out if nothing waits for the end");
  const std::int64_t evenly = parameters - last;
  if (tensors > evenly) throw node.at("tensors").error("must be no more than the parameters that they hold");

  Layer input;
  input.name = "input";
  input.output = Shape{.channels = 1};
  model.layers.push_back(std::move(input));
  if (last > 0) model.layers.push_back(layer_of(1, LayerKind::embedding, "embeddings", last));
  for (std::int64_t t = 0; t < tensors; ++t)
    model.layers.push_back(layer_of(static_cast<int>(model.layers.size()), LayerKind::linear,
                                    "tensor_" + std::to_string(t + 1),
                                    evenly / tensors + (t < evenly % tensors ? 1 : 0)));
  return model;
}

}  // namespace epocast
