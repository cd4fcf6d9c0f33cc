// Fully connected layers, along sequences too.

#include <cmath>

#include "workloads/microbench/step_builder.hpp"

namespace epocast {
namespace {

struct Product {
  int index = 0;
  KernelTensor input;     ///< samples first
  Desc source;            ///< its dimensions, any layout
  std::int64_t rows = 0;  ///< samples, or samples times positions
  KernelTensor tied;      ///< the weight to use, if it is another layer's
  KernelTensor tied_gradient;
};

/// Plans output = input * weight + bias. `seen` gives the output its shape; `hand_back` takes the input's gradient.
void build_product(StepBuilder& b, const Product& p, const std::function<KernelTensor(const KernelTensor&)>& seen,
                   const std::function<KernelTensor(const KernelTensor&, Kernel&)>& as_rows,
                   const std::function<void(const KernelTensor&)>& hand_back) {
  using namespace dnnl;
  const Layer& l = b.layer(p.index);
  const std::int64_t units = l.output.channels;
  Dims weight_dims = p.source.dims();
  weight_dims[0] = units;
  const bool is_tied = p.tied.buffer != nullptr;
  const Desc weights = is_tied ? p.tied.desc : Desc(weight_dims, kFloat, Tag::any);
  const Desc dst({p.rows, units}, kFloat, Tag::ab);
  const bool has_bias = l.parameters.size() > (is_tied ? 0 : 1);
  const Desc bias = has_bias ? Desc({units}, kFloat, Tag::a) : Desc();
  const auto attributes = StepBuilder::attributes();
  const inner_product_forward::primitive_desc forward(
      has_bias ? inner_product_forward::desc(prop_kind::forward_training, p.source, weights, bias, dst)
               : inner_product_forward::desc(prop_kind::forward_training, p.source, weights, dst),
      attributes, cpu_engine());

  KernelTensor value = p.tied;
  KernelTensor value_gradient = p.tied_gradient;
  if (!is_tied) {
    const double fan_in = static_cast<double>(l.parameters.front().values) / static_cast<double>(units);
    const Parameters& weight =
        b.parameters(p.index, forward.weights_desc(), uniform_values(static_cast<float>(std::sqrt(6 / fan_in))));
    value = weight.value;
    value_gradient = weight.gradient;
  }
  KernelTensor shift, shift_gradient;
  if (has_bias) {
    const Parameters& parameters = b.parameters(p.index, bias, constant_values(0));
    shift = parameters.value;
    shift_gradient = parameters.gradient;
  }

  Kernel& f = b.kernel(p.index, StepPass::forward);
  const KernelTensor input = b.in_layout(p.input, forward.src_desc(), f);
  const KernelTensor rows = b.make(dst, constant_values(0));
  std::vector<StepBuilder::Argument> reads{{DNNL_ARG_SRC, input}, {DNNL_ARG_WEIGHTS, value}};
  if (has_bias) reads.push_back({DNNL_ARG_BIAS, shift});
  b.run(f, forward, "product", reads, {{DNNL_ARG_DST, rows}});
  b.output(p.index) = seen(rows);

  b.on_backward(p.index, [=, &b](const KernelTensor& gradient) {
    const int producer = b.layer(p.index).inputs.front();
    if (b.needs_gradient(producer)) {
      const inner_product_backward_data::primitive_desc pd(
          inner_product_backward_data::desc(p.source, weights, Desc({p.rows, units}, kFloat, Tag::any)), attributes,
          cpu_engine(), forward);
      Kernel& k = b.kernel(p.index, StepPass::backward_data);
      const KernelTensor diff_dst = b.in_layout(as_rows(gradient, k), pd.diff_dst_desc(), k);
      const KernelTensor matrix = b.in_layout(value, pd.weights_desc(), k);
      const KernelTensor diff_src = b.make(pd.diff_src_desc(), constant_values(0));
      b.run(k, pd, "product", {{DNNL_ARG_DIFF_DST, diff_dst}, {DNNL_ARG_WEIGHTS, matrix}},
            {{DNNL_ARG_DIFF_SRC, diff_src}});
      hand_back(diff_src);
    }
    const Desc any({p.rows, units}, kFloat, Tag::any);
    const inner_product_backward_weights::primitive_desc pd(
        has_bias ? inner_product_backward_weights::desc(p.source, weights, bias, any)
                 : inner_product_backward_weights::desc(p.source, weights, any),
        attributes, cpu_engine(), forward);
    Kernel& k = b.kernel(p.index, StepPass::backward_weights);
    const KernelTensor source = b.in_layout(input, pd.src_desc(), k);
    const KernelTensor diff_dst = b.in_layout(as_rows(gradient, k), pd.diff_dst_desc(), k);
    const bool direct = pd.diff_weights_desc() == value_gradient.desc;
    const KernelTensor made = direct ? value_gradient : b.make(pd.diff_weights_desc(), constant_values(0));
    std::vector<StepBuilder::Argument> writes{{DNNL_ARG_DIFF_WEIGHTS, made}};
    if (has_bias) writes.push_back({DNNL_ARG_DIFF_BIAS, shift_gradient});
    b.run(k, pd, "product", {{DNNL_ARG_SRC, source}, {DNNL_ARG_DIFF_DST, diff_dst}}, writes);
    if (!direct) b.reorder(made, value_gradient, k);
  });
}

}  // namespace

void build_fully_connected(StepBuilder& b, int index) {
  const Layer& l = b.layer(index);
  const int producer = l.inputs.front();
  Product p;
  p.index = index;
  p.input = b.output(producer);
  p.rows = b.batch();
  // A vector is a matrix to the library; a blocked layout may refuse to be seen so.
  const Desc vectors = p.input.desc.reshape({b.batch(), l.input_values}, true);
  if (l.input.positions() == 1 && vectors) p.input.desc = vectors;
  p.source = Desc(p.input.desc.dims(), kFloat, Tag::any);
  const Desc shape = b.output(producer).desc;
  build_product(
      b, p,
      [&](const KernelTensor& rows) {
        return KernelTensor{rows.buffer, rows.desc.reshape(b.dims(b.layer(index).output))};
      },
      [=, &b](const KernelTensor& gradient, Kernel& kernel) {
        return b.reshaped(gradient, {p.rows, b.layer(index).output.channels}, kernel);
      },
      [=, &b](const KernelTensor& gradient) {
        b.hand_back(producer, b.reshaped(gradient, shape.dims(), b.last_kernel()));
      });
}

void build_linear(StepBuilder& b, int index) {
  const Layer& l = b.layer(index);
  const int producer = l.inputs.front();
  const std::int64_t rows = b.batch() * l.input.positions();
  const Desc tokens({rows, l.input.channels}, kFloat, Tag::ab);
  const Desc image_in = b.channels_last(l.input);
  const Desc image_out = b.channels_last(l.output);
  // The reorder, if one is due, is the layer's own.
  Kernel& k = b.kernel(index, StepPass::forward);
  Product p;
  p.index = index;
  p.input = {b.in_layout(b.output(producer), image_in, k).buffer, tokens};
  p.rows = rows;
  p.source = Desc({rows, l.input.channels}, kFloat, Tag::any);
  if (l.tied_to >= 0)
    for (const Parameters& parameters : b.all_parameters())
      if (parameters.layer == l.tied_to && p.tied.buffer == nullptr) {
        // A table of vocabulary x units is the weight of units inputs and vocabulary outputs.
        p.tied = {parameters.value.buffer, Desc({l.output.channels, l.input.channels}, kFloat, Tag::ab)};
        p.tied_gradient = {parameters.gradient.buffer, p.tied.desc};
      }
  const std::int64_t units = l.output.channels;
  build_product(
      b, p,
      [=](const KernelTensor& made) {
        return KernelTensor{made.buffer, image_out};
      },
      [=, &b](const KernelTensor& gradient, Kernel& kernel) {
        return KernelTensor{b.in_layout(gradient, image_out, kernel).buffer, Desc({rows, units}, kFloat, Tag::ab)};
      },
      [=, &b](const KernelTensor& gradient) {
        // Any layout of a matrix but rows is rare here.
        if (gradient.desc == tokens) {
          b.hand_back(producer, {gradient.buffer, image_in});
        } else {
          Kernel& last = b.last_kernel();
          b.hand_back(producer, {b.in_layout(gradient, tokens, last).buffer, image_in});
        }
      });
}

}  // namespace epocast
