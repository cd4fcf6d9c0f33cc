#pragma once
// A network of which only the parameters are known: enough to forecast how it scales from a measured step.
//
//     model: {opaque: my_network, parameters: 340e6, tensors: 400, last: 31e6}
//
// Scope and limits: `tensors` layers of equal size and equal FLOP, so gradients are made evenly over the backward pass.
// `last` parameters lie in the first layer, whose gradient is complete when the backward pass ends: embeddings, and
// weights that the output shares with them. FLOP and activations are stand-ins: a step time must anchor computation
// (compute.step_time), and forecasts of memory leave activations out.

#include "sim/config.hpp"
#include "sim/model.hpp"

namespace epocast {

/// Reads such a map. Throws ConfigError for counts out of range or more in `last` than there is.
Model opaque_model(const ConfigNode& node);

}  // namespace epocast
