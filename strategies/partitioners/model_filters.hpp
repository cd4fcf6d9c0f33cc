#pragma once
// A network's layers as tasks for partitioners.

#include <cstdint>
#include <vector>

#include "sim/model.hpp"
#include "strategies/partitioners/filter_network.hpp"

namespace epocast {

/// Convolutions become layers of filters; fully connected layers, attention and whatever else mixes all features,
/// layers of a single task. What follows them element by element or map by map (pooling, normalisation, activation,
/// ...) belongs to them, with its work. An element-wise sum belongs to its last operand; filter i of that reads map i
/// of the others. A depthwise convolution reads map by map as well; other grouped convolutions count as reading all
/// maps, which is more than they do. `sent` and `raw` are in values of a batch; where readers see different sizes, the
/// largest. REQUIRES: `work` [any unit] has an entry per layer of the model.
FilterNetwork filter_network(const Model& model, std::int64_t batch, const std::vector<double>& work);

}  // namespace epocast
