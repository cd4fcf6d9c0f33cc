#pragma once
// Reads one layer of a model file: its type's settings, shapes, parameters and FLOP.

#include <string>
#include <vector>

#include "sim/model.hpp"
#include "workloads/layer_attributes.hpp"

namespace epocast {

/// A layer with what the analysis of activation memory needs to know about its backward pass.
struct LayerSpec {
  Layer layer;
  bool needs_input = false;     ///< backward reads the values of the inputs
  bool needs_output = false;    ///< backward reads the values of the output
  bool in_place = false;        ///< overwrites its input if nobody else reads that
  bool is_view = false;         ///< the output is the input's memory under another shape
  bool needs_gradient = false;  ///< the layer or anything upstream is trained
};

/// Layer types as written in files: conv, fc, pool, ...
const std::vector<std::string>& layer_type_names();
/// Types that need no setting and may be written as a bare word.
bool is_bare_layer_type(const std::string& type);
/// Types that take `inputs: [a, b, ...]`.
bool joins_inputs(const std::string& type);
/// Types that take `tied: a`, whose weight they use.
bool may_share_weights(const std::string& type);

/// The earlier layers that a layer refers to, as indices.
struct LayerLinks {
  std::vector<int> inputs;
  int tied_to = -1;  ///< whose weight it uses, or -1
};

/// Builds the layer called `name` (its full name) of the given type. `links` point into `before`.
/// REQUIRES a type of layer_type_names() and at least one input. Throws ConfigError.
LayerSpec read_layer(const std::string& type, const std::string& name, const LayerAttributes& attributes,
                     const LayerLinks& links, const std::vector<LayerSpec>& before);

}  // namespace epocast
