// Convolution and pooling.

#include <algorithm>
#include <cmath>
#include <string>

#include "workloads/microbench/step_builder.hpp"

namespace epocast {
namespace {

/// A sliding window in oneDNN's terms: (depth,) height, width.
struct WindowDims {
  Dims kernel, stride, dilation, before, after;

  std::string text() const {
    std::string out;
    for (const Dims* part : {&kernel, &stride, &dilation, &before, &after})
      for (const auto size : *part) out += std::to_string(size) + ' ';
    return out;
  }
};

struct Side {
  std::int64_t in, out, kernel, stride, before;
};

void add_direction(WindowDims& w, const Layer& l, const Side& side) {
  w.kernel.push_back(side.kernel);
  w.stride.push_back(side.stride);
  w.dilation.push_back(l.dilation - 1);  // what lies between two taps
  w.before.push_back(side.before);
  const std::int64_t extent = l.dilation * (side.kernel - 1) + 1;
  // What the last window needs; `same` and rounding up pad more behind than before.
  w.after.push_back(is_transposed(l)
                        ? (side.in - 1) * side.stride + extent - side.before - side.out
                        : std::max<std::int64_t>(0, (side.out - 1) * side.stride + extent - side.in - side.before));
}

WindowDims window_of(const Layer& l) {
  WindowDims w;
  if (l.input.depth > 1) {
    // A window without depth goes through every slice.
    const bool slices = l.kernel_depth == 1 && l.output.depth == l.input.depth;
    add_direction(w, l, {l.input.depth, l.output.depth, l.kernel_depth, slices ? 1 : l.stride, l.padding_depth});
  }
  add_direction(w, l, {l.input.height, l.output.height, l.kernel_height, l.stride, l.padding_height});
  add_direction(w, l, {l.input.width, l.output.width, l.kernel_width, l.stride, l.padding_width});
  return w;
}

/// A convolution or a transposed one, by the library's types for its three passes.
template <class Forward, class BackwardData, class BackwardWeights>
void build_windows(StepBuilder& b, int index, dnnl::algorithm algorithm) {
  const Layer& l = b.layer(index);
  const int producer = l.inputs.front();
  const WindowDims w = window_of(l);
  Shape out_shape = l.output;
  if (l.input.depth > 1 && out_shape.depth == 1) return b.leave_out(index);  // another number of dimensions
  // Weights that are another layer's or do not change, and rows behind the output of a transposed convolution.
  if (l.parameter_count() == 0 || std::ranges::any_of(w.after, [](auto side) { return side < 0; }))
    return b.leave_out(index);

  const Desc src(b.dims(l.input), kFloat, Tag::any);
  const Desc dst(b.dims(out_shape), kFloat, Tag::any);
  Dims weight_dims = {l.output.channels / l.groups, l.input.channels / l.groups};
  if (l.groups > 1) weight_dims.insert(weight_dims.begin(), l.groups);
  weight_dims.insert(weight_dims.end(), w.kernel.begin(), w.kernel.end());
  const Desc weights(weight_dims, kFloat, Tag::any);
  const bool has_bias = l.find_parameter(".bias") != nullptr;
  const Desc bias = has_bias ? Desc({l.output.channels}, kFloat, Tag::a) : Desc();
  const std::string what = (is_transposed(l) ? "transposed convolution " : "convolution ") + w.text();

  const typename Forward::primitive_desc forward(
      has_bias ? typename Forward::desc(dnnl::prop_kind::forward_training, algorithm, src, weights, bias, dst, w.stride,
                                        w.dilation, w.before, w.after)
               : typename Forward::desc(dnnl::prop_kind::forward_training, algorithm, src, weights, dst, w.stride,
                                        w.dilation, w.before, w.after),
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
      const typename BackwardData::primitive_desc pd(
          typename BackwardData::desc(algorithm, src, weights, dst, w.stride, w.dilation, w.before, w.after),
          StepBuilder::attributes(), cpu_engine(), forward);
      Kernel& k = b.kernel(index, StepPass::backward_data);
      const KernelTensor diff_dst = b.in_layout(gradient, pd.diff_dst_desc(), k);
      const KernelTensor filters = b.in_layout(weight.value, pd.weights_desc(), k);
      const KernelTensor diff_src = b.make(pd.diff_src_desc(), constant_values(0));
      b.run(k, pd, what, {{DNNL_ARG_DIFF_DST, diff_dst}, {DNNL_ARG_WEIGHTS, filters}}, {{DNNL_ARG_DIFF_SRC, diff_src}});
      b.hand_back(producer, diff_src);
    }
    const typename BackwardWeights::primitive_desc pd(
        has_bias
            ? typename BackwardWeights::desc(algorithm, src, weights, bias, dst, w.stride, w.dilation, w.before,
                                             w.after)
            : typename BackwardWeights::desc(algorithm, src, weights, dst, w.stride, w.dilation, w.before, w.after),
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

}  // namespace

void build_convolution(StepBuilder& b, int index) {
  using namespace dnnl;
  if (is_transposed(b.layer(index)))
    build_windows<deconvolution_forward, deconvolution_backward_data, deconvolution_backward_weights>(
        b, index, algorithm::deconvolution_direct);
  else
    build_windows<convolution_forward, convolution_backward_data, convolution_backward_weights>(
        b, index, algorithm::convolution_direct);
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
  const Desc dst(b.dims(l.output), kFloat, Tag::any);
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
