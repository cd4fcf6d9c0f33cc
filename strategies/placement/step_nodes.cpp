#include "strategies/placement/step_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <utility>

namespace epocast {
namespace {

constexpr double kKernelOverhead = 5e-6;   // s; engineering estimate, as operator_times.cpp
constexpr double kMemoryEfficiency = 0.8;  // as operator_times.cpp
constexpr double kBytesPerValue = 4;       // of operator graphs
constexpr std::array kPasses{OperatorPhase::forward, OperatorPhase::backward, OperatorPhase::update};

/// By what a pass's time is divided over its operations.
std::vector<double> weights_of(const OperatorGraph& operations, Precision precision, const Device& device) {
  std::vector<double> out(operations.size(), 0);
  const double rate = device.matrix_rate(precision).value, bandwidth = device.memory_bandwidth.value;
  for (std::size_t n = 0; n < out.size(); ++n) {
    if (!runs(operations.phase[n]) || operations.bytes_written[n] == 0) continue;
    const double bytes = operations.bytes_read[n] + operations.bytes_written[n];
    if (bytes < kHostBytes && operations.flop[n] == 0) continue;
    const double moving = bandwidth > 0 ? bytes / (kMemoryEfficiency * bandwidth) : 0;
    out[n] = kKernelOverhead + std::max(rate > 0 ? operations.flop[n] / rate : 0, moving);
  }
  return out;
}

DeviceTime time_of(const LayerTimes& layer, OperatorPhase pass) {
  switch (pass) {
    case OperatorPhase::forward: return layer.forward;
    case OperatorPhase::backward: return layer.backward();
    case OperatorPhase::update: return layer.update;
    case OperatorPhase::setup:
    case OperatorPhase::unused: break;
  }
  return {};
}

/// A pass without an operation that takes time is that of the layer's first operation, or of the step's.
std::size_t stand_in(const OperatorGraph& operations, std::size_t layer, OperatorPhase pass) {
  std::optional<std::size_t> of_layer, of_step;
  for (std::size_t n = 0; n < operations.size(); ++n) {
    if (!runs(operations.phase[n])) continue;
    if (!of_step) of_step = n;
    if (operations.layer[n] != layer) continue;
    if (operations.phase[n] == pass) return n;
    if (!of_layer) of_layer = n;
  }
  return of_layer.value_or(of_step.value_or(0));
}

void set_ticks(StepNodes& nodes) {
  for (std::size_t n = 0; n < nodes.times.size(); ++n) nodes.graph.time[n] = to_ticks(nodes.times[n].longest().value);
}

/// Values of so many times the bytes; parameters and the optimizer's state keep theirs, beside a copy of parameters
/// that is as large as their gradients.
void set_size(StepNodes& nodes, double size) {
  PlacementGraph& graph = nodes.graph;
  nodes.beside.assign(graph.size(), 0);
  for (double& bytes : graph.bytes) bytes *= size;
  for (std::size_t n = 0; n < graph.size(); ++n) {
    const double full = graph.memory[n];
    graph.memory[n] *= size;
    if (size < 1 && graph.lifetime[n] == Lifetime::residual) nodes.beside[n] = full - graph.memory[n];
  }
  if (size == 1) return;
  for (std::size_t e = 0; e < graph.edges(); ++e)
    if (nodes.phases[graph.from[e]] == OperatorPhase::backward && nodes.phases[graph.to[e]] == OperatorPhase::update)
      nodes.beside[graph.to[e]] += graph.bytes[e];
}

/// Writes pass_nodes().
class Passes {
 public:
  Passes(const WorkloadTrace& trace, Optimizer optimizer)
      : layers_(trace.layers),
        state_(optimizer_share(optimizer, trace)),
        forward_(layers_.size()),
        owner_(layers_.size()),
        parameters_(layers_.size()),
        arrived_(layers_.size()) {}

  StepNodes write() {
    for (std::size_t l = 0; l < layers_.size(); ++l) forward(l);
    for (std::size_t l = layers_.size(); l-- > 0;) backward(l);
    out_.graph.groups = groups_;
    out_.graph.set_edges(edges_);
    out_.beside.assign(out_.graph.size(), 0);
    set_ticks(out_);
    return std::move(out_);
  }

 private:
  using Node = std::uint32_t;
  struct Arrival {
    Node from;
    double bytes;
  };

  Node add(const char* what, const LayerTrace& layer, OperatorPhase phase, const DeviceTime& time, Bytes memory,
           Lifetime lifetime = Lifetime::normal, std::int32_t group = -1) {
    out_.graph.add_node(0, memory.value, lifetime, group);
    out_.times.push_back(time);
    out_.names.push_back(fmt::format("{} {}", what, layer.name));
    out_.phases.push_back(phase);
    return static_cast<Node>(out_.graph.size() - 1);
  }
  void connect(Node from, Node to, Bytes bytes) { edges_.push_back({from, to, bytes.value}); }

  /// The output is the input's memory under another shape.
  static bool is_view(const LayerTrace& layer) { return layer.kind == LayerKind::flatten && layer.inputs.size() == 1; }
  static std::size_t shown_by(const LayerTrace& view) { return static_cast<std::size_t>(view.inputs.front()); }

  void forward(std::size_t l) {
    const LayerTrace& layer = layers_[l];
    if (is_view(layer)) return forward_view(l);
    owner_[l] = l;
    if (layer.parameters.value > 0)
      parameters_[l] =
          add("parameters", layer, OperatorPhase::setup, {}, layer.parameters, Lifetime::residual, groups_++);
    forward_[l] = add("forward", layer, OperatorPhase::forward, layer.times.forward, layer.output + layer.inner);
    if (parameters_[l]) connect(*parameters_[l], forward_[l], layer.parameters);
    read_inputs(forward_[l], layer);
  }

  /// Only waits for what it shows.
  void forward_view(std::size_t l) {
    const LayerTrace& view = layers_[l];
    const std::size_t shown = shown_by(view);
    forward_[l] = add("forward", view, OperatorPhase::forward, view.times.forward, {});
    owner_[l] = owner_[shown];
    connect(forward_[shown], forward_[l], {});
  }

  void read_inputs(Node node, const LayerTrace& layer) {
    for (const int input : layer.inputs) {
      const auto i = static_cast<std::size_t>(input);
      connect(forward_[owner_[i]], node, layers_[i].output);
      if (owner_[i] != i) connect(forward_[i], node, {});
    }
  }

  void backward(std::size_t l) {
    const LayerTrace& layer = layers_[l];
    if (is_view(layer)) return backward_view(l);
    if (!layer.inputs.empty()) {
      const Node node =
          add("backward data", layer, OperatorPhase::backward, layer.times.backward_data, gradient_of_inputs(layer));
      reads(node, l);
      if (parameters_[l]) connect(*parameters_[l], node, layer.parameters);
      for (const int input : layer.inputs) {
        const auto i = static_cast<std::size_t>(input);
        arrived_[i].push_back({node, sends_gradient(layer, i) ? layers_[i].output.value : 0});
      }
    }
    if (!parameters_[l] && !layer.times.backward_weights.any() && !layer.times.update.any()) return;
    Bytes gradients;
    for (const GradientTensor& tensor : layer.gradients) gradients += tensor.bytes;
    const Node made = add("backward weights", layer, OperatorPhase::backward, layer.times.backward_weights, gradients);
    reads(made, l);
    const std::int32_t group = parameters_[l] ? out_.graph.group[*parameters_[l]] : -1;
    std::optional<Node> state;
    if (parameters_[l] && state_ > 0)
      state = add("state", layer, OperatorPhase::setup, {}, layer.parameters * state_, Lifetime::residual, group);
    const Node update = add("update", layer, OperatorPhase::update, layer.times.update, {}, Lifetime::reference, group);
    connect(made, update, gradients);
    if (parameters_[l]) connect(*parameters_[l], update, layer.parameters);
    if (state) connect(*state, update, layer.parameters * state_);
  }

  /// The gradients of a view are those of what it shows.
  void backward_view(std::size_t l) {
    const LayerTrace& view = layers_[l];
    const std::size_t shown = shown_by(view);
    const Node node = add("backward data", view, OperatorPhase::backward, view.times.backward_data, {});
    connect(forward_[l], node, {});
    for (const Arrival& arrival : arrived_[l]) {
      edges_.push_back({arrival.from, node, 0});
      if (sends_gradient(view, shown)) arrived_[shown].push_back(arrival);
    }
    arrived_[shown].push_back({node, 0});
  }

  /// What a backward pass waits for: gradients of the layer's output, and values of the forward pass.
  void reads(Node node, std::size_t l) {
    const LayerTrace& layer = layers_[l];
    for (const Arrival& arrival : arrived_[l]) edges_.push_back({arrival.from, node, arrival.bytes});
    connect(forward_[l], node, (layer.backward_reads_output ? layer.output : Bytes(0)) + layer.inner);
    if (layer.backward_reads_input) read_inputs(node, layer);
  }

  bool sends_gradient(const LayerTrace& layer, std::size_t input) const {
    return layer.times.backward_data.any() || layers_[input].needs_gradient;
  }
  Bytes gradient_of_inputs(const LayerTrace& layer) const {
    Bytes out;
    for (const int input : layer.inputs) {
      const auto i = static_cast<std::size_t>(input);
      if (sends_gradient(layer, i)) out += layers_[i].output;
    }
    return out;
  }

  const std::vector<LayerTrace>& layers_;
  double state_;  ///< bytes of the optimizer's state for a byte of parameters
  StepNodes out_;
  std::int32_t groups_ = 0;
  std::vector<PlacementEdge> edges_;
  std::vector<Node> forward_;                    ///< by layer
  std::vector<std::size_t> owner_;               ///< by layer: the one in whose memory its output is
  std::vector<std::optional<Node>> parameters_;  ///< by layer
  std::vector<std::vector<Arrival>> arrived_;    ///< by layer: parts of its output's gradient
};

}  // namespace

StepNodes operation_nodes(const OperatorGraph& operations, const WorkloadTrace& trace, const Device& device) {
  assert(operations.batch == trace.batch);
  std::vector<double> weights = weights_of(operations, trace.precision, device);
  StepNodes out;
  out.times.resize(operations.size());
  std::vector<std::array<double, kPasses.size()>> sums(trace.layers.size(), {0, 0, 0});
  const auto pass_of = [&](std::size_t n) {
    return static_cast<std::size_t>(std::ranges::find(kPasses, operations.phase[n]) - kPasses.begin());
  };
  const auto is_of_layer = [&](std::size_t n) {
    return runs(operations.phase[n]) && operations.layer[n] < trace.layers.size();
  };
  for (std::size_t n = 0; n < operations.size(); ++n)
    if (is_of_layer(n)) sums[operations.layer[n]][pass_of(n)] += weights[n];
  for (std::size_t n = 0; n < operations.size(); ++n)
    if (is_of_layer(n) && weights[n] > 0)
      out.times[n] = time_of(trace.layers[operations.layer[n]].times, operations.phase[n]) *
                     (weights[n] / sums[operations.layer[n]][pass_of(n)]);
  for (std::size_t l = 0; l < trace.layers.size(); ++l)
    for (std::size_t p = 0; p < kPasses.size(); ++p)
      if (const DeviceTime time = time_of(trace.layers[l].times, kPasses[p]); sums[l][p] == 0 && time.any())
        out.times[stand_in(operations, l, kPasses[p])] += time;

  out.phases = operations.phase;
  out.graph = placement_graph(operations, std::vector<double>(operations.size(), 0));
  set_ticks(out);
  set_size(out, bytes_per_value(trace.precision) / kBytesPerValue);
  for (std::size_t n = 0; n < operations.size(); ++n) out.names.push_back(node_name(operations, n));
  return out;
}

StepNodes pass_nodes(const WorkloadTrace& trace, Optimizer optimizer) { return Passes(trace, optimizer).write(); }

}  // namespace epocast
