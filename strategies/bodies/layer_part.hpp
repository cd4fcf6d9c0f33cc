#pragma once
// What bodies do to the layers that they divide.

#include <cstdint>

#include "sim/model.hpp"

namespace epocast {

/// The largest of so many shares of `n`, as if it were padded to divide evenly.
constexpr std::int64_t largest_share(std::int64_t n, int parts) { return (n + parts - 1) / parts; }

/// Multiplies the FLOP of all passes.
inline void scale_work(Layer& layer, double factor) {
  layer.forward_flop *= factor;
  layer.backward_data_flop *= factor;
  layer.backward_weights_flop *= factor;
}

}  // namespace epocast
