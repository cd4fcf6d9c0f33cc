#include "costmodels/layer_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include "sim/config.hpp"

namespace epocast {
namespace {

// FLOP per score of attention: scale 1, softmax 5 (as in the layer's own count).
constexpr double kScoreForward = 6;
// Megatron-LM's fused softmax works on four matrices of scores at a time (megatron/model/fused_softmax.py,
// is_kernel_available); others are cast to fp32, scaled, masked, normalised and cast back one by one. Bytes of a score
// in each step but the casts; backward the first reads the softmax, too.
constexpr std::int64_t kFusedSoftmaxMatrices = 4;
constexpr double kSoftmaxStepsForward[] = {8, 8, 8};
constexpr double kSoftmaxStepsBackward[] = {12, 8, 8};
constexpr double kWideBytes = 4;  // fp32

double d(std::int64_t x) { return static_cast<double>(x); }
std::int64_t at_least_one(double x) { return std::max<std::int64_t>(1, std::llround(std::ceil(x - 1e-9))); }

bool casts(const KernelStyle& style) { return style.value_bytes < kWideBytes; }
/// Bytes of a cast to fp32, or from it.
double cast_bytes(const KernelStyle& style) { return casts(style) ? style.value_bytes + kWideBytes : 0; }
/// Accesses of a value that autocast keeps in fp32.
double wide_accesses(const KernelStyle& style) { return style.framework.autocast ? kWideBytes / style.value_bytes : 1; }
/// Accesses of a mask, which has a byte per value.
double mask_accesses(const KernelStyle& style) { return 1 / style.value_bytes; }
/// A tensor read, one written, and its mask.
double dropout_accesses(const KernelStyle& style) { return 2 + mask_accesses(style); }

/// Bytes that are moved for each logit in one pass.
double loss_bytes(const KernelStyle& style, LossKernels kernels, bool forward) {
  switch (kernels) {
    case LossKernels::framework:  // read, written; backward: zeros, gradient and softmax read, gradient written
      return (forward ? 4 + 4 : 4 + (4 + 4 + 4)) + cast_bytes(style);
    case LossKernels::vocabulary_parallel:  // maximum 4, subtract 8, exponential 8, sum 4, divide 8; two scalings
      return (forward ? 32 : 16) + cast_bytes(style);
    case LossKernels::fused: break;
  }
  return (forward ? 1 : 2) * style.value_bytes;
}

struct Operations {
  double bytes;  ///< moved for each value
  int kernels;
};

/// Those of 0.5 x (1 + tanh(a (x + b x^3))) and its gradient, one after the other. Under autocast from the cube on in
/// fp32 (w), but what is of x alone (n); the result is cast for the product behind it.
Operations eager_gelu(const KernelStyle& style, bool forward) {
  const double n = style.value_bytes, w = wide_accesses(style) * n;
  const bool narrow = w > n;
  const double cast = narrow ? n + w : 0;
  if (forward) {
    const double cube = cast + 2 * w, scaled = 2 * w, sum = n + 2 * w, argument = 2 * w, tanh = 2 * w, one_more = 2 * w;
    const double half = 2 * n, product = n + 2 * w;
    return {cube + scaled + sum + argument + tanh + one_more + half + product + cast, narrow ? 8 + 2 : 8};
  }
  const double to_half = 3 * w + cast + 2 * n, to_tanh = n + 2 * w, of_tanh = 3 * w, argument = 2 * w;
  const double to_sum = cast + 2 * w, of_cube = 2 * w + 2 * w + 3 * w + cast, three_added = 2 * 3 * n;
  return {cast + to_half + to_tanh + of_tanh + argument + to_sum + of_cube + three_added, narrow ? 11 + 4 : 11};
}

/// Accesses of a value by the kernel that normalises, adds and rectifies. Forward: read for the statistics, read again
/// and written, and what is added; backward: gradient and input read for the sums, read again, the input's gradient
/// written, and the same for what was added. A bit of a mask says what the ReLU kept.
double fused_norm_accesses(const KernelStyle& style, bool forward) {
  const double mask = style.fused_norm == FusedNorm::alone ? 0 : mask_accesses(style) / 8;
  return (forward ? 3 : 5) + (style.fused_norm == FusedNorm::with_sum ? 1 : 0) + mask;
}

LayerKernel memory(const char* op, double values, KernelPass pass, double repeats = 1) {
  return {{MemoryShape{op, at_least_one(values)}, pass}, repeats};
}

/// y = W x for `samples` vectors, and its gradients.
KernelShape product(std::int64_t inputs, std::int64_t outputs, std::int64_t samples, KernelPass pass) {
  if (pass == KernelPass::forward) return {GemmShape{outputs, samples, inputs, true, false}, pass};
  if (pass == KernelPass::backward_data) return {GemmShape{inputs, samples, outputs, false, false}, pass};
  return {GemmShape{inputs, outputs, samples, false, true}, pass};
}

KernelShape convolution(const Layer& l, std::int64_t batch, KernelPass pass) {
  const KernelShape shape{convolution_shape(l, batch), pass};
  if (!is_transposed(l) || pass == KernelPass::backward_weights) return shape;
  return {shape.of, pass == KernelPass::forward ? KernelPass::backward_data : KernelPass::forward};
}

/// The same with other filters than the layer's.
KernelShape convolution(const Layer& l, std::int64_t batch, std::int64_t filters, KernelPass pass) {
  ConvolutionShape shape = convolution_shape(l, batch);
  shape.filters = filters;
  return {shape, pass};
}

/// What the FLOP count of an attention layer was made from (workloads/sequence_cost.cpp).
struct AttentionParts {
  std::int64_t heads, kv_heads, queries, key_features, value_features;
  double pairs;  ///< of query and key; half of them if causal
  bool additive, fused, causal, dropout;
  std::int64_t location_inputs = 0, location_filters = 0;  ///< of the convolution over softmaxes, see sequence_cost.hpp

  explicit AttentionParts(const Layer& l)
      : heads(std::max(l.heads, 1)),
        kv_heads(l.kv_heads > 0 ? l.kv_heads : heads),
        queries(l.output.width),
        // One input stacks the heads of queries and those of keys and values; of three, the first is the queries.
        key_features(l.inputs.size() == 1 ? l.input.channels / (heads + 2 * kv_heads) * heads : l.input.channels),
        value_features(l.output.channels),
        additive(!l.parameters.empty()),
        fused(l.backward_reads_output),
        causal(l.variant == "causal"),
        dropout(l.mask_values > 0) {
    double pair_flop = (additive ? 7 : 2) * d(key_features) + kScoreForward * d(heads) + 2 * d(value_features);
    if (l.variant == "location") {
      location_filters = l.parameters[2].values / key_features;
      location_inputs = l.parameters[1].values / location_filters;
      pair_flop += 2 * d(location_filters) * d(location_inputs + key_features) + d(key_features);
    }
    pairs = l.forward_flop / pair_flop;
  }

  std::int64_t keys() const { return at_least_one(pairs / d(queries)); }
  /// Positions among which a query's keys are: in causal attention twice as many, less one, as a mean query reads.
  std::int64_t positions() const {
    return causal ? std::max<std::int64_t>(1, std::llround(2 * pairs / d(queries)) - 1) : keys();
  }
  /// keys x queries = (keys x features) (features x queries) per head, or a product of the same size.
  LayerKernel scores(std::int64_t batch, KernelPass pass) const {
    return {{GemmShape{keys(), queries, key_features / heads, true, false, batch * heads}, pass}, 1};
  }
  LayerKernel sum(std::int64_t batch, KernelPass pass) const {
    return {{GemmShape{value_features / heads, queries, keys(), false, false, batch * heads}, pass}, 1};
  }
  /// Where positions have fewer before them than there are, samples are packed of sequences: as many of equal length.
  /// Where they have more, a device has a share of the queries (context parallelism).
  LayerKernel whole(std::int64_t batch, KernelPass pass) const {
    const std::int64_t seen = positions();
    const bool packed = causal && seen < queries;
    const double sequences = packed ? d(batch) * d(queries) / d(seen) : d(batch);
    return {{AttentionShape{.batch = at_least_one(sequences),
                            .heads = heads,
                            .kv_heads = kv_heads,
                            .queries = packed ? seen : queries,
                            .keys = seen,
                            .key_features = key_features / heads,
                            .value_features = value_features / heads,
                            .causal = causal,
                            .cached = false},
             pass == KernelPass::forward ? pass : KernelPass::backward},
            sequences / d(at_least_one(sequences))};
  }
};

/// Of the scores of so many matrices, samples x heads.
void add_softmax(std::vector<LayerKernel>& out, double scores, std::int64_t matrices, KernelPass pass,
                 const KernelStyle& style) {
  const bool forward = pass == KernelPass::forward;
  if (style.traffic == Traffic::layers || matrices % kFusedSoftmaxMatrices == 0) {
    out.push_back(memory("softmax", (forward ? 2 : 3) * scores, pass));
    return;
  }
  const auto step = [&](double bytes) { out.push_back(memory("softmax", bytes / style.value_bytes * scores, pass)); };
  if (casts(style)) step(cast_bytes(style));
  for (const double bytes : forward ? kSoftmaxStepsForward : kSoftmaxStepsBackward) step(bytes);
  if (casts(style)) step(cast_bytes(style));
}

/// Query by query, as each reads the softmaxes of those before: a convolution over them and a product to features, the
/// scores, softmax and weighted sum; backward each of them again, the sum twice.
std::vector<LayerKernel> location_attention(const AttentionParts& a, std::int64_t batch, KernelPass pass) {
  const double queries = d(a.queries);
  const std::int64_t keys = batch * a.keys();
  std::vector<LayerKernel> out{{product(a.location_inputs, a.location_filters, keys, pass), queries},
                               {product(a.location_filters, a.key_features, keys, pass), queries}};
  const double terms = d(keys) * d(a.key_features);
  if (pass == KernelPass::backward_weights) {
    out.push_back(memory("attention", terms, pass, queries));
    return out;
  }
  const int times = pass == KernelPass::forward ? 1 : 2;
  for (int i = 0; i < times; ++i)
    out.push_back({{GemmShape{a.value_features, 1, a.keys(), false, false, batch}, pass}, queries});
  out.push_back(memory("attention", (times + 1) * terms, pass, queries));
  out.push_back(memory("softmax", (times + 1) * d(keys), pass, queries));
  return out;
}

/// Heads are copied side by side for each product, gradients back (torch.matmul of permuted tensors), and each
/// operation on the scores is a kernel of its own, or each sum over them. Under autocast the softmax writes fp32, which
/// is dropped out so, and cast back for its product; casts are in what is compiled.
std::vector<LayerKernel> attention_by_operation(const AttentionParts& a, std::int64_t batch, KernelPass pass,
                                                const KernelStyle& style) {
  const double scores = d(batch) * a.pairs * d(a.heads);
  const double softmax = wide_accesses(style);
  const double keys = d(a.causal ? std::max(a.queries, a.positions()) : a.keys());
  std::vector<LayerKernel> out;
  const auto move = [&](const char* op, double accesses) { out.push_back(memory(op, accesses * scores, pass)); };
  const auto copy = [&](double values) { out.push_back(memory("rearrange", 2 * d(batch) * values, pass)); };
  const auto copy_inputs = [&] {
    copy(d(a.queries) * d(a.key_features));
    copy(keys * d(a.key_features));
    copy(keys * d(a.value_features));
  };
  const auto copy_output = [&] { copy(d(a.queries) * d(a.value_features)); };
  const bool compiled = style.framework.attention == AttentionKernels::compiled;
  const double mask = a.dropout ? mask_accesses(style) : 0;
  if (pass == KernelPass::forward) {
    copy_inputs();
    out.push_back(a.scores(batch, pass));
    if (compiled) {
      move("softmax", 3 + 1 + mask);  // read for the maximum, the sum and the quotient, which is written
      out.push_back(a.sum(batch, pass));
      copy_output();
      return out;
    }
    move("activation", 2);  // scaled
    move("add", 2);         // masked
    move("softmax", 1 + softmax);
    if (a.dropout) move("dropout", 2 * softmax + mask);
    if (softmax > 1) move("activation", softmax + 1);
    out.push_back(a.sum(batch, pass));
    copy_output();
    return out;
  }
  copy_output();
  for (int i = 0; i < 2; ++i) {
    out.push_back(a.sum(batch, pass));
    out.push_back(a.scores(batch, pass));
  }
  if (compiled) {
    move("softmax", 2 * (2 + mask) + 1);  // gradient and softmax read for the sum, and again
  } else {
    if (softmax > 1) move("activation", 1 + softmax);
    if (a.dropout) move("dropout", 2 * softmax + mask);
    move("softmax", 2 * softmax + 1);
    move("activation", 2);
  }
  copy_inputs();
  return out;
}

std::vector<LayerKernel> attention(const Layer& layer, std::int64_t batch, KernelPass pass, const KernelStyle& style) {
  const AttentionParts a(layer);
  if (a.location_filters > 0) return location_attention(a, batch, pass);
  const double scores = d(batch) * a.pairs * d(a.heads);
  const double terms = d(batch) * a.pairs * d(a.key_features);  // of additive scores
  std::vector<LayerKernel> out;
  if (pass == KernelPass::backward_weights) {
    if (a.additive) out.push_back(memory("attention", terms, pass));
    return out;
  }
  if (a.fused && style.fused_attention) return {a.whole(batch, pass)};
  if (!a.fused && !a.additive && style.framework.attention != AttentionKernels::fused_softmax)
    return attention_by_operation(a, batch, pass, style);
  if (pass == KernelPass::forward) {
    out.push_back(a.additive ? memory("attention", 2 * terms, pass) : a.scores(batch, pass));
    if (!a.fused) add_softmax(out, scores, batch * a.heads, pass, style);
    if (a.dropout) out.push_back(memory("dropout", dropout_accesses(style) * scores, pass));
    out.push_back(a.sum(batch, pass));
    return out;
  }
  for (int i = 0; i < 2; ++i) {
    out.push_back(a.sum(batch, pass));                      // gradients of the values and of the softmax
    if (!a.additive) out.push_back(a.scores(batch, pass));  // of query and key
  }
  if (a.additive) out.push_back(memory("attention", 3 * terms, pass));
  if (a.fused) out.push_back(a.scores(batch, pass));  // once more, instead of from memory
  if (a.dropout) out.push_back(memory("dropout", dropout_accesses(style) * scores, pass));
  if (!a.fused) add_softmax(out, scores, batch * a.heads, pass, style);
  return out;
}

std::vector<LayerKernel> lstm(const Layer& layer, std::int64_t batch, KernelPass pass) {
  const std::int64_t inputs = layer.input.channels;
  const std::int64_t units = layer.output.channels;
  const std::int64_t feedback = layer.parameters.empty() ? 0 : layer.parameters.front().values / (4 * units) - inputs;
  const double input_flop = 8 * d(inputs) * d(units) * layer.steps;
  const double hidden_flop = 8 * d(units + feedback) * d(units) * layer.steps;
  std::vector<LayerKernel> out;
  // Nothing below may be trained; the recurrence is gone back through all the same.
  if (pass != KernelPass::backward_data || layer.backward_data_flop > hidden_flop + 0.9 * input_flop)
    out.push_back({product(inputs, 4 * units, batch * layer.steps, pass), 1});
  out.push_back({{RecurrentShape{4, units, batch, layer.steps}, pass}, 1});
  if (feedback > 0) out.push_back({product(feedback, 4 * units, batch, pass), d(layer.steps)});
  return out;
}

/// FLOP as in set_e3d_lstm_flop(): 7 convolutions of the input, 10 of states and 2 of 1x1x1, recall, gates.
std::vector<LayerKernel> e3d_lstm(const Layer& layer, std::int64_t batch, KernelPass pass) {
  const std::int64_t units = layer.output.channels;
  const std::int64_t window = layer.output.depth / layer.steps;
  Layer input = layer, state = layer, mix = layer;
  state.input.channels = mix.input.channels = units;
  mix.kernel_depth = mix.kernel_height = mix.kernel_width = 1;
  mix.input.channels = 2 * units;
  // Gradients of weights are summed over all steps at once; states depend on each other.
  const bool at_once = pass == KernelPass::backward_weights;
  const double steps = at_once ? 1 : layer.steps;
  if (!at_once) state.output.depth = mix.output.depth = window;
  std::vector<LayerKernel> out;
  const double taps = d(layer.kernel_depth) * layer.kernel_height * layer.kernel_width;
  const double positions = d(layer.output.positions());
  const double input_flop = 14 * taps * d(layer.input.channels) * d(units) * positions;
  const double state_flop = 2 * (10 * taps + 2) * d(units) * d(units) * positions;
  const std::int64_t in_window = layer.output.positions() / layer.steps;
  const double scores = d(in_window) * d(in_window) * layer.steps * (layer.steps + 1) / 2;
  if (pass != KernelPass::backward_data ||
      layer.backward_data_flop > state_flop + 8 * d(units) * scores + 0.9 * input_flop)
    out.push_back({convolution(input, batch, 7 * units, pass), 1});
  out.push_back({convolution(state, batch, 10 * units, pass), steps});
  out.push_back({convolution(mix, batch, units, pass), steps});
  if (!at_once) {
    const std::int64_t recalled = at_least_one(d(in_window) * (layer.steps + 1) / 2);  // positions, on average
    const int times = pass == KernelPass::forward ? 1 : 2;
    for (int i = 0; i < times; ++i) {
      out.push_back({{GemmShape{recalled, in_window, units, true, false, batch}, pass}, steps});
      out.push_back({{GemmShape{units, in_window, recalled, false, false, batch}, pass}, steps});
    }
    out.push_back(memory("softmax", (times + 1) * d(batch) * scores / steps, pass, steps));
    out.push_back(memory("e3d_lstm", 12 * d(batch) * d(units) * positions / steps, pass, steps));
  }
  return out;
}

/// Values that the kernels of a layer without products read and write in one pass, by kind.
std::vector<LayerKernel> memory_kernels(const Layer& layer, std::int64_t batch, KernelPass pass,
                                        const KernelStyle& style) {
  const double inputs = d(batch) * d(layer.input_values);
  const double outputs = d(batch) * d(layer.output.values());
  const bool forward = pass == KernelPass::forward;
  const bool weights = pass == KernelPass::backward_weights;
  const double wide = wide_accesses(style);
  const bool sums_gradients = layer.kind == LayerKind::add && !forward;  // where branches part
  if (style.fused_norm == FusedNorm::part_of_norm && !sums_gradients) return {};
  if (layer.kind == LayerKind::batch_norm && style.fused_norm != FusedNorm::no) {
    if (weights) return {};  // sums of the same kernel
    return {memory("activation", fused_norm_accesses(style, forward) * outputs, pass)};
  }
  switch (layer.kind) {
    case LayerKind::layer_norm: {
      const char* op = layer.variant == "rms" ? "rms_norm" : "layer_norm";
      // dx: x and dy read, dx written; gradients of scale and shift: both read once more.
      std::vector<LayerKernel> out{
          memory(op, wide * (forward || weights ? inputs + outputs : 2 * inputs + outputs), pass)};
      if (wide > 1 && !weights) out.push_back(memory("activation", (1 + wide) * outputs, pass));  // cast, and back
      return out;
    }
    case LayerKind::activation:
      if (weights) return {};
      if (layer.variant == "rotary") {
        const double turned = (layer.heads + layer.kv_heads) / (layer.heads + 2.0 * layer.kv_heads);
        return {memory("rotary", 2 * turned * outputs, pass)};
      }
      if (layer.variant == "gelu" && style.framework.gelu == GeluKernels::eager) {
        const Operations gelu = eager_gelu(style, forward);
        LayerKernel together = memory("activation", gelu.bytes / style.value_bytes * outputs, pass);
        together.launches = gelu.kernels;
        return {together};
      }
      return {memory(layer.variant == "swiglu" ? "swiglu" : "activation",
                     forward ? inputs + outputs : 2 * inputs + outputs, pass)};
    case LayerKind::dropout:
      if (weights || (forward && layer.variant == "in_sum")) return {};
      return {memory("dropout", dropout_accesses(style) * outputs, pass)};
    case LayerKind::add: {
      if (weights) return {};
      // A branch comes narrow to the sum of those before it, and its gradient goes back so.
      const double of_sum = style.has_norms ? wide : 1;
      const double narrow = of_sum > 1 ? outputs : 0;
      if (!forward) {
        // The sum of the gradients of what was branched off.
        std::vector<LayerKernel> out{memory("gradient_sum", of_sum * (inputs + outputs), pass)};
        if (narrow > 0) out.push_back(memory("activation", (1 + of_sum) * narrow, pass));
        return out;
      }
      const double mask = layer.variant == "in_sum" ? mask_accesses(style) * outputs : 0;
      return {memory("add", narrow + of_sum * (inputs + outputs - narrow) + mask, pass)};
    }
    case LayerKind::softmax:
      if (weights) return {};
      return {memory("loss", loss_bytes(style, style.framework.loss, forward) / style.value_bytes * outputs, pass)};
    default: break;
  }
  const auto whole = layer_kernel(layer, batch, pass);
  if (!whole) return {};
  return {{*whole, 1}};
}

/// Whether a layer moves what a program says even where others move what they read and write.
bool moves_by_program(const Layer& layer, const KernelStyle& style) {
  if (style.fused_norm != FusedNorm::no) return true;
  if (layer.kind == LayerKind::softmax) return style.framework.loss != LossKernels::framework;
  return layer.kind == LayerKind::activation && layer.variant == "gelu" && style.framework.gelu != GeluKernels::fused;
}

std::vector<LayerKernel> linear(const Layer& layer, std::int64_t batch, KernelPass pass, const KernelStyle& style) {
  const auto whole = layer_kernel(layer, batch, pass);
  if (!whole) return {};
  std::vector<LayerKernel> out{{*whole, 1}};
  if (layer.variant == "experts" && layer.parameters.size() > 1)
    out.push_back({product(layer.input.channels, layer.parameters[1].values / layer.input.channels,
                           batch * layer.input.positions(), pass),
                   1});
  const bool bias = layer.variant != "experts" && layer.parameters.size() + (layer.tied_to >= 0 ? 1 : 0) > 1;
  if (style.traffic == Traffic::kernels && bias && pass == KernelPass::backward_weights)
    out.push_back(memory("bias", d(batch) * d(layer.output.values()), pass));
  return out;
}

}  // namespace

bool framework_decides(const Layer& layer, const KernelStyle& style) {
  return moves_by_program(layer, style) || (layer.kind == LayerKind::softmax && style.framework.metrics > 0);
}

KernelStyle kernel_style(Precision precision, bool fused_attention) {
  return {.traffic = precision == Precision::fp32 ? Traffic::layers : Traffic::kernels,
          .fused_attention = fused_attention,
          .value_bytes = bytes_per_value(precision)};
}

ConvolutionShape convolution_shape(const Layer& l, std::int64_t batch) {
  const Shape& in = is_transposed(l) ? l.output : l.input;
  const Shape& out = is_transposed(l) ? l.input : l.output;
  return {batch * out.depth, in.channels * l.kernel_depth,
          in.height,         in.width,
          out.channels,      l.kernel_height,
          l.kernel_width,    out.height,
          out.width,         l.stride,
          l.groups};
}

std::optional<KernelShape> layer_kernel(const Layer& layer, std::int64_t batch, KernelPass pass) {
  if (layer.kind == LayerKind::input || layer.kind == LayerKind::flatten) return std::nullopt;
  if (pass == KernelPass::backward_data && !passes_gradients_on(layer)) return std::nullopt;
  if (pass == KernelPass::backward_weights && layer.backward_weights_flop <= 0) return std::nullopt;
  if (layer.kind == LayerKind::convolution) return convolution(layer, batch, pass);
  if (layer.kind == LayerKind::fully_connected) return product(layer.input_values, layer.output.values(), batch, pass);
  if (layer.variant == "experts") {
    const bool combines = layer.parameters.size() == 1;  // see workloads/sequence_layers.cpp
    const std::int64_t chosen = layer.experts_per_position;
    const std::int64_t samples = at_least_one(d(batch) * d(layer.input.positions()) * d(chosen) / layer.experts);
    KernelShape shape = product(combines ? layer.input.channels / chosen : layer.input.channels,
                                combines ? layer.output.channels : layer.output.channels / chosen, samples, pass);
    std::get<GemmShape>(shape.of).count = layer.experts;
    return shape;
  }
  // Positions of the input: of the output, a device of a team may keep only some.
  if (layer.kind == LayerKind::linear)
    return product(layer.input.channels, layer.output.channels, batch * layer.input.positions(), pass);
  double values = d(batch) * d(layer.input_values + layer.output.values());
  // Of a table only the rows that are looked up.
  const double parameters = d(layer.weight_count());
  values += layer.kind == LayerKind::embedding ? std::min(parameters, d(batch) * d(layer.output.values())) : parameters;
  if (layer.kind == LayerKind::batch_norm && layer.variant != "frozen") {
    const char* op = layer.output.depth > 1 ? "batch_norm_3d" : "batch_norm";
    return KernelShape{MemoryShape{op, at_least_one(values), layer.output.channels}, pass};
  }
  return KernelShape{MemoryShape{to_string(layer.kind), at_least_one(values)}, pass};
}

std::vector<LayerKernel> layer_kernels(const Layer& layer, std::int64_t batch, KernelPass pass,
                                       const KernelStyle& style) {
  const bool counts_accesses = style.traffic == Traffic::kernels;
  // Gradients that meet where branches part: no work of the layer, but traffic.
  if (counts_accesses && layer.kind == LayerKind::add && layer.needs_gradient)
    return memory_kernels(layer, batch, pass, style);
  const auto whole = layer_kernel(layer, batch, pass);
  if (!whole) return {};
  switch (layer.kind) {
    case LayerKind::attention: return attention(layer, batch, pass, style);
    case LayerKind::lstm: return lstm(layer, batch, pass);
    case LayerKind::e3d_lstm: return e3d_lstm(layer, batch, pass);
    case LayerKind::linear: return linear(layer, batch, pass, style);
    default: break;
  }
  std::vector<LayerKernel> out{{*whole, 1}};
  if (std::string_view(whole->family()) == "memory" && (counts_accesses || moves_by_program(layer, style)))
    out = memory_kernels(layer, batch, pass, style);
  if (layer.kind == LayerKind::softmax && pass == KernelPass::forward && style.framework.metrics > 0) {
    const double bytes = loss_bytes(style, LossKernels::framework, true) * d(batch) * d(layer.output.values());
    out.push_back(memory("loss", bytes / style.value_bytes, pass, style.framework.metrics));
  }
  return out;
}

}  // namespace epocast
