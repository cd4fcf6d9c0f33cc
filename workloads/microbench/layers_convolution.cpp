// Convolution and pooling.

#include <algorithm>
#include <cmath>
#include <string>

#include "workloads/microbench/step_builder.hpp"

namespace epocast {
namespace {

constexpr auto kFloat = dnnl::memory::data_type::f32;
constexpr auto kAnyTag = dnnl::memory::format_tag::any;

/// A sliding window in oneDNN's terms: (depth,) height, width.
struct WindowDims {
  Dims kernel, stride, before, after;

  std::string text() const {
    std::string out;
    for (const Dims* part : {&kernel, &stride, &before, &after})
      for (const auto size : *part) out += std::to_string(size) + ' ';
    return out;
  }
};

void add_direction(WindowDims& w, std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                   std::int64_t before) {
  w.kernel.push_back(kernel);
  w.stride.push_back(stride);
  w.before.push_back(before);
  // What the last window needs; `same` and rounding up pad more behind than before.
  w.after.push_back(std::max<std::int64_t>(0, (out - 1) * stride + kernel - in - before));
}

WindowDims window_of(const Layer& l) {
  WindowDims w;
  if (l.input.depth > 1) {
    // A window without depth goes through every slice.
    const bool slices = l.kernel_depth == 1 && l.output.depth == l.input.depth;
    add_direction(w, l.input.depth, l.output.depth, l.kernel_depth, slices ? 1 : l.stride, l.padding_depth);
  }
  add_direction(w, l.input.height, l.output.height, l.kernel_height, l.stride, l.padding_height);
  add_direction(w, l.input.width, l.output.width, l.kernel_width, l.stride, l.padding_width);
  return w;
}

}  // namespace

void build_convolution(StepBuilder& b, int index) {
  using dnnl::convolution_backward_data;
  using dnnl::convolution_backward_weights;
  using dnnl::convolution_forward;
  const Layer& l = b.layer(index);
  const int producer = l.inputs.front();
  const WindowDims w = window_of(l);
  Shape out_shape = l.output;
  if (l.input.depth > 1 && out_shape.depth == 1) return b.leave_out(index);  // another number of dimensions

  const Desc src(b.dims(l.input), kFloat, kAnyTag);
  const Desc dst(b.dims(out_shape), kFloat, kAnyTag);
  Dims weight_dims = {l.output.channels / l.groups, l.input.channels / l.groups};
  if (l.groups > 1) weight_dims.insert(weight_dims.begin(), l.groups);
  weight_dims.insert(weight_dims.end(), w.kernel.begin(), w.kernel.end());
  const Desc weights(weight_dims, kFloat, kAnyTag);
  const bool has_bias = l.parameters.size() > 1;
  const Desc bias = has_bias ? Desc({l.output.channels}, kFloat, dnnl::memory::format_tag::a) : Desc();
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const std::string what = "convolution " + w.text();

  const convolution_forward::primitive_desc forward(
      has_bias ? convolution_forward::desc(dnnl::prop_kind::forward_training, algorithm, src, weights, bias, dst,
                                           w.stride, w.before, w.after)
               : convolution_forward::desc(dnnl::prop_kind::forward_training, algorithm, src, weights, dst, w.stride,
                                           w.before, w.after),
      StepBuilder::attributes(), cpu_engine());
  const double fan_in = static_cast<double>(l.parameters.front().values) / static_cast<double>(l.output.channels);
  Parameters& weight =
      b.parameters(index, forward.weights_desc(), uniform_values(static_cast<float>(std::sqrt(6 / fan_in))));
  Parameters* shift = has_bias ? &b.parameters(index, bias, constant_values(0)) : nullptr;

  Kernel& f = b.kernel(index, StepPass::forward);
  const KernelTensor input = b.in_layout(b.output(producer), forward.src_desc(), f);
  b.output(index) = b.make(forward.dst_desc(), constant_values(0));
  std::vector<StepBuilder::Argument> reads{{DNNL_ARG_SRC, input}, {DNNL_ARG_WEIGHTS, weight.value}};
  if (has_bias) reads.push_back({DNNL_ARG_BIAS, shift->value});
  b.run(f, forward, what, reads, {{DNNL_ARG_DST, b.output(index)}});

  b.on_backward(index, [=, &b, &weight](const KernelTensor& gradient) {
    if (b.needs_gradient(producer)) {
      const convolution_backward_data::primitive_desc pd(
          convolution_backward_data::desc(algorithm, src, weights, dst, w.stride, w.before, w.after),
          StepBuilder::attributes(), cpu_engine(), forward);
      Kernel& k = b.kernel(index, StepPass::backward_data);
      const KernelTensor diff_dst = b.in_layout(gradient, pd.diff_dst_desc(), k);
      const KernelTensor filters = b.in_layout(weight.value, pd.weights_desc(), k);
      const KernelTensor diff_src = b.make(pd.diff_src_desc(), constant_values(0));
      b.run(k, pd, what, {{DNNL_ARG_DIFF_DST, diff_dst}, {DNNL_ARG_WEIGHTS, filters}}, {{DNNL_ARG_DIFF_SRC, diff_src}});
      b.hand_back(producer, diff_src);
    }
    const convolution_backward_weights::primitive_desc pd(
        has_bias ? convolution_backward_weights::desc(algorithm, src, weights, bias, dst, w.stride, w.before, w.after)
                 : convolution_backward_weights::desc(algorithm, src, weights, dst, w.stride, w.before, w.after),
        StepBuilder::attributes(), cpu_engine(), forward);
    Kernel& k = b.kernel(index, StepPass::backward_weights);
    const KernelTensor source = b.in_layout(input, pd.src_desc(), k);
    const KernelTensor diff_dst = b.in_layout(gradient, pd.diff_dst_desc(), k);
    const bool same = pd.diff_weights_desc() == weight.gradient.desc;
    const KernelTensor made = same ? weight.gradient : b.make(pd.diff_weights_desc(), constant_values(0));
    std::vector<StepBuilder::Argument> writes{{DNNL_ARG_DIFF_WEIGHTS, made}};
    if (shift != nullptr) writes.push_back({DNNL_ARG_DIFF_BIAS, shift->gradient});
    b.run(k, pd, what, {{DNNL_ARG_SRC, source}, {DNNL_ARG_DIFF_DST, diff_dst}}, writes);
    if (!same) b.reorder(made, weight.gradient, k);
  });
}

void build_pooling(StepBuilder& b, int index) {
  const Layer& l = b.layer(index);
  const int producer = l.inputs.front();
  const WindowDims w = window_of(l);
  const auto algorithm =
      l.variant == "max" ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_include_padding;
  if (b.output(producer).desc.dims() != b.dims(l.input) || (l.input.depth > 1 && l.output.depth == 1))
    return b.leave_out(index);
  const KernelTensor input = b.output(producer);
  const Desc dst(b.dims(l.output), kFloat, kAnyTag);
  const dnnl::pooling_forward::primitive_desc forward(
      dnnl::pooling_forward::desc(dnnl::prop_kind::forward_training, algorithm, input.desc, dst, w.stride, w.kernel,
                                  w.before, w.after),
      StepBuilder::attributes(), cpu_engine());
  const std::string what = "pooling " + l.variant + " " + w.text();
  Kernel& f = b.kernel(index, StepPass::forward);
  b.output(index) = b.make(forward.dst_desc(), constant_values(0));
  std::vector<StepBuilder::Argument> writes{{DNNL_ARG_DST, b.output(index)}};
  KernelTensor workspace;
  if (forward.workspace_desc().get_size() > 0) {
    workspace = b.make(forward.workspace_desc(), Buffer::Fill());
    writes.push_back({DNNL_ARG_WORKSPACE, workspace});
  }
  b.run(f, forward, what, {{DNNL_ARG_SRC, input}}, writes);

  b.on_backward(index, [=, &b](const KernelTensor& gradient) {
    const dnnl::pooling_backward::primitive_desc pd(
        dnnl::pooling_backward::desc(algorithm, input.desc, forward.dst_desc(), w.stride, w.kernel, w.before, w.after),
        StepBuilder::attributes(), cpu_engine(), forward);
    Kernel& k = b.kernel(index, StepPass::backward_data);
    std::vector<StepBuilder::Argument> reads{{DNNL_ARG_DIFF_DST, b.in_layout(gradient, pd.diff_dst_desc(), k)}};
    if (workspace.buffer != nullptr) reads.push_back({DNNL_ARG_WORKSPACE, workspace});
    const KernelTensor diff_src = b.make(pd.diff_src_desc(), constant_values(0));
    b.run(k, pd, what, reads, {{DNNL_ARG_DIFF_SRC, diff_src}});
    b.hand_back(producer, diff_src);
  });
}

}  // namespace epocast
