#pragma once
// A neural network after shape inference: layers in topological order with the sizes that training costs depend on.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/quantity.hpp"

namespace epocast {

/// Feature-map shape of one sample. Vectors have height = width = 1.
struct Shape {
  std::int64_t channels = 0;
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::int64_t values() const { return channels * height * width; }
  friend bool operator==(const Shape&, const Shape&) = default;
};

/// "64x112x112" (channels x height x width), or "4096" for a vector.
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
};

const char* to_string(LayerKind kind);

/// One trainable tensor, e.g. a convolution's weight or bias.
struct ParameterTensor {
  std::string name;  ///< "conv1_1.weight"
  std::int64_t values = 0;
};

/// One layer. All counts are per sample unless said otherwise.
struct Layer {
  std::string name;
  LayerKind kind = LayerKind::input;
  std::vector<int> inputs;  ///< indices of producing layers, all smaller than this layer's own
  Shape input;              ///< first input's shape
  Shape output;
  std::int64_t input_values = 0;  ///< summed over all inputs
  int kernel_height = 0, kernel_width = 0, stride = 1, groups = 1;
  int padding_height = 0, padding_width = 0;  ///< rows above and columns to the left of the input
  double forward_flop = 0;                    ///< a multiply-add counts 2
  double backward_data_flop = 0;              ///< gradient of the input; 0 where nothing upstream is trained
  double backward_weights_flop = 0;           ///< gradient of the parameters
  std::vector<ParameterTensor> parameters;
  bool keeps_output = true;  ///< whether backward needs the output kept (false for in-place activations, flatten, ...)

  std::int64_t parameter_count() const;
};

/// A network. layers[0] is the input.
struct Model {
  std::string name;
  std::string description;
  std::vector<Layer> layers;
  std::string source;  ///< where the layer list comes from

  std::int64_t parameter_count() const;
  double forward_flop() const;             ///< per sample
  std::int64_t activation_values() const;  ///< per sample, outputs that backward keeps
};

}  // namespace epocast
