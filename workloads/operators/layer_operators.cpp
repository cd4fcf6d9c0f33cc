#include "workloads/operators/layer_operators.hpp"

#include <algorithm>

namespace epocast {

LayerOperators::LayerOperators(Dataflow& graph, const Model& model, double batch, bool fused_norms)
    : graph_(graph),
      model_(model),
      batch_(batch),
      fused_norms_(fused_norms),
      out_(model.layers.size()),
      weights_(model.layers.size()),
      biases_(model.layers.size()),
      is_read_(model.layers.size(), false) {
  for (const Layer& layer : model.layers)
    for (const int input : layer.inputs) is_read_[static_cast<std::size_t>(input)] = true;
}

void LayerOperators::add(std::size_t index) {
  const Layer& layer = model_.layers[index];
  index_ = index;
  current_ = &out_[index];
  graph_.layer = static_cast<std::uint32_t>(index);
  graph_.step = -1;
  graph_.phase = OperatorPhase::forward;
  switch (layer.kind) {
    case LayerKind::input: current_->whole = fed(layer); break;
    case LayerKind::convolution: convolution(layer); break;
    case LayerKind::fully_connected: fully_connected(layer); break;
    case LayerKind::pooling: pooling(layer); break;
    case LayerKind::batch_norm: batch_norm(layer); break;
    case LayerKind::layer_norm: layer_norm(layer); break;
    case LayerKind::rearrange: rearrange(layer); break;
    case LayerKind::embedding: embedding(layer); break;
    case LayerKind::linear: linear(layer); break;
    case LayerKind::attention: attention(layer); break;
    case LayerKind::lstm: lstm(layer); break;
    case LayerKind::e3d_lstm: e3d_lstm(layer); break;
    case LayerKind::local_response_norm: current_->whole = graph_.unary("LRN", whole(layer), 14); break;
    case LayerKind::flatten:
      current_->whole = layer.variant == "data" ? fed(layer) : graph_.reshape(whole(layer), values(layer.output));
      break;
    case LayerKind::softmax:  // one that is a result becomes part of the loss
      current_->whole = !is_read_[index]
                            ? whole(layer)
                            : softmax(whole(layer), batch_ * static_cast<double>(layer.output.positions()));
      break;
    case LayerKind::activation:
    case LayerKind::add:
    case LayerKind::concat:
    case LayerKind::dropout:
    case LayerKind::multiply: elementwise(layer); break;
  }
}

Tensor LayerOperators::fed(const Layer& layer) {
  const Tensor made = graph_.add("Placeholder", {}, values(layer.output));
  graph_.nodes().back().is_dynamic = graph_.is_dynamic;
  graph_.nodes().back().has_batch = true;
  return graph_.output_of(made.node);
}

Tensor LayerOperators::add_losses(bool with_decay) {
  Tensor total;
  for (std::size_t l = 1; l < out_.size(); ++l) {
    if (is_read_[l]) continue;
    graph_.layer = static_cast<std::uint32_t>(l);
    const Tensor loss = loss_on(l);
    total = total.exists() ? graph_.binary("Add", total, loss) : loss;
  }
  if (!with_decay) return total;
  const Tensor decay = weight_decay();
  return decay.exists() ? scalar(graph_.binary("Add", total, decay)) : total;
}

Tensor LayerOperators::weight_decay() {
  Tensors squares;
  for (std::size_t l = 0; l < weights_.size(); ++l) {
    const LayerKind kind = model_.layers[l].kind;
    const bool has_product =
        kind == LayerKind::convolution || kind == LayerKind::fully_connected || kind == LayerKind::linear;
    if (!has_product || weights_[l].node < 0 || model_.layers[l].tied_to >= 0) continue;
    graph_.layer = static_cast<std::uint32_t>(l);
    squares.push_back(scalar(graph_.add("L2Loss", {weights_[l].value}, 1)));
  }
  if (squares.empty()) return {};
  graph_.layer = static_cast<std::uint32_t>(model_.layers.size());
  return scalar(graph_.with_constant("Mul", scalar(graph_.add("AddN", squares, 1))));
}

/// Says that the newest node's output has no batch.
Tensor LayerOperators::scalar(Tensor t) {
  t.has_batch = graph_.nodes().back().has_batch = false;
  return t;
}

Tensor LayerOperators::loss_on(std::size_t index) {
  const Layer& layer = model_.layers[index];
  LayerValue& value = out_[index];
  graph_.step = -1;
  if (!value.whole.exists()) value.whole = graph_.concat(value.steps);
  const Tensor out = value.whole;
  if (layer.kind == LayerKind::softmax) {
    const double rows = batch_ * static_cast<double>(layer.output.positions());
    const Tensor labels = graph_.add("Placeholder", {}, rows);
    graph_.nodes().back().has_batch = true;
    const Tensor scores = graph_.reshape(out, out.values);
    const Tensor loss = graph_.add("SparseSoftmaxCrossEntropyWithLogits", {scores, labels}, rows, 5 * out.values);
    return scalar(graph_.reduce("Mean", loss, 1));
  }
  Tensor target = graph_.add("Placeholder", {}, out.values);
  target.has_batch = graph_.nodes().back().has_batch = out.has_batch;
  return scalar(graph_.add("L2Loss", {graph_.binary("Sub", out, target)}, 1, 2 * out.values));
}

Variable LayerOperators::parameter(const Layer& layer, std::size_t p, bool is_random) {
  const Variable v = graph_.variable(static_cast<double>(layer.parameters[p].values), is_random, !layer.frozen);
  if (p == 0) weights_[index_] = v;
  return v;
}

Tensor LayerOperators::whole(const Layer& layer, std::size_t i) {
  LayerValue& in = out_[static_cast<std::size_t>(layer.inputs[i])];
  if (!in.whole.exists()) {
    const Tensor all = graph_.concat(in.steps);
    in.whole = graph_.reshape(all, all.values);
  }
  return in.whole;
}

Tensors LayerOperators::unrolled(const Layer& layer, std::size_t i, int steps) {
  LayerValue& in = out_[static_cast<std::size_t>(layer.inputs[i])];
  if (in.steps.size() == static_cast<std::size_t>(steps)) return in.steps;
  const Tensor all = whole(layer, i);
  if (steps == 1) return {all};
  in.steps.clear();
  for (const Tensor& part : graph_.split(all, steps)) in.steps.push_back(graph_.view("Squeeze", {part}, part.values));
  return in.steps;
}

/// A convolution's weight: another layer's, fixed, of a length and a direction, or simply its own.
Tensor LayerOperators::filters(const Layer& layer) {
  Dataflow& d = graph_;
  if (layer.tied_to >= 0) return weights_[static_cast<std::size_t>(layer.tied_to)].value;
  if (layer.frozen) return d.constant(static_cast<double>(layer.weight_count()));
  const Tensor weight = parameter(layer, 0, true).value;
  const ParameterTensor* gain = layer.find_parameter(".gain");
  if (gain == nullptr) return weight;
  const Tensor lengths = d.variable(static_cast<double>(gain->values), false).value;
  const Tensor squares = d.reduce("Sum", d.binary("Mul", weight, weight), lengths.values);
  return d.binary("Mul", weight, d.binary("Mul", d.unary("Rsqrt", squares), lengths));
}

/// tf.nn.conv2d_transpose is the operation of a gradient, which reads the shape that it shall make.
void LayerOperators::convolution(const Layer& layer) {
  const Tensor weight = filters(layer);
  graph_.constant();  // tf.layers' dilation rate, read while the graph is built
  std::string type = layer.kernel_depth == 1 ? "Conv2D" : "Conv3D";
  Tensors in{whole(layer), weight};
  if (is_transposed(layer)) {
    type += "BackpropInput";
    in = {graph_.constant(4), weight, in.front()};
  }
  current_->whole = graph_.add(type.c_str(), in, values(layer.output), batch_ * layer.forward_flop);
  Tensor& bias = biases_[index_];
  if (layer.tied_to >= 0) bias = biases_[static_cast<std::size_t>(layer.tied_to)];
  if (const ParameterTensor* own = layer.find_parameter(".bias"); own != nullptr && !layer.frozen)
    bias = graph_.variable(static_cast<double>(own->values), false).value;
  if (bias.exists()) current_->whole = graph_.binary("BiasAdd", current_->whole, bias);
}

void LayerOperators::fully_connected(const Layer& layer) {
  const Variable weight = parameter(layer, 0, true);
  Tensor in = whole(layer);
  if (layer.input.positions() > 1) in = graph_.reshape(in, in.values);
  current_->whole = graph_.add("MatMul", {in, weight.value}, values(layer.output), batch_ * layer.forward_flop);
  if (layer.parameters.size() > 1)
    current_->whole = graph_.binary("BiasAdd", current_->whole, parameter(layer, 1, false).value);
}

void LayerOperators::pooling(const Layer& layer) {
  const bool is_global = layer.output.positions() == 1 && !layer.backward_reads_input;
  if (is_global) {
    current_->whole = graph_.reduce("Mean", whole(layer), values(layer.output));
    return;
  }
  const std::string type =
      std::string(layer.backward_reads_input ? "MaxPool" : "AvgPool") + (layer.kernel_depth > 1 ? "3D" : "");
  current_->whole = graph_.add(type.c_str(), {whole(layer)}, values(layer.output), batch_ * layer.forward_flop);
}

void LayerOperators::batch_norm(const Layer& layer) {
  if (layer.variant == "frozen") {
    const auto channels = static_cast<double>(layer.input.channels);
    const Tensor scale = graph_.constant(channels), shift = graph_.constant(channels);
    current_->whole = graph_.binary("Add", graph_.binary("Mul", whole(layer), scale), shift);
    return;
  }
  const Variable scale = parameter(layer, 0, false), shift = parameter(layer, 1, false);
  if (fused_norms_) {
    current_->whole = normalize_fused(whole(layer), scale.value, shift.value);
    return;
  }
  current_->whole = normalize(whole(layer), static_cast<double>(layer.input.channels), scale.value, shift.value, true);
}

void LayerOperators::layer_norm(const Layer& layer) {
  const Variable scale = parameter(layer, 0, false), shift = parameter(layer, 1, false);
  current_->whole =
      normalize(whole(layer), batch_ * static_cast<double>(layer.input.positions()), scale.value, shift.value, false);
}

/// tf.nn.moments and tf.nn.batch_normalization; with the moving averages that inference needs.
Tensor LayerOperators::normalize(const Tensor& in, double means, const Tensor& scale, const Tensor& shift,
                                 bool with_averages) {
  Dataflow& d = graph_;
  Tensor mean = d.reduce("Mean", in, means);
  const Tensor fixed = d.view("StopGradient", {mean}, means);
  Tensor variance = d.reduce("Mean", d.binary("SquaredDifference", in, fixed), means);
  if (with_averages) {
    for (Tensor* each : {&mean, &variance}) {
      *each = d.view("Squeeze", {*each}, means);
      each->has_batch = d.nodes().back().has_batch = false;
    }
    moving_average(mean);
    moving_average(variance);
  }
  // A mean for each channel, or for each of some rows and then broadcast over the channels.
  const double wide = with_averages ? means : means * scale.values;
  const Tensor inverse = d.add("Mul", {d.unary("Rsqrt", d.with_constant("Add", variance)), scale}, wide, wide);
  const Tensor scaled = d.binary("Mul", in, inverse);
  return d.binary("Add", scaled, d.binary("Sub", shift, d.binary("Mul", mean, inverse)));
}

Tensor LayerOperators::normalize_fused(const Tensor& in, const Tensor& scale, const Tensor& shift) {
  Dataflow& d = graph_;
  const Tensor no_mean = d.constant(), no_variance = d.constant();
  const Tensor out = d.add("FusedBatchNorm", {in, scale, shift, no_mean, no_variance}, in.values, 8 * in.values);
  for (int moment = 0; moment < 2; ++moment) moving_average({out.node, 0, scale.values});
  return out;
}

/// moving_averages.assign_moving_average with its default, zero_debias: the average, a biased one, and a counter.
void LayerOperators::moving_average(const Tensor& value) {
  Dataflow& d = graph_;
  const auto assign = [&](const char* type, const Variable& to, const Tensor& by) {
    const Tensor out = d.add(type, {{to.node, 0, value.values}, by}, 0, by.values);
    d.nodes().back().lifetime = Lifetime::reference;
    d.nodes().back().variable = to.node;
    return Dataflow::control(out);
  };
  d.phase = OperatorPhase::update;
  const Variable average = d.variable(value.values, false, false);
  const Variable biased = d.variable(value.values, false, false);
  const Variable count = d.variable(1, false, false);
  const Tensor decay = d.constant();
  const Tensor step = d.binary("Mul", d.binary("Sub", biased.value, value), decay);
  const Tensor updated = assign("AssignSub", biased, step);
  const Tensor counted = assign("AssignAdd", count, d.constant());
  const Tensor now = d.view("Identity", {{biased.node, 0, value.values}, updated}, value.values);
  const Tensor steps = d.view("Identity", {{count.node, 0, 1}, counted}, 1);
  const Tensor base = d.with_constant("Sub", decay);
  const Tensor correction = d.with_constant("Sub", d.binary("Pow", base, steps));
  assign("AssignSub", average, d.binary("Sub", average.value, d.binary("RealDiv", now, correction)));
  d.phase = OperatorPhase::forward;
}

/// tf.image.crop_and_resize of each map; which region is on which is part of the data.
void LayerOperators::regions(const Layer& layer) {
  Dataflow& d = graph_;
  const double maps = static_cast<double>(layer.inputs.size());
  Tensors parts;
  for (std::size_t i = 0; i < layer.inputs.size(); ++i) {
    const Tensor boxes = d.constant(4), map_of = d.constant(), size = d.constant(2);
    parts.push_back(d.add("CropAndResize", {whole(layer, i), boxes, map_of, size}, values(layer.output) / maps,
                          batch_ * layer.forward_flop / maps));
  }
  current_->whole = parts.size() > 1 ? d.concat(parts) : parts.front();
}

void LayerOperators::rearrange(const Layer& layer) {
  Dataflow& d = graph_;
  if (layer.variant == "regions") return regions(layer);
  const Tensor in = whole(layer);
  if (layer.variant == "resize") {
    const Tensor size = d.constant(2);
    current_->whole = d.add("ResizeNearestNeighbor", {in, size}, values(layer.output));
  } else if (layer.variant == "pixel_unshuffle") {
    current_->whole = d.add("SpaceToDepth", {in}, values(layer.output));
  } else if (layer.output.positions() > layer.input.positions()) {
    current_->whole = d.add("DepthToSpace", {in}, values(layer.output));
  } else if (layer.output.channels > layer.input.channels) {
    const Tensor sides = d.constant(8);
    current_->whole = d.add("Pad", {in, sides}, values(layer.output));
  } else {
    const Tensor begin = d.constant(3), end = d.constant(3), stride = d.constant(3);
    current_->whole = d.add("StridedSlice", {in, begin, end, stride}, values(layer.output));
  }
}

void LayerOperators::elementwise(const Layer& layer) {
  // As RNN cells with wrappers do: what reads only unrolled sequences of one length goes on step by step.
  std::size_t steps = 0;
  bool all_unrolled = true;
  for (const int i : layer.inputs) {
    const LayerValue& in = out_[static_cast<std::size_t>(i)];
    all_unrolled = all_unrolled && in.is_unrolled && (steps == 0 || steps == in.steps.size());
    steps = in.steps.size();
  }
  Tensors in;
  if (!all_unrolled) {
    for (std::size_t i = 0; i < layer.inputs.size(); ++i) in.push_back(whole(layer, i));
    current_->whole = elementwise(layer, in);
    return;
  }
  current_->is_unrolled = true;
  for (std::size_t s = 0; s < steps; ++s) {
    graph_.step = static_cast<std::int32_t>(s);
    in.clear();
    for (const int i : layer.inputs) in.push_back(out_[static_cast<std::size_t>(i)].steps[s]);
    current_->steps.push_back(elementwise(layer, in));
  }
}

Tensor LayerOperators::elementwise(const Layer& layer, const Tensors& in) {
  switch (layer.kind) {
    case LayerKind::activation: return activation(layer, in.front());
    case LayerKind::dropout: return dropout(in.front());
    case LayerKind::concat: return graph_.concat(in);
    default: break;
  }
  Tensor out = in.front();
  for (std::size_t i = 1; i < in.size(); ++i)
    out = graph_.binary(layer.kind == LayerKind::add ? "Add" : "Mul", out, in[i]);
  return out;
}

Tensor LayerOperators::activation(const Layer& layer, const Tensor& in) {
  Dataflow& d = graph_;
  if (layer.variant == "exp") return d.unary("Exp", in);
  if (layer.variant == "gated_tanh") {
    const Tensors half = d.split(in, 2);
    return d.binary("Mul", d.unary("Tanh", half[0], 4), d.unary("Sigmoid", half[1], 3));
  }
  if (!layer.backward_reads_input) {  // told apart by their work per value, see layer_reader.cpp
    const double work = layer.forward_flop / static_cast<double>(layer.output.values());
    if (work == 2) {  // leaky: tf.where(x < 0, 0.1 x, x)
      const Tensor is_negative = d.with_constant("Less", in);
      return d.add("Select", {is_negative, d.with_constant("Mul", in), in}, in.values);
    }
    return d.unary(work < 2 ? "Relu" : work < 3.5 ? "Sigmoid" : "Tanh", in, work);
  }
  const Tensor cube = d.with_constant("Mul", d.with_constant("Pow", in));  // GELU, Hendrycks and Gimpel 2016
  const Tensor inside = d.with_constant("Mul", d.binary("Add", in, cube));
  const Tensor share = d.with_constant("Mul", d.with_constant("Add", d.unary("Tanh", inside, 4)));
  return d.binary("Mul", in, share);
}

/// tf.nn.dropout of TensorFlow 1.14: what a random number keeps is scaled up.
Tensor LayerOperators::dropout(const Tensor& in) {
  Dataflow& d = graph_;
  const Tensor rate = d.constant();
  const Tensor shape = d.shape_of(in);
  const Tensor low = d.constant(), high = d.constant();
  Tensor random = d.add("RandomUniform", {shape}, in.values);
  random.is_dynamic = d.nodes().back().is_dynamic = in.is_dynamic;
  random.has_batch = d.nodes().back().has_batch = in.has_batch;
  const Tensor range = d.binary("Sub", high, low);
  random = d.binary("Add", d.binary("Mul", random, range), low);
  const Tensor one = d.constant();
  const Tensor kept = d.binary("Sub", one, rate);
  const Tensor whole_one = d.constant();
  const Tensor scale = d.binary("RealDiv", whole_one, kept);
  const Tensor mask = d.binary("GreaterEqual", random, rate);
  const Tensor scaled = d.binary("Mul", in, scale);
  return d.binary("Mul", scaled, d.add("Cast", {mask}, in.values));
}

Tensor LayerOperators::softmax(const Tensor& in, double rows) {
  const Tensor out = graph_.unary("Softmax", in, 5);
  graph_.nodes().back().rows = rows;
  return out;
}

}  // namespace epocast
