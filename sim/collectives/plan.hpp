#pragma once
// Chooses how a collective is simulated and prepares it: which level, which flows, how long it takes on an idle
// network.

#include <cstdint>
#include <vector>

#include "sim/collective.hpp"
#include "sim/collectives/group_network.hpp"
#include "sim/simgrid/engine.hpp"
#include "sim/task_graph.hpp"

namespace epocast {

/// Flows that run together after a common delay.
struct FlowStep {
  double delay = 0;  ///< s: latencies of the rounds that the step stands for, and their reductions
  Round flows;       ///< bytes of all repetitions together
  /// In a folded run: which set of flows it starts (sim/flow_symmetry.hpp), and that set's bytes.
  std::uint32_t set = kNoSet;
  double set_bytes = 0;

  static constexpr std::uint32_t kNoSet = ~std::uint32_t{0};
};

/// A collective ready to run.
struct CollectivePlan {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;  ///< never a choice
  CollectiveLevel level = CollectiveLevel::flow;              ///< never automatic
  double idle_time = 0;                                       ///< s on an idle network
  CollectiveSchedule schedule;                                ///< message level only
  std::vector<int> hosts;       ///< message level with several rings only: of the schedule's ranks, R for each rank
  std::vector<FlowStep> steps;  ///< what crosses the network: run at flow level, counted at closed form
  double gamma = 0;             ///< s per byte reduced
  bool measured = false;        ///< closed form only: the time is a measurement; the links are not used
};

/// Whether ranks see no difference between two plans but the links that they use: equal steps, to rounding.
bool alike(const CollectivePlan& a, const CollectivePlan& b);

/// Plans a collective over ranks on `hosts`. Where the network has several rings, ring collectives (and the stage of
/// hierarchical ones inside the nodes) run all of them at once, each with its share of the vector. `may_contend`: other
/// traffic can be under way at the same time. The automatic level is closed_form where nothing contends and the formula
/// is exact, else flow. Algorithms whose ranks are not in step (those without an exact formula) run by messages at the
/// flow level up to 64 ranks; beyond, what an edge of their trees carries is one stream, and all run at once. At the
/// automatic level on a star where nothing contends, the time of their messages is added up instead. Streams run at the
/// flow level where messages are asked for: all they send at once.
/// REQUIRES: !is_choice(collective.algorithm), collective.rings <= most_rings().
CollectivePlan plan_collective(const Collective& collective, const std::vector<int>& hosts,
                               const std::vector<int>& node_of, const GroupNetwork& network, bool may_contend,
                               SimEngine& engine);

/// The rings that the collective runs on; none: one, in rank order.
std::vector<Ring> rings_of(const Collective& collective, const GroupNetwork& network);

/// Bytes of a message that fill a connection's window if each ring sends its share of them; 0: any number.
double window_of(const std::vector<Ring>& rings, double window);

/// How many rings at the most the collective can be divided over so that each adds to what they carry.
int most_rings(const Collective& collective, const GroupNetwork& network);

}  // namespace epocast
