// Embeddings and LSTM.

#include <cmath>

#include "workloads/microbench/loops.hpp"
#include "workloads/microbench/step_builder.hpp"

namespace epocast {
namespace {

void build_position_embedding(StepBuilder& b, int index) {
  const Layer& l = b.layer(index);
  const int producer = l.inputs.front();
  const Desc layout = b.channels_last(l.output);
  const Parameters& table = b.parameters(index, Desc({l.parameter_count()}, kFloat, Tag::a), uniform_values(0.02F));
  Kernel& f = b.kernel(index, StepPass::forward);
  const KernelTensor input = b.in_layout(b.output(producer), layout, f);
  b.output(index) = b.make(layout, constant_values(0));
  add_positions(f, input, table.value, b.output(index));
  b.on_backward(index, [=, &b, &table](const KernelTensor& gradient) {
    Kernel& k = b.kernel(index, StepPass::backward_weights);
    const KernelTensor diff_dst = b.in_layout(gradient, layout, k);
    add_positions_gradient(k, diff_dst, table.gradient);
    b.hand_back(producer, diff_dst);
  });
}

/// Layer outputs as oneDNN's recurrent primitives see them: time x batch x channels, in memory sample by sample.
Desc sequence(std::int64_t steps, std::int64_t batch, std::int64_t channels) {
  return {{steps, batch, channels}, kFloat, Tag::ntc};
}

}  // namespace

void build_embedding(StepBuilder& b, int index) {
  const Layer& l = b.layer(index);
  if (l.variant == "position") return build_position_embedding(b, index);
  const std::int64_t units = l.output.channels;
  const std::int64_t vocabulary = l.parameter_count() / units;
  const Parameters& table = b.parameters(index, Desc({vocabulary, units}, kFloat, Tag::ab), uniform_values(0.02F));
  const KernelTensor tokens = b.make(Desc({b.batch() * l.output.positions()}, dnnl::memory::data_type::s32, Tag::a),
                                     random_indices(static_cast<std::int32_t>(vocabulary)));
  b.output(index) = b.make(b.channels_last(l.output), constant_values(0));
  add_gather(b.kernel(index, StepPass::forward), table.value, tokens, units, b.output(index));
  bool is_shared = false;
  for (const Layer& other : b.model().layers) is_shared = is_shared || other.tied_to == index;
  b.on_backward(index, [=, &b, &table](const KernelTensor& gradient) {
    Kernel& k = b.kernel(index, StepPass::backward_weights);
    // The layer that shares the table comes later in the network, so its gradient is already there.
    if (!is_shared) add_clear(k, table.gradient);
    add_scatter(k, b.in_layout(gradient, b.channels_last(b.layer(index).output), k), tokens, units, table.gradient);
  });
}

void build_lstm(StepBuilder& b, int index) {
  using namespace dnnl;
  const Layer& l = b.layer(index);
  const int producer = l.inputs.front();
  const std::int64_t steps = l.steps;
  const std::int64_t inputs = l.input.channels;
  const std::int64_t units = l.output.channels;
  // The library's LSTM runs all steps at once; what comes back from other layers would have to be in between.
  if (l.parameters.front().values != 4 * inputs * units) return b.leave_out(index);
  const Desc none;
  const Desc src = sequence(steps, b.batch(), inputs);
  const Desc dst = sequence(steps, b.batch(), units);
  const Desc any_layer({1, 1, inputs, 4, units}, kFloat, Tag::any);
  const Desc any_iter({1, 1, units, 4, units}, kFloat, Tag::any);
  const Desc bias({1, 1, 4, units}, kFloat, Tag::ldgo);
  const auto direction = rnn_direction::unidirectional_left2right;
  const lstm_forward::primitive_desc forward(lstm_forward::desc(prop_kind::forward_training, direction, src, none, none,
                                                                any_layer, any_iter, bias, dst, none, none),
                                             StepBuilder::attributes(), cpu_engine());
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(units)));
  // Gradients come in a layout of their own; weights stay in this one.
  const Parameters& to_gates = b.parameters(index, forward.weights_layer_desc(), uniform_values(scale));
  const Parameters& to_state = b.parameters(index, forward.weights_iter_desc(), uniform_values(scale));
  const Parameters& shift = b.parameters(index, bias, constant_values(0));

  Kernel& f = b.kernel(index, StepPass::forward);
  const Desc image_in = b.channels_last(l.input);
  const Desc image_out = b.channels_last(l.output);
  const KernelTensor input{b.in_layout(b.output(producer), image_in, f).buffer, src};
  const KernelTensor output = b.make(dst, constant_values(0));
  b.output(index) = {output.buffer, image_out};
  const KernelTensor workspace = b.make(forward.workspace_desc(), Buffer::Fill());
  b.run(f, forward, "lstm",
        {{DNNL_ARG_SRC_LAYER, input},
         {DNNL_ARG_WEIGHTS_LAYER, to_gates.value},
         {DNNL_ARG_WEIGHTS_ITER, to_state.value},
         {DNNL_ARG_BIAS, shift.value}},
        {{DNNL_ARG_DST_LAYER, output}, {DNNL_ARG_WORKSPACE, workspace}});

  b.on_backward(index, [=, &b, &to_gates, &to_state, &shift](const KernelTensor& gradient) {
    const lstm_backward::primitive_desc pd(
        lstm_backward::desc(prop_kind::backward, direction, src, none, none, any_layer, any_iter, bias, dst, none, none,
                            src, none, none, any_layer, any_iter, bias, dst, none, none),
        StepBuilder::attributes(), cpu_engine(), forward);
    Kernel& k = b.kernel(index, StepPass::backward);
    const KernelTensor diff_dst{b.in_layout(gradient, image_out, k).buffer, dst};
    const KernelTensor diff_src = b.make(src, constant_values(0));
    const KernelTensor diff_gates = b.make(pd.diff_weights_layer_desc(), constant_values(0));
    const KernelTensor diff_state = b.make(pd.diff_weights_iter_desc(), constant_values(0));
    // The primitive adds to what is there.
    for (const KernelTensor& sum : {diff_gates, diff_state, shift.gradient}) add_clear(k, sum);
    b.run(k, pd, "lstm",
          {{DNNL_ARG_SRC_LAYER, input},
           {DNNL_ARG_WEIGHTS_LAYER, b.in_layout(to_gates.value, pd.weights_layer_desc(), k)},
           {DNNL_ARG_WEIGHTS_ITER, b.in_layout(to_state.value, pd.weights_iter_desc(), k)},
           {DNNL_ARG_BIAS, shift.value},
           {DNNL_ARG_DST_LAYER, output},
           {DNNL_ARG_WORKSPACE, workspace},
           {DNNL_ARG_DIFF_DST_LAYER, diff_dst}},
          {{DNNL_ARG_DIFF_SRC_LAYER, diff_src},
           {DNNL_ARG_DIFF_WEIGHTS_LAYER, diff_gates},
           {DNNL_ARG_DIFF_WEIGHTS_ITER, diff_state},
           {DNNL_ARG_DIFF_BIAS, shift.gradient}});
    b.reorder(diff_gates, to_gates.gradient, k);
    b.reorder(diff_state, to_state.gradient, k);
    b.hand_back(producer, {diff_src.buffer, image_in});
  });
}

}  // namespace epocast
