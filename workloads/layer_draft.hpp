#pragma once
// A layer under construction: what the readers of layer types (layer_reader.cpp, sequence_layers.cpp) work on.

#include <string>
#include <vector>

#include "sim/model.hpp"
#include "workloads/layer_attributes.hpp"
#include "workloads/layer_reader.hpp"

namespace epocast {

// What settings may be: far beyond any real network, and safe from overflow where they are multiplied.
inline constexpr Range kChannelRange{1, 1e8};
inline constexpr Range kKernelRange{1, 1e4};
inline constexpr Range kLengthRange{1, 1e6};  // of a sequence

struct LayerDraft {
  LayerSpec spec;
  const LayerAttributes& attributes;
  std::vector<Shape> inputs;
  bool input_needs_gradient = false;
  const Layer* tied = nullptr;  ///< the layer whose weight is to be used
  double work_per_output = 1;   ///< FLOP, for the kinds that layer_cost cannot tell from the layer

  Layer& layer() { return spec.layer; }
  /// The layer as one that only moves values.
  Layer& rearranged(const char* variant) {
    layer().kind = LayerKind::rearrange;
    layer().variant = variant;
    return layer();
  }
  void add_parameter(const std::string& suffix, std::int64_t values) {
    layer().parameters.push_back({layer().name + "." + suffix, values});
  }
};

/// Readers of layer types set kind, output shape, parameters, and what backward needs. Those of attention and of
/// recurrent layers set the FLOP too. They throw ConfigError, or std::invalid_argument for the layer as a whole.
using LayerTypeReader = void (*)(LayerDraft&);

/// Throws std::invalid_argument if `shape` is no sequence, naming `what` reads it.
void require_sequence(const Shape& shape, const char* what);

// Layer types that work along sequences.
void read_linear(LayerDraft& draft);
void read_embedding(LayerDraft& draft);
void read_position_embedding(LayerDraft& draft);
void read_layer_norm(LayerDraft& draft);
void read_rms_norm(LayerDraft& draft);
void read_rotary(LayerDraft& draft);
void read_swiglu(LayerDraft& draft);
void read_gated_tanh(LayerDraft& draft);
void read_experts(LayerDraft& draft);
void read_to_sequence(LayerDraft& draft);
void read_gelu(LayerDraft& draft);
void read_attention(LayerDraft& draft);
void read_lstm(LayerDraft& draft);
void read_e3d_lstm(LayerDraft& draft);

// Layer types that put values elsewhere or bring them in.
void read_pixel_unshuffle(LayerDraft& draft);
void read_resize(LayerDraft& draft);
void read_crop(LayerDraft& draft);
void read_regions(LayerDraft& draft);
void read_data(LayerDraft& draft);

}  // namespace epocast
