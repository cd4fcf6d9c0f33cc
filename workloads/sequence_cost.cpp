#include "workloads/sequence_cost.hpp"

namespace epocast {
namespace {

// Per score: scale 1, softmax 5 (layer_cost.cpp). Backward of softmax: dS = P * (dP - sum(dP * P)): multiply-add 2,
// subtract 1, multiply 1; scale 1.
constexpr double kScoreForward = 6;
constexpr double kScoreBackward = 5;
// Per score and feature of additive attention: add 1, tanh 4, multiply-add 2. Backward: gradient of the weight
// (multiply-add) 2; through weight and tanh (multiply, square, subtract, multiply) 4, added up for query and key 2.
constexpr double kAdditiveForward = 7;
constexpr double kAdditiveBackwardWeights = 2;
constexpr double kAdditiveBackwardData = 6;

// Per unit and step of an LSTM (Hochreiter and Schmidhuber 1997 with forget gates). Forward: add the two products 4,
// three sigmoids 9, two tanh 8, cell f * c + i * g 3, hidden o * tanh(c) 1. Backward: hidden gradients from above and
// from the next step 1; output gate 1; into the cell dh * o * (1 - tanh^2) + dc 5; three gates and c's own 4; the
// derivatives of three sigmoids 9 and of a tanh 3.
constexpr double kLstmForward = 25;
constexpr double kLstmBackward = 23;

// Per unit and position of an eidetic 3D LSTM. Forward: sums of products 11, seven sigmoids 21, four tanh 16, recall
// added and normalised 9, cell 3, memory 3, output 1. Backward about the same, as in an LSTM.
constexpr double kEideticPointwise = 64;
// Layer norms, values per unit and position (4 of the hidden state, 7 of the input, 4 of the memory, 1 of the cell) and
// work per value, as layer_cost.cpp derives it.
constexpr double kEideticNormalised = 16;
constexpr double kNormForward = 8;
constexpr double kNormBackwardWeights = 5;
constexpr double kNormBackwardData = 10;

}  // namespace

double AttentionSize::pairs() const {
  const auto n = static_cast<double>(queries);
  return causal ? n * (n + 1) / 2 : n * static_cast<double>(keys);
}

std::int64_t attention_inner_values(const AttentionSize& size) {
  if (size.fused) return size.heads * size.queries;
  const auto pairs = static_cast<std::int64_t>(size.pairs());
  const std::int64_t location = size.location_filters > 0 ? size.location_filters + 1 : 0;
  return pairs * (size.heads * (size.dropout ? 2 : 1) + (size.additive ? size.key_features : 0) + location);
}

void set_attention_flop(Layer& layer, const AttentionSize& size, bool input_needs_gradient) {
  const double pairs = size.pairs();
  const double scores = pairs * static_cast<double>(size.heads);
  const auto key_features = static_cast<double>(size.key_features);
  const auto value_features = static_cast<double>(size.value_features);
  const double score_work = pairs * key_features * (size.additive ? kAdditiveForward : 2);
  const double sum_work = 2 * pairs * value_features;
  // Over the two channels of softmaxes, then from filters to features; added to query and key.
  const auto filters = static_cast<double>(size.location_filters);
  const double location_products = 2 * pairs * filters * (2 * static_cast<double>(size.location_kernel) + key_features);
  const double location_sums = filters > 0 ? pairs * key_features : 0;
  layer.forward_flop = score_work + kScoreForward * scores + sum_work + location_products + location_sums;
  if (size.additive) layer.backward_weights_flop = kAdditiveBackwardWeights * pairs * key_features + location_products;
  if (!input_needs_gradient) return;
  // Gradients of the values and of the softmaxes, each as much work as the weighted sum; of query and key, each as much
  // as the scores.
  layer.backward_data_flop = 2 * sum_work + kScoreBackward * scores +
                             (size.additive ? kAdditiveBackwardData * pairs * key_features : 2 * score_work) +
                             location_products;
  // Dao et al. 2022, Algorithm 4: scores and softmax once more.
  if (size.fused) layer.backward_data_flop += score_work + kScoreForward * scores;
}

void set_lstm_flop(Layer& layer, bool input_needs_gradient) {
  const auto steps = static_cast<double>(layer.steps);
  const auto inputs = static_cast<double>(layer.input.channels);
  const auto units = static_cast<double>(layer.output.channels);
  const double input_product = 2 * 4 * units * inputs * steps;
  // Of the hidden state, and of what comes back from later layers.
  const double feedback = static_cast<double>(layer.parameters.front().values) / (4 * units) - inputs;
  const double hidden_product = 2 * 4 * units * (units + feedback) * steps;
  layer.forward_flop = input_product + hidden_product + kLstmForward * units * steps;
  layer.backward_weights_flop = input_product + hidden_product;
  // Back through time even if nothing below is trained: the weights' gradients of a step need those of the next.
  layer.backward_data_flop =
      hidden_product + kLstmBackward * units * steps + (input_needs_gradient ? input_product : 0);
}

void set_e3d_lstm_flop(Layer& layer, double scores, bool input_needs_gradient) {
  const auto positions = static_cast<double>(layer.output.positions());
  const auto inputs = static_cast<double>(layer.input.channels);
  const auto units = static_cast<double>(layer.output.channels);
  const double taps = static_cast<double>(layer.kernel_depth) * layer.kernel_height * layer.kernel_width;
  const double input_product = 2 * 7 * taps * inputs * units * positions;
  const double state_product = 2 * (10 * taps + 2) * units * units * positions;
  const double pointwise = kEideticPointwise * units * positions;
  const double recall = scores * (4 * units + kScoreForward);
  const double normalised = kEideticNormalised * units * positions;
  layer.forward_flop = input_product + state_product + pointwise + recall + kNormForward * normalised;
  layer.backward_weights_flop = input_product + state_product + kNormBackwardWeights * normalised;
  layer.backward_data_flop = state_product + pointwise + kNormBackwardData * normalised +
                             scores * (8 * units + kScoreBackward) + (input_needs_gradient ? input_product : 0);
}

}  // namespace epocast
