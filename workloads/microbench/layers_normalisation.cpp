// Batch, layer and local response normalisation.

#include <fmt/format.h>

#include <algorithm>

#include "workloads/microbench/step_builder.hpp"

namespace epocast {
namespace {

constexpr float kEpsilon = 1e-5F;

/// Scale 1 and shift 0, behind one another.
Buffer::Fill unit_scale() {
  return [](Buffer& buffer) { std::fill_n(buffer.floats(), buffer.values() / 2, 1.0F); };
}

}  // namespace

void build_batch_norm(StepBuilder& b, int index) {
  const Layer& l = b.layer(index);
  if (l.variant == "frozen") return b.leave_out(index);
  const int producer = l.inputs.front();
  const auto flags = dnnl::normalization_flags::use_scale_shift;
  const KernelTensor input = b.output(producer);
  const dnnl::batch_normalization_forward::primitive_desc forward(
      dnnl::batch_normalization_forward::desc(dnnl::prop_kind::forward_training, input.desc, kEpsilon, flags),
      StepBuilder::attributes(), cpu_engine());
  const Parameters& p = b.parameters(index, forward.weights_desc(), unit_scale());
  const KernelTensor mean = b.make(forward.mean_desc(), constant_values(0));
  const KernelTensor variance = b.make(forward.variance_desc(), constant_values(1));
  Kernel& f = b.kernel(index, StepPass::forward);
  b.output(index) = b.make(forward.dst_desc(), constant_values(0));
  b.run(f, forward, "batch norm", {{DNNL_ARG_SRC, input}, {DNNL_ARG_SCALE_SHIFT, p.value}},
        {{DNNL_ARG_DST, b.output(index)}, {DNNL_ARG_MEAN, mean}, {DNNL_ARG_VARIANCE, variance}});
  b.on_backward(index, [=, &b, &p](const KernelTensor& gradient) {
    const dnnl::batch_normalization_backward::primitive_desc pd(
        dnnl::batch_normalization_backward::desc(dnnl::prop_kind::backward, input.desc, input.desc, kEpsilon, flags),
        StepBuilder::attributes(), cpu_engine(), forward);
    Kernel& k = b.kernel(index, StepPass::backward);
    const KernelTensor diff_dst = b.in_layout(gradient, pd.diff_dst_desc(), k);
    const KernelTensor diff_src = b.make(pd.diff_src_desc(), constant_values(0));
    b.run(k, pd, "batch norm",
          {{DNNL_ARG_SRC, input},
           {DNNL_ARG_DIFF_DST, diff_dst},
           {DNNL_ARG_MEAN, mean},
           {DNNL_ARG_VARIANCE, variance},
           {DNNL_ARG_SCALE_SHIFT, p.value}},
          {{DNNL_ARG_DIFF_SRC, diff_src}, {DNNL_ARG_DIFF_SCALE_SHIFT, p.gradient}});
    b.hand_back(producer, diff_src);
  });
}

void build_layer_norm(StepBuilder& b, int index) {
  const Layer& l = b.layer(index);
  const int producer = l.inputs.front();
  const auto flags = dnnl::normalization_flags::use_scale_shift;
  const Desc image = b.channels_last(l.input);
  const Desc rows({b.batch() * l.input.positions(), l.input.channels}, kFloat, Tag::ab);
  const dnnl::layer_normalization_forward::primitive_desc forward(
      dnnl::layer_normalization_forward::desc(dnnl::prop_kind::forward_training, rows, kEpsilon, flags),
      StepBuilder::attributes(), cpu_engine());
  const Parameters& p = b.parameters(index, forward.weights_desc(), unit_scale());
  const KernelTensor mean = b.make(forward.mean_desc(), constant_values(0));
  const KernelTensor variance = b.make(forward.variance_desc(), constant_values(1));
  Kernel& f = b.kernel(index, StepPass::forward);
  const KernelTensor input{b.in_layout(b.output(producer), image, f).buffer, rows};
  const KernelTensor made = b.make(rows, constant_values(0));
  b.output(index) = {made.buffer, image};
  b.run(f, forward, "layer norm", {{DNNL_ARG_SRC, input}, {DNNL_ARG_SCALE_SHIFT, p.value}},
        {{DNNL_ARG_DST, made}, {DNNL_ARG_MEAN, mean}, {DNNL_ARG_VARIANCE, variance}});
  b.on_backward(index, [=, &b, &p](const KernelTensor& gradient) {
    const dnnl::layer_normalization_backward::primitive_desc pd(
        dnnl::layer_normalization_backward::desc(dnnl::prop_kind::backward, rows, rows, kEpsilon, flags),
        StepBuilder::attributes(), cpu_engine(), forward);
    Kernel& k = b.kernel(index, StepPass::backward);
    const KernelTensor diff_dst{b.in_layout(gradient, image, k).buffer, rows};
    const KernelTensor diff_src = b.make(rows, constant_values(0));
    b.run(k, pd, "layer norm",
          {{DNNL_ARG_SRC, input},
           {DNNL_ARG_DIFF_DST, diff_dst},
           {DNNL_ARG_MEAN, mean},
           {DNNL_ARG_VARIANCE, variance},
           {DNNL_ARG_SCALE_SHIFT, p.value}},
          {{DNNL_ARG_DIFF_SRC, diff_src}, {DNNL_ARG_DIFF_SCALE_SHIFT, p.gradient}});
    b.hand_back(producer, {diff_src.buffer, image});
  });
}

void build_local_response_norm(StepBuilder& b, int index) {
  const Layer& l = b.layer(index);
  const int producer = l.inputs.front();
  // Constants of Krizhevsky et al. 2012, 3.3.
  constexpr float kAlpha = 1e-4F, kBeta = 0.75F, kShift = 2;
  const auto algorithm = dnnl::algorithm::lrn_across_channels;
  const KernelTensor input = b.output(producer);
  const std::string what = fmt::format("lrn {}", l.neighbours);
  const dnnl::lrn_forward::primitive_desc forward(
      dnnl::lrn_forward::desc(dnnl::prop_kind::forward_training, algorithm, input.desc, l.neighbours, kAlpha, kBeta,
                              kShift),
      StepBuilder::attributes(), cpu_engine());
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
    const dnnl::lrn_backward::primitive_desc pd(
        dnnl::lrn_backward::desc(algorithm, input.desc, input.desc, b.layer(index).neighbours, kAlpha, kBeta, kShift),
        StepBuilder::attributes(), cpu_engine(), forward);
    Kernel& k = b.kernel(index, StepPass::backward_data);
    std::vector<StepBuilder::Argument> reads{{DNNL_ARG_SRC, input},
                                             {DNNL_ARG_DIFF_DST, b.in_layout(gradient, pd.diff_dst_desc(), k)}};
    if (workspace.buffer != nullptr) reads.push_back({DNNL_ARG_WORKSPACE, workspace});
    const KernelTensor diff_src = b.make(pd.diff_src_desc(), constant_values(0));
    b.run(k, pd, what, reads, {{DNNL_ARG_DIFF_SRC, diff_src}});
    b.hand_back(producer, diff_src);
  });
}

}  // namespace epocast
