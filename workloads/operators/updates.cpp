#include "workloads/operators/updates.hpp"

namespace epocast {
namespace {

Tensor memory_of(const Variable& v) { return {v.node, 0, v.value.values}; }

class Updates {
 public:
  Updates(Dataflow& graph, Optimizer optimizer) : graph_(graph), optimizer_(optimizer) {
    rate_ = graph.constant();
    if (optimizer == Optimizer::momentum) settings_ = {graph.constant()};
    if (optimizer == Optimizer::adam) {
      settings_ = {graph.constant(), graph.constant(), graph.constant()};  // two decay rates, epsilon
      powers_ = {graph.variable(1, false, false), graph.variable(1, false, false)};
    }
  }

  void update(const Variable& v, const Tensor& gradient) {
    graph_.layer = graph_.nodes()[static_cast<std::size_t>(v.node)].layer;
    std::vector<Variable> slots;
    for (int s = 0; s < optimizer_state_values(optimizer_); ++s)
      slots.push_back(graph_.variable(v.value.values, false, false));
    v.is_sparse ? sparse(v, slots, gradient) : dense(v, slots, gradient);
  }

  /// Adam's powers of its decay rates; the group; the counter of steps.
  void finish() {
    for (std::size_t p = 0; p < powers_.size(); ++p) {
      const Tensor power = graph_.binary("Mul", powers_[p].value, settings_[p]);
      done_.push_back(Dataflow::control(assign("Assign", powers_[p], {power})));
    }
    const Tensor all = graph_.add("NoOp", done_, 0);
    const Variable count = graph_.variable(1, false, false);
    const Tensor one = graph_.constant();
    assign("AssignAdd", count, {one, Dataflow::control(all)});
  }

 private:
  Tensor assign(const char* type, const Variable& v, const Tensors& by) {
    Tensors inputs{memory_of(v)};
    inputs.insert(inputs.end(), by.begin(), by.end());
    const Tensor out = graph_.add(type, inputs, 0, v.value.values);
    graph_.nodes().back().lifetime = Lifetime::reference;
    graph_.nodes().back().variable = v.node;
    return out;
  }

  void dense(const Variable& v, const std::vector<Variable>& slots, const Tensor& gradient) {
    constexpr const char* kTypes[] = {"ApplyGradientDescent", "ApplyMomentum", "ApplyAdam"};
    Tensors by;
    for (const Variable& slot : slots) by.push_back(memory_of(slot));
    for (const Variable& power : powers_) by.push_back(power.value);
    by.push_back(rate_);
    by.insert(by.end(), settings_.begin(), settings_.end());
    by.push_back(gradient);
    done_.push_back(Dataflow::control(assign(kTypes[static_cast<int>(optimizer_)], v, by)));
  }

  /// Rows that occur several times are added up first.
  void sparse(const Variable& v, const std::vector<Variable>& slots, const Tensor& gradient) {
    const Tensors unique = graph_.add_many("Unique", {gradient}, 2, gradient.values / 2);
    const Tensor shape = graph_.shape_of(unique[0]);
    const Tensor begin = graph_.constant(), end = graph_.constant(), stride = graph_.constant();
    const Tensor count = graph_.view("StridedSlice", {shape, begin, end, stride}, 1);
    const Tensor rows = graph_.add("UnsortedSegmentSum", {gradient, unique[1], count}, gradient.values);
    if (optimizer_ == Optimizer::sgd) {
      done_.push_back(Dataflow::control(assign("ScatterSub", v, {graph_.binary("Mul", rows, rate_)})));
    } else if (optimizer_ == Optimizer::momentum) {
      const Tensor momentum = settings_.front();
      done_.push_back(
          Dataflow::control(assign("SparseApplyMomentum", v, {memory_of(slots[0]), rate_, rows, momentum})));
    } else {
      sparse_adam(v, slots, rows);
    }
  }

  /// AdamOptimizer._apply_sparse_shared: both moments decay in full, then rows are added.
  void sparse_adam(const Variable& v, const std::vector<Variable>& slots, const Tensor& rows) {
    Dataflow& d = graph_;
    const Tensor root = d.unary("Sqrt", d.with_constant("Sub", powers_[1].value));
    const Tensor rate = d.binary("RealDiv", d.binary("Mul", rate_, root), d.with_constant("Sub", powers_[0].value));
    Tensors moments;
    for (std::size_t s = 0; s < 2; ++s) {
      const Tensor part = s == 0 ? rows : d.binary("Mul", rows, rows);
      const Tensor scaled = d.binary("Mul", part, d.with_constant("Sub", settings_[s]));
      const Tensor decayed = assign("Assign", slots[s], {d.binary("Mul", slots[s].value, settings_[s])});
      const Tensor added = assign("ScatterAdd", slots[s], {scaled, Dataflow::control(decayed)});
      moments.push_back(d.view("Identity", {memory_of(slots[s]), Dataflow::control(added)}, v.value.values));
    }
    const Tensor divisor = d.binary("Add", d.unary("Sqrt", moments[1]), settings_[2]);
    const Tensor step = d.binary("RealDiv", d.binary("Mul", moments[0], rate), divisor);
    done_.push_back(Dataflow::control(assign("AssignSub", v, {step})));
  }

  Dataflow& graph_;
  Optimizer optimizer_;
  Tensor rate_;
  Tensors settings_;
  std::vector<Variable> powers_;
  Tensors done_;
};

}  // namespace

void add_clipping(Dataflow& graph, Tensors& gradients) {
  Tensors norms;
  const auto at_layer = [&](std::size_t v) {
    graph.layer = graph.nodes()[static_cast<std::size_t>(graph.trained()[v].node)].layer;
  };
  const std::uint32_t none = graph.layer;
  for (std::size_t v = 0; v < gradients.size(); ++v) {
    if (!gradients[v].exists()) continue;
    at_layer(v);
    norms.push_back(graph.add("L2Loss", {gradients[v]}, 1, 2 * gradients[v].values));
  }
  graph.layer = none;
  const Tensor all = graph.add("Pack", norms, static_cast<double>(norms.size()));
  const Tensor norm = graph.unary("Sqrt", graph.with_constant("Mul", graph.reduce("Sum", all, 1)));
  const Tensor one = graph.constant();
  const Tensor inverse = graph.binary("RealDiv", one, norm);
  const Tensor limit = graph.with_constant("RealDiv", graph.constant());
  const Tensor scale = graph.with_constant("Mul", graph.binary("Minimum", inverse, limit));
  for (std::size_t v = 0; v < gradients.size(); ++v) {
    if (!gradients[v].exists()) continue;
    at_layer(v);
    gradients[v] = graph.view("Identity", {graph.binary("Mul", gradients[v], scale)}, gradients[v].values);
  }
  graph.layer = none;
}

void add_updates(Dataflow& graph, const Tensors& gradients, Optimizer optimizer) {
  const std::uint32_t none = graph.layer;
  Updates updates(graph, optimizer);
  const std::vector<Variable> trained = graph.trained();
  for (std::size_t v = 0; v < trained.size(); ++v)
    if (gradients[v].exists()) updates.update(trained[v], gradients[v]);
  graph.layer = none;
  updates.finish();
}

}  // namespace epocast
