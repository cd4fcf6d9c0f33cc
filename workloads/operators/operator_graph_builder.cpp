#include "workloads/operators/operator_graph_builder.hpp"

#include <algorithm>
#include <stdexcept>

#include "sim/config.hpp"
#include "workloads/operators/fusion.hpp"
#include "workloads/operators/gradients.hpp"
#include "workloads/operators/layer_operators.hpp"
#include "workloads/operators/updates.hpp"

namespace epocast {
namespace {

/// fp32, but for what comparisons give.
double value_bytes(const std::string& type) {
  return type == "Less" || type == "Greater" || type == "GreaterEqual" || type == "Equal" ? 1 : 4;
}
double input_bytes(const Dataflow& flow, const Tensor& input) {
  return value_bytes(flow.type_of(input.node)) * input.values;
}

/// Texts come in all lengths, so graphs that unroll nothing are built for any; recurrent ones for one length.
bool has_dynamic_shapes(const Model& model) {
  const auto has = [&](auto kind_is) {
    return std::any_of(model.layers.begin(), model.layers.end(), [&](const Layer& l) { return kind_is(l.kind); });
  };
  return has([](LayerKind k) { return k == LayerKind::attention; }) &&
         has([](LayerKind k) { return k == LayerKind::embedding; }) &&
         !has([](LayerKind k) { return k == LayerKind::lstm || k == LayerKind::e3d_lstm; });
}

bool is_effect(const Dataflow& flow, const DataflowNode& node) {
  return node.lifetime == Lifetime::reference && node.values == 0 && node.phase != OperatorPhase::setup &&
         flow.types()[node.type] != "NoOp";
}

/// What neither an assignment nor the loss needs does not run: a session prunes what it does not fetch, and the
/// dependency optimizer makes a NoOp of what others only wait for (grappler, SafeToConvertToNoOp), such as gradients of
/// constants that Optimizer.minimize has gated.
void mark_unused(Dataflow& flow, const Tensor& loss) {
  std::vector<DataflowNode>& nodes = flow.nodes();
  std::vector<char> needed(nodes.size(), 0);
  needed[static_cast<std::size_t>(loss.node)] = 1;
  for (std::size_t n = nodes.size(); n-- > 0;) {
    if (is_effect(flow, nodes[n])) needed[n] = 1;
    if (!needed[n]) continue;
    for (std::uint32_t i = nodes[n].in_begin; i < nodes[n].in_end; ++i) {
      const Tensor& input = flow.inputs()[i];
      if (input.values > 0 || flow.type_of(input.node) == "NoOp") needed[static_cast<std::size_t>(input.node)] = 1;
    }
  }
  for (std::size_t n = 0; n < nodes.size(); ++n)
    if (!needed[n] && nodes[n].phase != OperatorPhase::setup && flow.types()[nodes[n].type] != "VariableV2")
      nodes[n].phase = OperatorPhase::unused;
}

/// Makes each layer's passes cost what the model says, each node its share of the work.
std::vector<double> divide_flop(const Dataflow& flow, const Model& model, double batch) {
  struct Sum {
    double work = 0;
    std::size_t last = 0;
    bool any = false;
  };
  std::vector<Sum> sums[2];
  sums[0].resize(model.layers.size() + 1);
  sums[1].resize(model.layers.size() + 1);
  const auto pass = [](const DataflowNode& n) { return n.phase == OperatorPhase::forward ? 0U : 1U; };
  const auto counts = [](const DataflowNode& n) {
    return n.phase == OperatorPhase::forward || n.phase == OperatorPhase::backward;
  };
  const std::vector<DataflowNode>& nodes = flow.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!counts(nodes[i])) continue;
    Sum& sum = sums[pass(nodes[i])][nodes[i].layer];
    sum.work += nodes[i].work;
    sum.last = i;
    sum.any = true;
  }
  std::vector<double> flop(nodes.size(), 0);
  const auto target = [&](std::size_t p, std::size_t l) {
    if (l >= model.layers.size()) return 0.0;
    const Layer& layer = model.layers[l];
    return batch * (p == 0 ? layer.forward_flop : layer.backward_data_flop + layer.backward_weights_flop);
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!counts(nodes[i])) {
      if (nodes[i].phase == OperatorPhase::update) flop[i] = nodes[i].work;
      continue;
    }
    const Sum& sum = sums[pass(nodes[i])][nodes[i].layer];
    const double whole = target(pass(nodes[i]), nodes[i].layer);
    if (sum.work > 0)
      flop[i] = whole * (nodes[i].work / sum.work);
    else if (i == sum.last)
      flop[i] = whole;
  }
  return flop;
}

double bytes_read(const Dataflow& flow, const DataflowNode& node, const std::string& type) {
  if (node.moves_no_data) return 0;
  double bytes = 0;
  for (std::uint32_t i = node.in_begin; i < node.in_end; ++i) bytes += input_bytes(flow, flow.inputs()[i]);
  if (type == "GatherV2" || type == "StridedSlice" || type == "Slice")
    bytes = std::min(bytes, 2 * value_bytes(type) * node.values);  // only what goes on, and where to find it
  return bytes;
}

double bytes_written(const Dataflow& flow, const DataflowNode& node, const std::string& type) {
  if (node.moves_no_data || type == "VariableV2" || type == "Const") return 0;
  if (node.lifetime != Lifetime::reference) return value_bytes(type) * node.values;
  double bytes = 0;  // the variable and the optimizer's slots, which are passed as they lie in memory
  for (std::uint32_t i = node.in_begin; i < node.in_end; ++i) {
    const Tensor& input = flow.inputs()[i];
    if (flow.type_of(input.node) == "VariableV2") bytes += input_bytes(flow, input);
  }
  return bytes;
}

OperatorGraph compact(const Dataflow& flow, const Model& model, std::int64_t batch) {
  OperatorGraph out;
  out.model = model.name;
  out.batch = batch;
  out.operations = flow.types();
  for (const Layer& layer : model.layers) out.layers.push_back(layer.name);
  out.layers.emplace_back();
  out.flop = divide_flop(flow, model, static_cast<double>(batch));
  out.in_begin.push_back(0);
  for (const DataflowNode& node : flow.nodes()) {
    const std::string& type = flow.types()[node.type];
    out.operation.push_back(node.type);
    out.layer.push_back(node.layer);
    out.step.push_back(node.step);
    out.phase.push_back(node.phase);
    out.lifetime.push_back(node.lifetime);
    out.variable.push_back(node.variable);
    out.bytes_read.push_back(bytes_read(flow, node, type));
    out.bytes_written.push_back(bytes_written(flow, node, type));
    out.output_bytes.push_back(node.lifetime == Lifetime::reference ? 0 : value_bytes(type) * node.values);
    for (std::uint32_t i = node.in_begin; i < node.in_end; ++i) {
      out.producer.push_back(static_cast<std::uint32_t>(flow.inputs()[i].node));
      out.edge_bytes.push_back(static_cast<float>(input_bytes(flow, flow.inputs()[i])));
    }
    out.in_begin.push_back(static_cast<std::uint32_t>(out.producer.size()));
  }
  return out;
}

/// Layers that TensorFlow 1's programs did not have, which nobody has written down here as operations.
bool has_operations(const Layer& layer) {
  if (layer.kind == LayerKind::layer_norm) return layer.parameters.size() == 2;
  if (layer.kind == LayerKind::attention) return layer.kv_heads == layer.heads && layer.variant != "location";
  if (layer.kind == LayerKind::lstm)  // without what comes back from other layers
    return layer.parameters.front().values == 4 * layer.input.channels * layer.output.channels;
  for (const char* variant : {"rotary", "swiglu", "experts", "prepend"})
    if (layer.variant == variant) return false;
  return true;
}

}  // namespace

GradientUse parse_gradient_use(const std::string& word) {
  if (word == "minimize") return GradientUse::minimize;
  if (word == "direct") return GradientUse::direct;
  if (word == "clipped") return GradientUse::clipped;
  throw std::invalid_argument("unknown word '" + word + "'" + name_hint(word, {"minimize", "direct", "clipped"}));
}

OperatorGraph build_operator_graph(const Model& model, std::int64_t batch, const OperatorGraphOptions& options) {
  if (options.optimizer == Optimizer::lion || options.optimizer == Optimizer::lamb)
    throw ConfigError(std::string("optimizer '") + to_string(options.optimizer) +
                      "' is not known as operations of a graph; use sgd, momentum or adam");
  for (const Layer& layer : model.layers)
    if (!has_operations(layer))
      throw ConfigError("layer '" + layer.name + "' of model '" + model.name + "' (" +
                        (layer.variant.empty() ? to_string(layer.kind) : layer.variant) +
                        ") is not known as operations of a graph; use a model without it");
  Dataflow flow;
  const auto none = static_cast<std::uint32_t>(model.layers.size());
  for (DataflowNode& node : flow.nodes()) node.layer = none;
  flow.is_dynamic = has_dynamic_shapes(model);
  LayerOperators layers(flow, model, static_cast<double>(batch), options.fused_norms);
  for (std::size_t l = 0; l < model.layers.size(); ++l) layers.add(l);
  const Tensor loss = layers.add_losses(options.weight_decay);
  Tensors gradients = add_gradients(flow, loss, options.gradients == GradientUse::minimize);
  flow.layer = none;
  flow.phase = OperatorPhase::update;
  if (options.gradients == GradientUse::clipped) add_clipping(flow, gradients);
  add_updates(flow, gradients, options.optimizer);
  mark_unused(flow, loss);
  OperatorGraph graph = compact(flow, model, batch);
  return options.fused_kernels ? fuse_kernels(graph) : graph;
}

}  // namespace epocast
