// Layers that work value by value, or only move values.

#include <fmt/format.h>

#include <algorithm>

#include "workloads/microbench/loops.hpp"
#include "workloads/microbench/step_builder.hpp"

namespace epocast {
namespace {

struct Function {
  dnnl::algorithm forward, backward;
  bool from_output;  ///< whether the gradient is computed from the output
  float alpha = 0;
};

Function function_of(const std::string& variant) {
  using dnnl::algorithm;
  if (variant == "sigmoid") return {algorithm::eltwise_logistic, algorithm::eltwise_logistic_use_dst_for_bwd, true};
  if (variant == "exp") return {algorithm::eltwise_exp, algorithm::eltwise_exp_use_dst_for_bwd, true};
  if (variant == "tanh") return {algorithm::eltwise_tanh, algorithm::eltwise_tanh_use_dst_for_bwd, true};
  if (variant == "gelu") return {algorithm::eltwise_gelu_tanh, algorithm::eltwise_gelu_tanh, false};
  if (variant == "silu") return {algorithm::eltwise_swish, algorithm::eltwise_swish, false, 1};
  return {algorithm::eltwise_relu, algorithm::eltwise_relu_use_dst_for_bwd, true};
}

}  // namespace

void build_activation(StepBuilder& b, int index) {
  const Layer& l = b.layer(index);
  const int producer = l.inputs.front();
  if (l.input.channels != l.output.channels) return b.leave_out(index);  // gated by half of its input
  const Function function = function_of(l.variant);
  const KernelTensor input = b.output(producer);
  const auto algorithm = function.from_output ? function.backward : function.forward;
  const dnnl::eltwise_forward::primitive_desc forward(
      dnnl::eltwise_forward::desc(dnnl::prop_kind::forward_training, algorithm, input.desc, function.alpha, 0.0F),
      StepBuilder::attributes(), cpu_engine());
  Kernel& f = b.kernel(index, StepPass::forward);
  const KernelTensor output = b.make(forward.dst_desc(), constant_values(0));
  b.output(index) = output;
  b.run(f, forward, l.variant, {{DNNL_ARG_SRC, input}}, {{DNNL_ARG_DST, output}});
  b.on_backward(index, [=, &b](const KernelTensor& gradient) {
    const dnnl::eltwise_backward::primitive_desc pd(
        dnnl::eltwise_backward::desc(algorithm, input.desc, input.desc, function.alpha, 0.0F),
        StepBuilder::attributes(), cpu_engine(), forward);
    Kernel& k = b.kernel(index, StepPass::backward_data);
    const KernelTensor diff_dst = b.in_layout(gradient, pd.diff_dst_desc(), k);
    const KernelTensor diff_src = b.make(pd.diff_src_desc(), constant_values(0));
    const StepBuilder::Argument known =
        function.from_output ? StepBuilder::Argument{DNNL_ARG_DST, output} : StepBuilder::Argument{DNNL_ARG_SRC, input};
    b.run(k, pd, b.layer(index).variant, {{DNNL_ARG_DIFF_DST, diff_dst}, known}, {{DNNL_ARG_DIFF_SRC, diff_src}});
    b.hand_back(producer, diff_src);
  });
}

void build_softmax(StepBuilder& b, int index) {
  const Layer& l = b.layer(index);
  const int producer = l.inputs.front();
  Kernel& f = b.kernel(index, StepPass::forward);
  const KernelTensor input = b.in_layout(b.output(producer), b.channels_last(l.input), f);
  const dnnl::softmax_forward::primitive_desc forward(
      dnnl::softmax_forward::desc(dnnl::prop_kind::forward_training, input.desc, 1), StepBuilder::attributes(),
      cpu_engine());
  const KernelTensor output = b.make(forward.dst_desc(), constant_values(0));
  b.output(index) = output;
  b.run(f, forward, "softmax", {{DNNL_ARG_SRC, input}}, {{DNNL_ARG_DST, output}});
  const bool is_loss = b.is_last(index) && l.output.positions() == 1;
  if (is_loss) b.make_labels(l.output.channels);
  b.on_backward(index, [=, &b](const KernelTensor& gradient) {
    Kernel& k = b.kernel(index, StepPass::backward_data);
    const KernelTensor diff_src = b.make(input.desc, constant_values(0));
    if (is_loss) {
      add_cross_entropy_gradient(k, output, b.labels(), diff_src);
    } else {
      const dnnl::softmax_backward::primitive_desc pd(dnnl::softmax_backward::desc(input.desc, input.desc, 1),
                                                      StepBuilder::attributes(), cpu_engine(), forward);
      const KernelTensor diff_dst = b.in_layout(gradient, pd.diff_dst_desc(), k);
      b.run(k, pd, "softmax", {{DNNL_ARG_DIFF_DST, diff_dst}, {DNNL_ARG_DST, output}}, {{DNNL_ARG_DIFF_SRC, diff_src}});
    }
    b.hand_back(producer, diff_src);
  });
}

void build_add(StepBuilder& b, int index) {
  const Layer& l = b.layer(index);
  Kernel& f = b.kernel(index, StepPass::forward);
  const Desc layout = b.output(l.inputs.front()).desc;
  std::vector<Desc> descs;
  std::vector<StepBuilder::Argument> reads;
  for (std::size_t i = 0; i < l.inputs.size(); ++i) {
    const KernelTensor input = b.in_layout(b.output(l.inputs[i]), layout, f);
    descs.push_back(input.desc);
    reads.push_back({DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), input});
  }
  const dnnl::sum::primitive_desc pd(layout, std::vector<float>(descs.size(), 1.0F), descs, cpu_engine(),
                                     StepBuilder::attributes());
  b.output(index) = b.make(layout, constant_values(0));
  b.run(f, pd, "sum", reads, {{DNNL_ARG_DST, b.output(index)}});
  b.on_backward(index, [=, &b](const KernelTensor& gradient) {
    for (const int input : b.layer(index).inputs) b.hand_back(input, gradient);
  });
}

void build_concat(StepBuilder& b, int index) {
  const Layer& l = b.layer(index);
  Kernel& f = b.kernel(index, StepPass::forward);
  std::vector<Desc> descs;
  std::vector<StepBuilder::Argument> reads;
  // One part's layout may not fit another's number of channels; channels next to each other always do.
  bool equal = true;
  for (const int input : l.inputs) {
    const auto& blocking = b.output(input).desc.data.format_desc.blocking;
    const auto& first = b.output(l.inputs.front()).desc.data.format_desc.blocking;
    equal = equal && blocking.inner_nblks == first.inner_nblks &&
            (blocking.inner_nblks == 0 || (blocking.inner_blks[0] == first.inner_blks[0] &&
                                           b.output(input).desc.dims()[1] % blocking.inner_blks[0] == 0));
  }
  for (std::size_t i = 0; i < l.inputs.size(); ++i) {
    KernelTensor part = b.output(l.inputs[i]);
    if (!equal || part.desc.data.format_desc.blocking.inner_nblks == 0)
      part = b.in_layout(part, b.channels_last(b.layer(l.inputs[i]).output), f);
    descs.push_back(part.desc);
    reads.push_back({DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), part});
  }
  const dnnl::concat::primitive_desc pd(1, descs, cpu_engine(), StepBuilder::attributes());
  const KernelTensor output = b.make(pd.dst_desc(), constant_values(0));
  b.output(index) = output;
  b.run(f, pd, "concat", reads, {{DNNL_ARG_DST, output}});
  b.on_backward(index, [=, &b](const KernelTensor& gradient) {
    Kernel& k = b.kernel(index, StepPass::backward_data);
    const KernelTensor whole = b.in_layout(gradient, output.desc, k);
    dnnl::memory::dim offset = 0;
    for (std::size_t i = 0; i < descs.size(); ++i) {
      Dims offsets(static_cast<std::size_t>(whole.desc.data.ndims), 0);
      offsets[1] = offset;
      offset += descs[i].dims()[1];
      const KernelTensor part = b.make(descs[i], constant_values(0));
      b.reorder({whole.buffer, whole.desc.submemory_desc(descs[i].dims(), offsets)}, part, k);
      b.hand_back(b.layer(index).inputs[i], part);
    }
  });
}

void build_dropout(StepBuilder& b, int index) {
  const int producer = b.layer(index).inputs.front();
  const KernelTensor input = b.output(producer);
  const auto bytes = static_cast<dnnl::memory::dim>(input.desc.get_size() / sizeof(float));
  const KernelTensor mask =
      b.make(Desc({bytes}, dnnl::memory::data_type::u8, dnnl::memory::format_tag::a), Buffer::Fill());
  b.output(index) = b.make(input.desc, constant_values(0));
  add_dropout(b.kernel(index, StepPass::forward), input, mask, b.output(index));
  b.on_backward(index, [=, &b](const KernelTensor& gradient) {
    Kernel& k = b.kernel(index, StepPass::backward_data);
    const KernelTensor diff_src = b.make(input.desc, constant_values(0));
    add_dropout_gradient(k, b.in_layout(gradient, input.desc, k), mask, diff_src);
    b.hand_back(producer, diff_src);
  });
}

void build_flatten(StepBuilder& b, int index) {
  // Another view of the same memory; what follows is told the dimensions that it has.
  const int producer = b.layer(index).inputs.front();
  b.output(index) = b.output(producer);
  b.on_backward(index, [=, &b](const KernelTensor& gradient) { b.hand_back(producer, gradient); });
}

void build_multiply(StepBuilder& b, int index) {
  const Layer& l = b.layer(index);
  const auto is_whole = [&](int input) { return b.layer(input).output == l.output; };
  if (l.inputs.size() != 2 || !std::ranges::all_of(l.inputs, is_whole)) return b.leave_out(index);
  Kernel& f = b.kernel(index, StepPass::forward);
  const KernelTensor first = b.output(l.inputs[0]);
  const KernelTensor second = b.in_layout(b.output(l.inputs[1]), first.desc, f);
  b.output(index) = b.make(first.desc, constant_values(0));
  add_product(f, first, second, b.output(index));
  b.on_backward(index, [=, &b](const KernelTensor& gradient) {
    Kernel& k = b.kernel(index, StepPass::backward_data);
    const KernelTensor diff_dst = b.in_layout(gradient, first.desc, k);
    const KernelTensor other[] = {second, first};
    for (int i = 0; i < 2; ++i) {
      const int producer = b.layer(index).inputs[static_cast<std::size_t>(i)];
      if (!b.needs_gradient(producer)) continue;
      const KernelTensor diff_src = b.make(first.desc, constant_values(0));
      add_product(k, diff_dst, other[i], diff_src);
      b.hand_back(producer, diff_src);
    }
  });
}

}  // namespace epocast
