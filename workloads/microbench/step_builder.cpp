#include "workloads/microbench/step_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "workloads/microbench/loops.hpp"

namespace epocast {

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::primitive_attr StepBuilder::attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);  // ours to account for
  return attributes;
}

StepBuilder::StepBuilder(ExecutedStep& step, Optimizer optimizer) : step_(step), optimizer_(optimizer) {
  scratch_ = &step_.buffers_.emplace_back(0, Buffer::Fill());
  const std::size_t n = step_.model().layers.size();
  step_.outputs_.resize(n);
  backward_.resize(n);
  gradients_.resize(n);
  for (const Layer& l : step_.model().layers) {
    bool needed = l.parameter_count() > 0 || l.tied_to >= 0;
    for (const int input : l.inputs) needed = needed || needs_gradient_[static_cast<std::size_t>(input)];
    needs_gradient_.push_back(needed);
  }
}

void StepBuilder::build() {
  const int n = static_cast<int>(step_.model().layers.size());
  for (int i = 0; i < n; ++i) forward(i);
  for (int i = n; i-- > 1;) backward(i);
  update();
  for (Kernel& k : kernels_)
    if (!k.operands().empty()) step_.kernels_.push_back(std::move(k));
  for (Parameters& p : parameters_) step_.parameters_.push_back(std::move(p));
}

Dims StepBuilder::dims(const Shape& shape) const {
  if (shape.depth == 1) return {batch(), shape.channels, shape.height, shape.width};
  return {batch(), shape.channels, shape.depth, shape.height, shape.width};
}

Desc StepBuilder::plain(const Shape& shape) const {
  return {dims(shape), dnnl::memory::data_type::f32, shape.depth == 1 ? Tag::abcd : Tag::abcde};
}

Desc StepBuilder::channels_last(const Shape& shape) const {
  return {dims(shape), dnnl::memory::data_type::f32, shape.depth == 1 ? Tag::acdb : Tag::acdeb};
}

KernelTensor StepBuilder::make(const Desc& desc, Buffer::Fill fill) {
  return {&step_.buffers_.emplace_back(desc.get_size(), std::move(fill)), desc};
}

Parameters& StepBuilder::parameters(int layer, const Desc& desc, Buffer::Fill fill) {
  Parameters& p = parameters_.emplace_back();
  p.layer = layer;
  p.value = make(desc, std::move(fill));
  p.gradient = make(desc, constant_values(0));
  for (int i = 0; i < optimizer_state_values(optimizer_); ++i) p.state.push_back(make(desc, constant_values(0)));
  return p;
}

Kernel& StepBuilder::kernel(int layer, StepPass pass) { return kernels_.emplace_back(layer, pass); }

KernelTensor StepBuilder::in_layout(const KernelTensor& tensor, const Desc& desc, Kernel& kernel) {
  if (tensor.desc == desc) return tensor;
  for (const auto& [from, to] : reorders_)
    if (from.buffer == tensor.buffer && from.desc == tensor.desc && to.desc == desc) return to;
  const KernelTensor copy = make(desc, constant_values(0));
  reorder(tensor, copy, kernel);
  reorders_.emplace_back(tensor, copy);
  return copy;
}

KernelTensor StepBuilder::reshaped(const KernelTensor& tensor, const Dims& dims, Kernel& kernel) {
  if (const Desc view = tensor.desc.reshape(dims, true)) return {tensor.buffer, view};
  const Dims old = tensor.desc.dims();
  Dims strides(old.size(), 1);
  for (std::size_t i = old.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * old[i + 1];
  const KernelTensor rows = in_layout(tensor, Desc(old, dnnl::memory::data_type::f32, strides), kernel);
  return {rows.buffer, rows.desc.reshape(dims)};
}

void StepBuilder::reorder(const KernelTensor& from, const KernelTensor& to, Kernel& kernel) {
  const dnnl::reorder::primitive_desc pd(cpu_engine(), from.desc, cpu_engine(), to.desc, attributes());
  run(kernel, pd, "reorder", {{DNNL_ARG_FROM, from}}, {{DNNL_ARG_TO, to}});
}

void StepBuilder::run(Kernel& kernel, const dnnl::primitive& primitive, const Desc& scratch, const std::string& what,
                      const std::vector<Argument>& reads, const std::vector<Argument>& writes) {
  std::unordered_map<int, dnnl::memory> arguments;
  std::vector<KernelTensor> read, written;
  for (const Argument& a : reads) {
    arguments.emplace(a.slot, a.tensor.buffer->view(a.tensor.desc, cpu_engine()));
    read.push_back(a.tensor);
  }
  for (const Argument& a : writes) {
    arguments.emplace(a.slot, a.tensor.buffer->view(a.tensor.desc, cpu_engine()));
    written.push_back(a.tensor);
  }
  if (scratch.get_size() > 0) {
    arguments.emplace(DNNL_ARG_SCRATCHPAD, scratch_->view(scratch, cpu_engine()));
    written.push_back({scratch_, scratch});
  }
  kernel.add(
      what, [primitive, arguments](dnnl::stream& stream) { primitive.execute(stream, arguments); }, read, written);
}

void StepBuilder::hand_back(int input, const KernelTensor& gradient) {
  if (needs_gradient(input)) gradients_[static_cast<std::size_t>(input)].push_back(gradient);
}

void StepBuilder::leave_out(int index) {
  step_.left_out_.push_back(fmt::format("{} layer '{}'", to_string(layer(index).kind), layer(index).name));
  // What follows still needs something to read, and what comes before a gradient.
  output(index) = make(plain(layer(index).output), uniform_values(1));
  for (const int input : layer(index).inputs) hand_back(input, make(output(input).desc, uniform_values(1e-3F)));
}

void StepBuilder::make_labels(std::int64_t classes) {
  step_.labels_ = make(Desc({batch()}, dnnl::memory::data_type::s32, dnnl::memory::format_tag::a),
                       random_indices(static_cast<std::int32_t>(classes)));
}

void StepBuilder::forward(int index) {
  const Layer& l = layer(index);
  if (l.kind == LayerKind::input || l.variant == "data") {
    output(index) = make(plain(l.output), uniform_values(1));
    return;
  }
  switch (l.kind) {
    case LayerKind::convolution: return build_convolution(*this, index);
    case LayerKind::fully_connected: return build_fully_connected(*this, index);
    case LayerKind::linear: return build_linear(*this, index);
    case LayerKind::pooling: return build_pooling(*this, index);
    case LayerKind::batch_norm: return build_batch_norm(*this, index);
    case LayerKind::layer_norm: return build_layer_norm(*this, index);
    case LayerKind::local_response_norm: return build_local_response_norm(*this, index);
    case LayerKind::activation: return build_activation(*this, index);
    case LayerKind::softmax: return build_softmax(*this, index);
    case LayerKind::add: return build_add(*this, index);
    case LayerKind::concat: return build_concat(*this, index);
    case LayerKind::dropout: return build_dropout(*this, index);
    case LayerKind::flatten: return build_flatten(*this, index);
    case LayerKind::embedding: return build_embedding(*this, index);
    case LayerKind::lstm: return build_lstm(*this, index);
    case LayerKind::multiply: return build_multiply(*this, index);
    case LayerKind::input:
    case LayerKind::attention:
    case LayerKind::e3d_lstm:
    case LayerKind::rearrange: return leave_out(index);
  }
}

void StepBuilder::backward(int index) {
  if (!needs_gradient(index) || !backward_[static_cast<std::size_t>(index)]) return;
  backward_[static_cast<std::size_t>(index)](gradient_of(index));
}

KernelTensor StepBuilder::gradient_of(int index) {
  std::vector<KernelTensor>& parts = gradients_[static_cast<std::size_t>(index)];
  // Nobody reads it: the loss does. A softmax at the end knows its own gradient (build_softmax).
  if (parts.empty()) return make(output(index).desc, uniform_values(1e-3F));
  if (parts.size() == 1) return parts.front();
  Kernel& k = kernel(index, StepPass::gradient_sum);
  std::vector<Desc> descs;
  std::vector<Argument> reads;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const KernelTensor part = in_layout(parts[i], parts.front().desc, k);
    descs.push_back(part.desc);
    reads.push_back({DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), part});
  }
  const KernelTensor sum = make(parts.front().desc, constant_values(0));
  const dnnl::sum::primitive_desc pd(sum.desc, std::vector<float>(parts.size(), 1.0F), descs, cpu_engine(),
                                     attributes());
  run(k, pd, "sum", reads, {{DNNL_ARG_DST, sum}});
  return sum;
}

void StepBuilder::update() {
  for (Parameters& p : parameters_) {
    // Parameters of a layer share a kernel: they are updated one after the other.
    if (kernels_.empty() || kernels_.back().pass() != StepPass::update || kernels_.back().layer() != p.layer)
      kernel(p.layer, StepPass::update);
    add_update(kernels_.back(), p, optimizer_);
  }
}

ExecutedStep::ExecutedStep(const Model& model, std::int64_t batch, Optimizer optimizer)
    : model_(&model), batch_(batch) {
  StepBuilder(*this, optimizer).build();
}

ExecutedStep::~ExecutedStep() = default;

std::size_t ExecutedStep::bytes() const {
  std::size_t sum = 0;
  for (const Buffer& buffer : buffers_) sum += buffer.bytes();
  return sum;
}

void ExecutedStep::allocate() {
  for (Buffer& buffer : buffers_) buffer.allocate();
}

void ExecutedStep::release() {
  for (Buffer& buffer : buffers_) buffer.release();
}

}  // namespace epocast
