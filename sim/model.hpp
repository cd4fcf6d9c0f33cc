#pragma once
// A neural network after shape inference: layers in topological order with the sizes that training costs depend on.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/quantity.hpp"

namespace epocast {

/// Feature-map shape of one sample. Vectors have height = width = 1. A sequence has its features as channels and its
/// length as width, height = 1. Volumes and videos have their slices or frames as depth.
struct Shape {
  std::int64_t channels = 0;
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::int64_t depth = 1;
  std::int64_t positions() const { return height * width * depth; }
  std::int64_t values() const { return channels * height * width * depth; }
  friend bool operator==(const Shape&, const Shape&) = default;
};

/// "64x112x112" (channels x height x width), "4096" for a vector, "64x16x112x112" if the depth is 16.
std::string to_string(const Shape& shape);

enum class LayerKind {
  input,
  convolution,
  fully_connected,
  pooling,
  batch_norm,
  local_response_norm,
  activation,
  add,
  concat,
  dropout,
  flatten,
  softmax,
  linear,      ///< a fully connected layer at every position of a sequence or map
  embedding,   ///< rows of a table, looked up by token or added by position
  layer_norm,  ///< over the channels of each position
  attention,   ///< every position reads every other: scores, softmax, weighted sum
  lstm,        ///< along the width
  e3d_lstm,    ///< eidetic 3D LSTM, along windows of the depth
  multiply,
  rearrange,  ///< copies values to other places: pixel shuffle, selection, padding
};

/// The last of the list, for loops over all kinds.
inline constexpr LayerKind kLastLayerKind = LayerKind::rearrange;

const char* to_string(LayerKind kind);

/// Whether the kind multiplies its input by trained weights: where most FLOP are, and all three passes cost much.
bool multiplies_weights(LayerKind kind);

/// One trainable tensor, e.g. a convolution's weight or bias.
struct ParameterTensor {
  std::string name;  ///< "conv1_1.weight"
  std::int64_t values = 0;
};

/// One layer. All counts are per sample unless said otherwise.
struct Layer {
  std::string name;
  LayerKind kind = LayerKind::input;
  std::string variant;      ///< which of its kind: "max", "relu", "position", ...; empty where there is but one
  std::vector<int> inputs;  ///< indices of producing layers, all smaller than this layer's own
  Shape input;              ///< first input's shape
  Shape output;
  std::int64_t input_values = 0;  ///< summed over all inputs
  int kernel_height = 0, kernel_width = 0, stride = 1, groups = 1;
  int padding_height = 0, padding_width = 0;  ///< rows above and columns to the left of the input
  int kernel_depth = 1, padding_depth = 0;    ///< slices; a layer with a depth of 1 works on each slice by itself
  int dilation = 1;                           ///< distance of a kernel's taps, in all directions
  int heads = 0;                              ///< of attention: of queries
  int kv_heads = 0;                           ///< of attention: of keys and values, each read by heads / kv_heads
  int experts = 1;                            ///< copies of a linear layer's weights, of which each position uses
  int experts_per_position = 1;               ///< so many; tokens are taken to spread evenly over the copies
  int neighbours = 0;                         ///< channels that local response normalisation sums over
  int steps = 1;                              ///< that must run one after the other: of recurrent layers
  int tied_to = -1;                           ///< index of the layer whose weight this one uses as its own, or -1
  bool frozen = false;                        ///< training leaves its parameters as they are: no gradient, no update
  double forward_flop = 0;                    ///< a multiply-add counts 2
  double backward_data_flop = 0;              ///< gradient of the input; 0 where nothing upstream is trained
  double backward_weights_flop = 0;           ///< gradient of the parameters
  std::vector<ParameterTensor> parameters;
  bool keeps_output = true;  ///< whether backward needs the output kept (false for in-place activations, flatten, ...)
  bool backward_reads_input = false;   ///< the values that the layer read in forward
  bool backward_reads_output = false;  ///< the values that it wrote
  bool needs_gradient = false;         ///< the layer or anything upstream is trained, so its backward pass runs
  int stored_in = -1;             ///< index of the layer in whose memory the output lies (views, in place); -1: its own
  std::int64_t inner_values = 0;  ///< made on the way and kept for backward: attention scores, gates of an LSTM
  std::int64_t mask_values = 0;   ///< likewise, of a byte each in every precision: which values dropout kept

  std::int64_t parameter_count() const;  ///< of those that are trained
  std::int64_t weight_count() const;     ///< trained or not
  /// The tensor whose name ends in `suffix`, such as "bias"; null if there is none.
  const ParameterTensor* find_parameter(std::string_view suffix) const;
  std::int64_t kept_values() const { return (keeps_output ? output.values() : 0) + inner_values; }
};

/// Whether the layer's backward pass makes gradients of its input, if only by copying: a concatenation's gradient is
/// cut into its parts, a rearrangement's is moved back.
bool passes_gradients_on(const Layer& layer);

/// Whether the layer is a transposed convolution: the gradient of a convolution from its output to its input.
bool is_transposed(const Layer& layer);

/// A network. layers[0] is the input.
struct Model {
  std::string name;
  std::string description;
  std::vector<Layer> layers;
  std::string source;         ///< where the layer list comes from
  bool opaque = false;        ///< its layers say nothing of how long they compute
  std::string left_out = {};  ///< what training computes beside the layers, in words

  std::int64_t parameter_count() const;    ///< trained or not
  std::int64_t trained_count() const;      ///< of those that are trained
  double forward_flop() const;             ///< per sample
  std::int64_t activation_values() const;  ///< per sample, what backward keeps
};

/// The network with nothing that is trained, and no dropout: its steps are forward passes, as for evaluation.
Model untrained(Model model);

}  // namespace epocast
