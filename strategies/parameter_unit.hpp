#pragma once
// Layers whose gradients and parameters travel together.

#include <string>
#include <vector>

#include "sim/workload_trace.hpp"

namespace epocast {

/// A layer with parameters, and the normalisations right behind it if it is a convolution: a few vectors that no
/// framework sends by themselves.
struct ParameterUnit {
  std::string name;       ///< of its first layer
  std::size_t first = 0;  ///< its first layer: the last whose gradients are made, the first that needs parameters
  bool fully_connected = false;
  Bytes bytes;        ///< of all gradients
  DeviceTime update;  ///< of all parameters
};

struct ParameterUnits {
  std::vector<ParameterUnit> all;  ///< in forward order
  std::vector<int> starting_at;    ///< by layer: index of the unit whose first layer it is, or -1

  /// The unit that a layer's parameters belong to. REQUIRES: it has some.
  int of(std::size_t layer) const {
    while (starting_at[layer] < 0) --layer;
    return starting_at[layer];
  }
};

ParameterUnits parameter_units(const WorkloadTrace& trace);

}  // namespace epocast
