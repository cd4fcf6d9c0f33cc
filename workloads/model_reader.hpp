#pragma once
// Reads a network from a YAML file. See docs/models.md; the format in short:
//
//     model: resnet50                              # a name, for output
//     description: ...
//     source: ...                                  # where the layer list comes from
//     input: {channels: 3, height: 224, width: 224}
//     blocks:                                      # optional: lists of layers to be used more than once
//       bottleneck:
//         - {conv: conv1, filters: $width, kernel: 1, bias: false}     # $width: given where the block is used
//         - batch_norm                             # a bare type is named after the layer before it: conv1.batch_norm
//         - ...
//         - {add: add, inputs: [conv3.batch_norm, input]}              # `input`: what the block reads
//     layers:                                      # in order; each reads the one before unless it says otherwise
//       - {conv: conv1, filters: 64, kernel: 7, stride: 2, padding: 3, bias: false}
//       - {pool: pool1, kernel: 3, stride: 2, padding: 1, type: max}
//       - {block: layer1, use: bottleneck, repeat: 2, first: 1, width: 64}   # layers layer1.1.conv1 ... layer1.2.add
//
// Layer types and their settings (with defaults; `kernel` and `padding` are one number or [height, width]):
//
//     conv         filters, kernel, stride: 1, padding: 0 | same, groups: 1, bias: true
//     fc           units, bias: true               # flattens its input by itself
//     pool         kernel, stride: 1, padding: 0 | same, type: max | average, ceil_mode: false
//     global_pool  type: average | max
//     add, concat  inputs: [a, b, ...]             # concat joins channels
//     lrn          size: 5
//     dropout      rate (not used)
//     batch_norm, relu, sigmoid, tanh, flatten, softmax
//     block        use, repeat: 1 (names get .0, .1, ...), first: 0, and the block's parameters
//
// All but add and concat take `input: NAME` to read another layer than the one before. A layer whose output nobody
// reads is an error unless it is the last one or says `output: true`.

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
/// ending in .yaml), relative to the file that `value` stands in.
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
