#pragma once
// Reads a network from a YAML file. See docs/models.md; the format in short:
//
//     model: resnet50                              # a name, for output
//     description: ...
//     source: ...                                  # where the layer list comes from
//     left_out: ...                                # optional: what training computes beside the layers, for a warning
//     input: {channels: 3, height: 224, width: 224}
//     parameters: {classes: 1000, stem: 64}        # optional: what a variant or a study may set, with defaults
//     blocks:                                      # optional: lists of layers to be used more than once
//       bottleneck:
//         - {conv: conv1, filters: $width, kernel: 1, bias: false}     # $width: given where the block is used
//         - batch_norm                             # a bare type is named after the layer before it: conv1.batch_norm
//         - ...
//         - {add: add, inputs: [conv3.batch_norm, input]}              # `input`: what the block reads
//     layers:                                      # in order; each reads the one before unless it says otherwise
//       - {conv: conv1, filters: $stem, kernel: 7, stride: 2, padding: 3, bias: false}
//       - {pool: pool1, kernel: 3, stride: 2, padding: 1, type: max}
//       - {block: layer1, use: bottleneck, repeat: 2, first: 1, width: $(2*stem)}   # layers layer1.1.conv1 ...
//
// or a variant of another file:
//
//     model: resnet10
//     based_on: resnet50
//     parameters: {classes: 10}
//
// Layer types and their settings (with defaults; `kernel` and `padding` are one number or one per direction):
//
//     conv1d, conv, conv3d
//                         filters, kernel, stride: 1, padding: 0 | same, dilation: 1, groups: 1, bias: true,
//                         weight_norm: false, transposed: false, output_padding: 0, tied, trained: true
//     fc                  units, bias: true               # flattens its input by itself
//     linear              units, bias: true, tied         # at every position; tied: the layer whose weight it uses
//     pool, pool3d        kernel, stride: 1, padding: 0 | same, type: max | average, ceil_mode: false
//     global_pool         type: average | max
//     add, multiply       inputs: [a, b, ...]
//     concat              inputs: [a, b, ...]             # joins channels
//     lrn                 size: 5
//     dropout             rate (not used)
//     embedding           vocabulary, units
//     position_embedding  positions: the sequence's length
//     attention           heads: 1, inputs: [query, key, value] or one stacked input, score: dot | additive | location,
//                         pairs: all | causal, fused: false, location_filters, location_kernel
//     lstm                units, biases: 1, feedback: 0
//     e3d_lstm            units, kernel, window
//     pixel_shuffle, pixel_unshuffle
//                         factor
//     resize              factor, or height, width, depth
//     crop                height, width, depth
//     regions             inputs: [a, ...], count, size
//     select              positions or channels
//     pad_channels        channels
//     data                channels, height: 1, width: 1, depth: 1     # beside the model's input
//     batch_norm          frozen: false
//     layer_norm, relu, sigmoid, tanh, exp, gated_tanh, gelu, flatten, softmax
//     block               use, repeat: 1 (names get .0, .1, ...), first: 0, and the block's parameters
//
// All without `inputs` take `input: NAME` to read another layer than the one before. A layer whose output nobody reads
// is an error unless it is the last one or says `output: true`.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config.hpp"
#include "sim/model.hpp"

namespace epocast {

/// Reads and checks a model file. Throws ConfigError with the place and the remedy.
Model load_model(const std::filesystem::path& file);

/// The same from text; `name` stands for the file in messages.
Model parse_model(std::string_view text, std::string name);

/// The network that `value` names: `vgg16` for DATA_DIR/workloads/models/vgg16.yaml, or a path (anything with a `/` or
/// ending in .yaml), relative to the file that `value` stands in. A map sets parameters too: {name: gpt2, layers: 48};
/// the model's name then tells. {opaque: NAME, ...} is a network of which only the parameters are known
/// (workloads/opaque_model.hpp).
Model load_model_named(const ConfigNode& value, const std::filesystem::path& data_dir);

/// What `epocast list models` prints.
struct ModelSummary {
  std::string name;  ///< file name without .yaml: what a study writes
  std::string description;
  std::string source;
  std::int64_t parameters = 0;
  double forward_flop = 0;  ///< per sample
};

/// The models in a folder by name. Throws ConfigError if one of them is wrong.
std::vector<ModelSummary> list_models(const std::filesystem::path& folder);

}  // namespace epocast
