#pragma once
// What `epocast place` prints.

#include <iosfwd>
#include <optional>
#include <vector>

#include "experiments/place/alternatives.hpp"
#include "experiments/place/place_job.hpp"

namespace epocast {

struct PlaceReport {
  const NamedGraph* graph = nullptr;
  PlacementMachine machine;
  ReplayOptions options;
  std::vector<MethodOutcome> outcomes;
  std::size_t best = 0;  ///< index into outcomes
  std::vector<Alternative> alternatives = {};
  std::optional<double> simulated = {};  ///< s an iteration of the best takes on a platform's own links
};

void write_place_table(std::ostream& out, const PlaceReport& report);
/// Columns method, stage, makespan_s, speedup, transferred_bytes, peak_memory_bytes, fits_memory, moved_nodes, seconds;
/// a row per stage. `speedup` is over all work on one device.
void write_place_csv(std::ostream& out, const PlaceReport& report);
void write_place_json(std::ostream& out, const PlaceReport& report);

}  // namespace epocast
