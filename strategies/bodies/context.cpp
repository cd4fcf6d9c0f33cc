#include "strategies/bodies/context.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/bodies/layer_part.hpp"
#include "strategies/step/options.hpp"

namespace epocast {
namespace {

bool goes_by_position(const Layer& layer) {
  switch (layer.kind) {
    case LayerKind::input:
    case LayerKind::linear:
    case LayerKind::embedding:
    case LayerKind::layer_norm:
    case LayerKind::attention:
    case LayerKind::activation:
    case LayerKind::add:
    case LayerKind::concat:
    case LayerKind::multiply:
    case LayerKind::dropout:
    case LayerKind::softmax: return true;
    default: return false;
  }
}

void check(const Layer& layer, int parts, const ConfigNode& place) {
  const auto is_sequence = [](const Shape& shape) { return shape.height == 1 && shape.depth == 1 && shape.width > 1; };
  if (!goes_by_position(layer) || !is_sequence(layer.input) || !is_sequence(layer.output))
    throw place.error(fmt::format(
        "'{}' ({}) does not work position by position along a sequence, so a context axis cannot divide it; leave the "
        "axis out",
        layer.name, to_string(layer.kind)));
  for (const Shape& shape : {layer.input, layer.output})
    if (shape.width % parts != 0)
      throw place.error(fmt::format("a context axis of {} does not divide the {} positions of '{}'; use a divisor",
                                    parts, shape.width, layer.name));
}

/// Keys and values that a layer of attention reads: of one input, the heads that stand behind those of the queries.
double key_values(const Layer& layer) {
  const auto values = static_cast<double>(layer.input.values());
  if (layer.inputs.size() > 1) return static_cast<double>(layer.input_values) - values;
  const double heads = std::max(layer.heads, 1), shared = layer.kv_heads > 0 ? layer.kv_heads : heads;
  return values * 2 * shared / (heads + 2 * shared);
}

}  // namespace

ContextBody::ContextBody(const ConfigNode& options)
    : ring_(choose(options, "exchange", {{"ring", true}, {"all_gather", false}}, true)) {}

EntryInfo ContextBody::info() {
  return {"context",
          "sequences divided by positions over the axis `context`; keys and values go round",
          {{"exchange", "", "ring | all_gather", "ring",
            "keys and values come block by block while attention computes, or all before it"}}};
}

DividedModel ContextBody::divide(DividedModel model, int parts, const ConfigNode& place) const {
  const auto part = std::make_shared<Model>(*model.part);
  for (std::size_t l = 0; l < part->layers.size(); ++l) {
    Layer& layer = part->layers[l];
    check(layer, parts, place);
    SampleExchanges& own = model.exchanges[l];
    const auto add = [&](std::vector<SampleExchange>& to, const char* name, CollectiveOp op) {
      to.push_back({name, op, key_values(layer), false, &StageRanks::context});
    };
    if (layer.kind == LayerKind::attention) {
      add(ring_ ? own.during_forward : own.before_forward, "keys and values", CollectiveOp::all_gather);
      if (layer.needs_gradient) {
        add(ring_ ? own.during_backward : own.before_backward, "keys and values again", CollectiveOp::all_gather);
        add(ring_ ? own.during_backward : own.after_backward, "their gradients", CollectiveOp::reduce_scatter);
      }
    }
    layer.input.width /= parts;
    layer.output.width /= parts;
    for (std::int64_t* values : {&layer.input_values, &layer.inner_values, &layer.mask_values}) *values /= parts;
    scale_work(layer, 1.0 / parts);
  }
  model.part = part;
  return model;
}

}  // namespace epocast
