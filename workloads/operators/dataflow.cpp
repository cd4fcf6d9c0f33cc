#include "workloads/operators/dataflow.hpp"

#include <algorithm>

namespace epocast {
namespace {

constexpr double kSmallConstant = 1000;  // values; tf.zeros fills larger ones while running

}  // namespace

Dataflow::Dataflow() {
  phase = OperatorPhase::setup;
  const Tensor file = constant(), names = constant(), slices = constant();
  restored_ = add("RestoreV2", {file, names, slices}, 0).node;
  phase = OperatorPhase::forward;
}

std::uint16_t Dataflow::type_index(const char* type) {
  const auto [found, is_new] = type_numbers_.emplace(type, static_cast<std::uint16_t>(types_.size()));
  if (is_new) types_.emplace_back(type);
  return found->second;
}

std::int32_t Dataflow::make(const char* type, const Tensors& inputs, int outputs, double values) {
  DataflowNode node;
  node.type = type_index(type);
  node.layer = layer;
  node.step = step;
  node.phase = phase;
  node.outputs = outputs;
  node.values = values;
  node.in_begin = static_cast<std::uint32_t>(inputs_.size());
  for (const Tensor& input : inputs) {
    inputs_.push_back(input);
    node.is_dynamic = node.is_dynamic || input.is_dynamic;
    node.has_batch = node.has_batch || input.has_batch;
  }
  node.in_end = static_cast<std::uint32_t>(inputs_.size());
  nodes_.push_back(node);
  return static_cast<std::int32_t>(nodes_.size()) - 1;
}

Tensor Dataflow::output_of(std::int32_t node, int output) const {
  const DataflowNode& n = nodes_[static_cast<std::size_t>(node)];
  return {node, output, n.values / n.outputs, n.is_dynamic, n.has_batch};
}

Tensors Dataflow::inputs_of(std::int32_t node) const {
  const DataflowNode& n = nodes_[static_cast<std::size_t>(node)];
  return {inputs_.begin() + n.in_begin, inputs_.begin() + n.in_end};
}

Tensor Dataflow::add(const char* type, const Tensors& inputs, double values, double work) {
  const std::int32_t node = make(type, inputs, 1, values);
  nodes_.back().work = work;
  return output_of(node);
}

Tensors Dataflow::add_many(const char* type, const Tensors& inputs, int outputs, double values_each) {
  const std::int32_t node = make(type, inputs, outputs, outputs * values_each);
  Tensors out;
  for (int o = 0; o < outputs; ++o) out.push_back(output_of(node, o));
  return out;
}

Tensor Dataflow::view(const char* type, const Tensors& inputs, double values) {
  const std::int32_t node = make(type, inputs, 1, values);
  nodes_.back().moves_no_data = true;
  nodes_.back().is_dynamic = inputs.front().is_dynamic;
  nodes_.back().has_batch = inputs.front().has_batch;
  return output_of(node);
}

Tensor Dataflow::constant(double values) {
  const Tensor out = add("Const", {}, values);
  nodes_.back().lifetime = Lifetime::residual;
  return out;
}

Tensor Dataflow::binary(const char* type, const Tensor& a, const Tensor& b) {
  const double values = std::max(a.values, b.values);
  return add(type, {a, b}, values, values);
}

Tensor Dataflow::unary(const char* type, const Tensor& a, double work_per_value) {
  return add(type, {a}, a.values, work_per_value * a.values);
}

Tensor Dataflow::with_constant(const char* type, const Tensor& a) { return binary(type, a, constant()); }

Tensor Dataflow::shape_of(const Tensor& a) {
  if (!a.is_dynamic) return constant(4);
  const Tensor out = add("Shape", {a}, 4);
  nodes_.back().is_dynamic = nodes_.back().has_batch = false;
  nodes_.back().moves_no_data = true;
  return output_of(out.node);
}

Tensor Dataflow::reshape(const Tensor& a, double values) {
  const Tensor shape = constant(4);
  return view("Reshape", {a, shape}, values);
}

Tensor Dataflow::transpose(const Tensor& a) {
  const Tensor order = constant(4);
  return add("Transpose", {a, order}, a.values);
}

Tensor Dataflow::transpose_in_place(const Tensor& a) {
  const Tensor order = constant(4);
  return view("Transpose", {a, order}, a.values);
}

Tensor Dataflow::reduce(const char* type, const Tensor& a, double values) {
  const Tensor axes = constant(4);
  return add(type, {a, axes}, values, a.values);
}

Tensor Dataflow::concat(const Tensors& parts) {
  double values = 0;
  for (const Tensor& part : parts) values += part.values;
  Tensors inputs = parts;
  inputs.push_back(constant());
  return add("ConcatV2", inputs, values);
}

Tensors Dataflow::split(const Tensor& a, int parts) {
  const Tensor axis = constant();
  return add_many("Split", {axis, a}, parts, a.values / parts);
}

Tensor Dataflow::zeros_like(const Tensor& a) {
  if (a.is_dynamic) return add("ZerosLike", {a}, a.values);
  if (a.values < kSmallConstant && !a.has_batch) return constant(a.values);
  const Tensor shape = constant(4), zero = constant();
  return add("Fill", {shape, zero}, a.values);
}

Variable Dataflow::variable(double values, bool is_random, bool is_trained) {
  const OperatorPhase before = phase;
  const OperatorPhase own = is_trained ? OperatorPhase::forward : before;
  phase = own;
  const Tensor memory = add("VariableV2", {}, values);
  nodes_.back().lifetime = Lifetime::residual;

  phase = OperatorPhase::setup;
  Tensor initial;
  if (is_random) {  // tf.random_uniform: shape, limits; scaled and shifted
    const Tensor shape = constant(4), low = constant(), high = constant();
    const Tensor random = add("RandomUniform", {shape}, values);
    const Tensor range = binary("Sub", high, low);
    initial = binary("Add", binary("Mul", random, range), low);
  } else {
    if (values < kSmallConstant) {
      initial = constant(values);
    } else {
      const Tensor shape = constant(4), zero = constant();
      initial = add("Fill", {shape, zero}, values);
    }
  }
  const auto assign = [&](const Tensor& from) {
    add("Assign", {memory, from}, 0);
    nodes_.back().lifetime = Lifetime::reference;
    nodes_.back().variable = memory.node;
  };
  assign(initial);
  assign({restored_, 0, values});  // by the saver
  for (int check = 0; check < 2; ++check) add("IsVariableInitialized", {control(memory)}, 1);

  phase = own;
  const Tensor read = view("Identity", {memory}, values);
  nodes_.back().lifetime = Lifetime::reference;
  nodes_.back().variable = memory.node;
  phase = before;
  Variable out{read, memory.node, false};
  if (is_trained) trained_.push_back(out);
  return out;
}

void Dataflow::set_sparse(const Variable& variable) {
  for (Variable& v : trained_)
    if (v.node == variable.node) v.is_sparse = true;
}

}  // namespace epocast
