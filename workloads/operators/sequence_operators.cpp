// Operations of layers that work along sequences.
#include <algorithm>

#include "workloads/operators/layer_operators.hpp"

namespace epocast {

void LayerOperators::embedding(const Layer& layer) {
  const Variable table = parameter(layer, 0, true);
  if (layer.input.channels > 1) {  // positions: the first rows of the table, added
    const Tensor begin = graph_.constant(2), end = graph_.constant(2), stride = graph_.constant(2);
    const Tensor rows =
        graph_.add("StridedSlice", {table.value, begin, end, stride}, static_cast<double>(layer.output.values()));
    current_->whole = graph_.binary("Add", whole(layer), rows);
    return;
  }
  const Tensor axis = graph_.constant();
  current_->whole = graph_.add("GatherV2", {table.value, whole(layer), axis}, values(layer.output));
  const bool is_tied = std::any_of(model_.layers.begin(), model_.layers.end(),
                                   [&](const Layer& l) { return l.tied_to == static_cast<int>(index_); });
  if (!is_tied) graph_.set_sparse(table);
}

void LayerOperators::linear(const Layer& layer) {
  std::size_t used = 0;
  const bool is_tied = layer.tied_to >= 0;
  Tensor weight;
  if (is_tied) {
    weight = graph_.transpose(weights_[static_cast<std::size_t>(layer.tied_to)].value);
  } else {
    weight = parameter(layer, used++, true).value;
  }
  const Tensor in = whole(layer);
  current_->whole = sequence_product(in, weight, values(layer.output), batch_ * layer.forward_flop);
  if (layer.parameters.size() > used)
    current_->whole = graph_.binary("BiasAdd", current_->whole, parameter(layer, used, false).value);
}

/// tf.tensordot over the last dimension. Sequences from unrolled cells are matrices already.
Tensor LayerOperators::sequence_product(const Tensor& in, const Tensor& weight, double out_values, double work) {
  Dataflow& d = graph_;
  const LayerValue& from = out_[static_cast<std::size_t>(model_.layers[index_].inputs.front())];
  if (from.is_unrolled) return d.add("MatMul", {in, weight}, out_values, work);
  Tensor matrix;
  Tensors rest;
  if (in.is_dynamic) {
    const Tensor axes = d.constant(), free = d.constant(2);
    const Tensor shape = d.shape_of(in);
    const auto sizes = [&](const Tensor& which) {
      const Tensor axis = d.constant();
      return d.add("GatherV2", {shape, which, axis}, 2);
    };
    const Tensor free_sizes = sizes(free), axes_sizes = sizes(axes);
    const Tensor rows = d.reduce("Prod", free_sizes, 1), columns = d.reduce("Prod", axes_sizes, 1);
    const Tensor order = d.concat({free, axes});
    const Tensor size = d.add("Pack", {rows, columns}, 2);
    const Tensor ordered = d.view("Transpose", {in, order}, in.values);
    matrix = d.view("Reshape", {ordered, size}, in.values);
    rest = {free_sizes};
  } else {
    matrix = d.reshape(d.transpose_in_place(in), in.values);
  }
  const Tensor factor = d.reshape(d.transpose_in_place(weight), weight.values);
  Tensor product = d.add("MatMul", {matrix, factor}, out_values, work);
  product.is_dynamic = d.nodes().back().is_dynamic = in.is_dynamic;
  if (rest.empty()) return d.reshape(product, out_values);
  rest.push_back(d.constant());
  return d.view("Reshape", {product, d.concat(rest)}, out_values);
}

/// tf.concat(tf.split(x, heads, 2), 0): heads become part of the batch.
Tensor LayerOperators::split_heads(const Tensor& in, int heads) {
  return heads == 1 ? in : graph_.concat(graph_.split(in, heads));
}

/// Keys that only fill up a batch of shorter texts get a very negative score.
Tensor LayerOperators::key_mask(const Tensor& scores) {
  Dataflow& d = graph_;
  const auto first_size = [&](const Tensor& of) {
    const Tensor shape = d.shape_of(of);
    const Tensor begin = d.constant(), end = d.constant(), stride = d.constant();
    return d.view("StridedSlice", {shape, begin, end, stride}, 1);
  };
  const Tensor tokens = out_.front().whole;
  const Tensor is_filler = d.add("Cast", {d.with_constant("Equal", tokens)}, tokens.values);
  const Tensor scores_rows = first_size(scores), token_rows = first_size(is_filler);
  const Tensor copies = d.binary("FloorDiv", scores_rows, token_rows);
  const Tensor one = d.constant();
  const Tensor repeated = d.add("Tile", {is_filler, d.add("Pack", {copies, one}, 2)}, tokens.values);
  const Tensor row = d.view("ExpandDims", {repeated, d.constant()}, tokens.values);
  return d.binary("Add", scores, d.with_constant("Mul", row));
}

void LayerOperators::attention(const Layer& layer) {
  Dataflow& d = graph_;
  Tensor query = whole(layer), key = query, value = query;
  double queries = static_cast<double>(layer.output.width), keys = queries;
  if (layer.inputs.size() == 1) {
    const Tensors parts = d.split(query, 3);
    query = parts[0];
    key = parts[1];
    value = parts[2];
  } else {
    key = whole(layer, 1);
    value = whole(layer, 2);
    keys = static_cast<double>(model_.layers[static_cast<std::size_t>(layer.inputs[1])].output.width);
  }
  const double pairs = batch_ * layer.heads * queries * keys;
  const double product = 2 * batch_ * queries * keys;  // FLOP per feature
  if (!layer.parameters.empty()) {                     // additive scores: v . tanh(q + k)
    const Variable weight = parameter(layer, 0, true);
    const double hidden = pairs * static_cast<double>(layer.input.channels) / layer.heads;
    Tensor sum =
        d.add("Add", {d.with_constant("ExpandDims", query), d.with_constant("ExpandDims", key)}, hidden, hidden);
    sum = d.unary("Tanh", sum, 4);
    key = d.reduce("Sum", d.binary("Mul", sum, weight.value), pairs);
  } else {
    query = split_heads(query, layer.heads);
    key = split_heads(key, layer.heads);
    value = split_heads(value, layer.heads);
    const double features = query.values / (batch_ * queries);
    key = d.add("BatchMatMul", {query, d.transpose(key)}, pairs, product * features);
    key = d.with_constant("RealDiv", key);
    if (d.is_dynamic) key = key_mask(key);
  }
  Tensor weights = softmax(key, pairs / keys);
  if (layer.mask_values > 0) weights = dropout(weights);
  const double out = values(layer.output);
  const Tensor sum = d.add("BatchMatMul", {weights, value}, out, product * out / (batch_ * queries));
  current_->whole = layer.heads == 1 ? sum : d.concat(d.split(sum, layer.heads));
}

Tensor LayerOperators::zero_state(double values) {
  Tensor like{.values = values, .has_batch = true};
  like = graph_.zeros_like(like);
  like.has_batch = graph_.nodes().back().has_batch = true;
  return like;
}

/// BasicLSTMCell under static_rnn: all four gates in one product of the input beside the hidden state.
void LayerOperators::lstm(const Layer& layer) {
  Dataflow& d = graph_;
  const double inputs = static_cast<double>(layer.input.channels), units = static_cast<double>(layer.output.channels);
  double weights = 0, biases = 0;
  for (std::size_t p = 0; p < layer.parameters.size(); ++p)
    (p < 2 ? weights : biases) += static_cast<double>(layer.parameters[p].values);
  const Tensors in = unrolled(layer, 0, layer.steps);
  const Variable kernel = d.variable(weights, true);
  weights_[index_] = kernel;
  Variable bias;
  if (biases > 0) bias = d.variable(biases, false);
  const double state = batch_ * units;
  Tensor cell = zero_state(state), hidden = zero_state(state);
  for (int s = 0; s < layer.steps; ++s) {
    d.step = s;
    const Tensor axis = d.constant(), forget = d.constant();
    const Tensor both = d.concat({in[static_cast<std::size_t>(s)], hidden});
    Tensor gates = d.add("MatMul", {both, kernel.value}, 4 * state, 8 * batch_ * units * (inputs + units));
    if (biases > 0) gates = d.binary("BiasAdd", gates, bias.value);
    const Tensors gate = d.add_many("Split", {axis, gates}, 4, state);
    const Tensor kept = d.binary("Mul", cell, d.unary("Sigmoid", d.binary("Add", gate[2], forget), 3));
    const Tensor made = d.binary("Mul", d.unary("Sigmoid", gate[0], 3), d.unary("Tanh", gate[1], 4));
    cell = d.binary("Add", kept, made);
    hidden = d.binary("Mul", d.unary("Tanh", cell, 4), d.unary("Sigmoid", gate[3], 3));
    current_->steps.push_back(hidden);
  }
  d.step = -1;
  current_->is_unrolled = true;
}

/// EideticLSTMCell (Wang et al. 2019), unrolled over its windows; `recall` reads all cell states so far.
void LayerOperators::e3d_lstm(const Layer& layer) {
  Dataflow& d = graph_;
  const double units = static_cast<double>(layer.output.channels);
  const double positions = static_cast<double>(layer.output.positions()) / layer.steps;
  const double state = batch_ * units * positions;
  const double taps = static_cast<double>(layer.kernel_depth) * layer.kernel_height * layer.kernel_width;
  // weight_input, _hidden, _memory, _output_cell, _output_memory, _mix; one bias for all; then the norms' parameters.
  std::vector<Variable> weight;
  for (std::size_t p = 0; p < 6; ++p) weight.push_back(parameter(layer, p, true));
  // The program has a bias for each product: 7, 4, 4, 1, 1 and 1 times the units.
  std::vector<Variable> bias;
  for (const double share : {7.0, 4.0, 4.0, 1.0, 1.0, 1.0}) bias.push_back(d.variable(share * units, false));
  std::vector<Variable> scale, shift;
  for (std::size_t p = 7; p + 1 < layer.parameters.size(); p += 2) {
    scale.push_back(parameter(layer, p, false));
    shift.push_back(parameter(layer, p + 1, false));
  }
  const auto product = [&](const Tensor& in, std::size_t w, double parts, double window) {
    const double work = 2 * window * in.values * parts * units;
    d.constant();  // the dilation rate, as of every convolution
    const Tensor out = d.add("Conv3D", {in, weight[w].value}, parts * state, work);
    return d.binary("BiasAdd", out, bias[w].value);
  };
  const auto norm = [&](const Tensor& in, std::size_t n) {
    return normalize(in, batch_, scale[n].value, shift[n].value, false);
  };
  const Tensors in = unrolled(layer, 0, layer.steps);
  const Tensor zero = zero_state(state);
  Tensor cell = zero, hidden = zero, memory = zero, history;
  for (int s = 0; s < layer.steps; ++s) {
    d.step = s;
    const auto sum = [&](const Tensor& a, const Tensor& b) { return d.binary("Add", a, b); };
    const Tensors h = d.split(norm(product(hidden, 1, 4, taps), 0), 4);
    const Tensors x = d.split(norm(product(in[static_cast<std::size_t>(s)], 0, 7, taps), 1), 7);
    const Tensor take = d.unary("Sigmoid", sum(x[0], h[0]), 3);
    const Tensor ask = d.unary("Sigmoid", sum(x[2], h[2]), 3);
    const Tensor candidate = d.unary("Tanh", sum(x[1], h[1]), 4);

    history = s == 0 ? cell : d.concat({history, cell});
    const double scores = batch_ * positions * positions * (s + 1);
    const Tensor query = d.reshape(ask, state), keys = d.reshape(history, history.values);
    const Tensor contents = d.reshape(history, history.values);
    const Tensor weights = softmax(d.add("BatchMatMul", {query, keys}, scores, 2 * units * scores), batch_ * positions);
    const Tensor recalled = d.reshape(d.add("BatchMatMul", {weights, contents}, state, 2 * units * scores), state);
    cell = sum(norm(sum(cell, recalled), 3), d.binary("Mul", take, candidate));

    const Tensors m = d.split(norm(product(memory, 2, 4, taps), 2), 4);
    const Tensor take_m = d.unary("Sigmoid", sum(x[4], m[0]), 3);
    const Tensor keep_m = d.unary("Sigmoid", d.with_constant("Add", sum(x[6], m[1])), 3);
    const Tensor candidate_m = d.unary("Tanh", sum(x[5], m[2]), 4);
    memory = sum(d.binary("Mul", keep_m, d.unary("Tanh", m[3], 4)), d.binary("Mul", take_m, candidate_m));

    const Tensor from_cell = product(cell, 3, 1, taps), from_memory = product(memory, 4, 1, taps);
    const Tensor gate = d.unary("Tanh", sum(sum(sum(x[3], h[3]), from_cell), from_memory), 4);
    const Tensor mixed = product(d.concat({cell, memory}), 5, 1, 1);
    hidden = d.binary("Mul", d.unary("Tanh", mixed, 4), d.unary("Sigmoid", gate, 3));
    current_->steps.push_back(hidden);
  }
  d.step = -1;
  current_->is_unrolled = true;
}

}  // namespace epocast
