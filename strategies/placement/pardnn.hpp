#pragma once
// ParDNN: a device for each node of an operator graph, so that one iteration is short and no device overflows.
//
// Stages as in Qararyah 2020, chapter 4: slicing (slicing.hpp), mapping (mapping.hpp), refinement (refinement.hpp),
// and, if memory has a limit, overflow handling (overflow.hpp). `literal` runs them as they are written. Otherwise a
// step of the refinement is kept only if the replay does not become longer, devices are made to wait less by a search
// on replays, and where overflow cannot be resolved placements that spread memory evenly are tried in its place.
//
// Scope and limits: equal devices, each pair with a link of its own; what a node takes does not depend on its
// neighbours. Validation: docs/placement.md. Reference: F. M. F. Qararyah, "Training Memory-Constrained Deep Learning
// Models Using Automatic Dataflow-Graph Partitioning", Koc University 2020.

#include <string>
#include <vector>

#include "strategies/placement/mapping.hpp"
#include "strategies/placement/overflow.hpp"
#include "strategies/placement/replay.hpp"

namespace epocast {

struct ParDnnOptions {
  bool literal = false;
  ReplayOptions replay = {};  ///< what stages are judged by
  double search_nodes = 2e6;  ///< how many nodes the search on replays may replay
};

/// A placement on the way, and what a replay says of it.
struct PlacementStage {
  std::string name;
  Placement placement;
  Ticks makespan = 0;
  double peak_bytes = 0;        ///< of the fullest device
  std::size_t moved_nodes = 0;  ///< by overflow handling
  bool fits = true;
  double seconds = 0;  ///< that making it took, without the stages before it
};

/// Stages in their order; the last is the result. REQUIRES devices >= 1.
std::vector<PlacementStage> pardnn(const PlacementGraph& graph, const PlacementMachine& machine,
                                   const ParDnnOptions& options = {});

/// Replays a placement and fills in what a stage says of it.
PlacementStage judge(const PlacementGraph& graph, const PlacementMachine& machine, const ReplayOptions& options,
                     std::string name, Placement placement);

/// The best of several: those that fit first, then the shortest. REQUIRES at least one.
const PlacementStage& best_of(const std::vector<PlacementStage>& stages);

/// Degree of parallelism: all work over that of the critical path, without transfers (Kumar et al. 1994).
double degree_of_parallelism(const PlacementGraph& graph);
/// CCR: the time of all transfers, if every edge were one, over all work (Sinnen 2007).
double communication_to_computation(const PlacementGraph& graph, const PlacementMachine& machine);

}  // namespace epocast
