#pragma once
// What a training step is put together from, in words.

#include <string>
#include <utility>
#include <vector>

namespace epocast {

struct CompositionParts {
  std::vector<std::pair<std::string, int>> mesh;  ///< axes and extents, outermost first
  std::string schedule = "1f1b";
  int micro_batches = 1;
  int in_flight = 1;                ///< batches, where the schedule does not say how many
  std::vector<std::string> bodies;  ///< none: whole layers
  std::string synchronisation;
};

/// "mesh {pipeline: 2, data: 8}, schedule 1f1b of 4 micro-batches, body whole, synchronisation all_reduce"; axes of one
/// rank are left out, and so is the schedule of a single stage that goes through one batch after the other, each at
/// once.
std::string text_of(const CompositionParts& parts);

}  // namespace epocast
