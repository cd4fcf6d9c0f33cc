#include "workloads/operators/gradients.hpp"

#include <stdexcept>
#include <string>

#include "workloads/operators/gradient_rules.hpp"

namespace epocast {
namespace {

class Differentiation {
 public:
  Differentiation(Dataflow& graph, bool gated)
      : graph_(graph), gated_(gated), first_output_(graph.nodes().size() + 1, 0) {
    for (std::size_t n = 0; n < graph.nodes().size(); ++n)
      first_output_[n + 1] = first_output_[n] + static_cast<std::size_t>(graph.nodes()[n].outputs);
    parts_.resize(first_output_.back());
  }

  Tensors run(const Tensor& loss) {
    const OperatorPhase phase = graph_.phase;
    const std::uint32_t layer = graph_.layer;
    graph_.phase = OperatorPhase::backward;
    find_trained();
    graph_.layer = graph_.nodes()[static_cast<std::size_t>(loss.node)].layer;
    parts(loss).push_back(graph_.add("Fill", {graph_.constant(), graph_.constant()}, loss.values));
    for (std::int32_t n = loss.node; n >= 0; --n)
      if (depends_[static_cast<std::size_t>(n)]) differentiate(n);
    Tensors out;
    for (const Variable& v : graph_.trained()) {
      graph_.layer = graph_.nodes()[static_cast<std::size_t>(v.node)].layer;
      out.push_back(total(v.value));
    }
    graph_.phase = phase;
    graph_.layer = layer;
    graph_.step = -1;
    return out;
  }

 private:
  Tensors& parts(const Tensor& t) {
    return parts_[first_output_[static_cast<std::size_t>(t.node)] + static_cast<std::size_t>(t.output)];
  }

  /// Marks what depends on a trained variable.
  void find_trained() {
    depends_.assign(first_output_.size() - 1, false);
    for (const Variable& v : graph_.trained()) depends_[static_cast<std::size_t>(v.value.node)] = true;
    for (std::size_t n = 0; n < depends_.size(); ++n) {
      const DataflowNode& node = graph_.nodes()[n];
      if (node.phase != OperatorPhase::forward || stops_gradients(graph_.types()[node.type])) continue;
      for (std::uint32_t i = node.in_begin; i < node.in_end && !depends_[n]; ++i) {
        const Tensor& input = graph_.inputs()[i];
        depends_[n] = depends_[static_cast<std::size_t>(input.node)];
      }
    }
  }

  /// All parts of a gradient added up; none if there are none.
  Tensor total(const Tensor& of) {
    const Tensors& all = parts(of);
    if (all.empty()) return {};
    if (all.size() == 1) return all.front();
    const std::uint32_t layer = graph_.layer;
    graph_.layer = layer_of_all(all, layer);
    Tensor sum = graph_.add("AddN", all, of.values, of.values * static_cast<double>(all.size() - 1));
    graph_.layer = layer;
    sum.is_dynamic = of.is_dynamic;
    sum.has_batch = of.has_batch;
    return sum;
  }

  /// The layer whose gradient all of these are part of: what reads its input several times adds up itself.
  std::uint32_t layer_of_all(const Tensors& all, std::uint32_t otherwise) const {
    const auto layer = [&](const Tensor& t) { return graph_.nodes()[static_cast<std::size_t>(t.node)].layer; };
    for (const Tensor& t : all)
      if (layer(t) != layer(all.front())) return otherwise;
    return layer(all.front());
  }

  void differentiate(std::int32_t n) {
    const DataflowNode node = graph_.nodes()[static_cast<std::size_t>(n)];
    if (node.lifetime == Lifetime::reference) return;  // a variable
    graph_.layer = node.layer;
    graph_.step = node.step;
    Tensors grads;
    bool any = false;
    for (int o = 0; o < node.outputs; ++o) {
      grads.push_back(total(graph_.output_of(n, o)));
      any = any || grads.back().exists();
    }
    if (!any) return;
    for (int o = 0; o < node.outputs; ++o)
      if (!grads[static_cast<std::size_t>(o)].exists())
        grads[static_cast<std::size_t>(o)] = graph_.zeros_like(graph_.output_of(n, o));

    const std::string type = graph_.type_of(n);
    const GradientRule rule = find_gradient_rule(type);
    if (rule == nullptr) throw std::logic_error("no gradient of " + type);
    const Tensors in = graph_.inputs_of(n);
    std::vector<bool> used;
    for (const Tensor& input : in) used.push_back(depends_[static_cast<std::size_t>(input.node)]);
    Tensors made = rule({graph_, n, in, grads, used});
    if (gated_) gate(made);
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (!made[i].exists() || !used[i]) continue;
      made[i].is_dynamic = in[i].is_dynamic;  // a gradient has the shape of what it belongs to
      made[i].has_batch = in[i].has_batch;
      parts(in[i]).push_back(made[i]);
    }
  }

  /// tf.tuple: hands gradients on once all of them are there.
  void gate(Tensors& made) {
    Tensors wait;
    for (const Tensor& t : made)
      if (t.exists()) wait.push_back(Dataflow::control(t));
    if (wait.size() < 2) return;
    const Tensor all = graph_.add("NoOp", wait, 0);
    for (Tensor& t : made)
      if (t.exists()) t = graph_.view("Identity", {t, Dataflow::control(all)}, t.values);
  }

  Dataflow& graph_;
  bool gated_;
  std::vector<std::size_t> first_output_;  ///< by node: index into parts_
  std::vector<Tensors> parts_;             ///< of the gradient of each output
  std::vector<bool> depends_;              ///< by node
};

}  // namespace

Tensors add_gradients(Dataflow& graph, const Tensor& loss, bool gated) {
  return Differentiation(graph, gated).run(loss);
}

}  // namespace epocast
