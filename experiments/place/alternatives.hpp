#pragma once
// What else trains a network that is too large for a device: data parallelism over replicas that recompute, or whose
// memory overflows to the host (Qararyah 2020, sections 6.3.2 and 6.3.3). Each replica has a device and its share of
// the batch; gradients are added up by a ring once all are there.

#include <string>
#include <vector>

#include "experiments/place/place_job.hpp"
#include "strategies/placement/checkpointing.hpp"

namespace epocast {

struct Alternative {
  std::string name;
  double seconds = 0;     ///< of a step
  double peak_bytes = 0;  ///< of a device
  bool fits = true;
};

/// REQUIRES a model. Throws ConfigError for a batch that the devices do not divide.
std::vector<Alternative> alternatives(const ModelGraphRequest& request, const PlacementMachine& machine);

/// The forward pass cut at layers into about as many segments as the root of the number of layers, of equal memory; and
/// the gradients that belong to each.
Segments root_segments(const OperatorGraph& graph);

}  // namespace epocast
