#pragma once
// FLOP and inner activations of attention and recurrent layers, per sample, counted as in layer_cost.hpp.

#include <cstdint>

#include "sim/model.hpp"

namespace epocast {

/// What an attention layer works on.
struct AttentionSize {
  std::int64_t queries = 0;  ///< positions that read
  std::int64_t keys = 0;     ///< positions that are read
  std::int64_t key_features = 0;
  std::int64_t value_features = 0;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;  ///< of keys and values; heads / kv_heads heads of queries read each
  bool additive = false;      ///< scores are v . tanh(query + key) (Bahdanau et al. 2015), not query . key
  /// Filters and width of a convolution over the softmaxes of the query before and their sum so far, whose features are
  /// a third summand of additive scores (Chorowski et al. 2015); 0 if there is none.
  std::int64_t location_filters = 0, location_kernel = 0;
  bool causal = false;   ///< only keys up to the query's own position are computed
  bool fused = false;    ///< scores never leave the kernel and are computed again in backward
  bool dropout = false;  ///< of the softmaxes

  double pairs() const;  ///< of a query and a key
};

/// What is kept for backward beside input and output: the softmaxes, with dropout what it left of them too, and for
/// additive scores the tanh's output, with locations their features and the sum of the softmaxes; when fused, one
/// logarithm of a sum per query and head.
std::int64_t attention_inner_values(const AttentionSize& size);

void set_attention_flop(Layer& layer, const AttentionSize& size, bool input_needs_gradient);

/// An LSTM with inputs `layer.input.channels`, further ones that come back (weight_input has weights for them too),
/// units `layer.output.channels` and `layer.steps` steps.
void set_lstm_flop(Layer& layer, bool input_needs_gradient);

/// An eidetic 3D LSTM whose recall computes so many scores over all steps.
void set_e3d_lstm_flop(Layer& layer, double scores, bool input_needs_gradient);

}  // namespace epocast
