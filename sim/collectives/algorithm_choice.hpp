#pragma once
// Which algorithm a collective takes where the study leaves the choice open: the fastest predicted, or what a library
// would take.

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/collective.hpp"
#include "sim/collectives/group_network.hpp"
#include "sim/collectives/schedule_time.hpp"
#include "sim/simgrid/engine.hpp"
#include "sim/task_graph.hpp"

namespace epocast {

/// The collectives of one group of ranks. Predictions are times on an idle network. They are linear in the size of the
/// vector, so that an algorithm's schedule is measured once for all sizes; but those of the double binary tree, which
/// cuts it into chunks, and where connections have a window.
class AlgorithmChoice {
 public:
  /// `hosts`, `node_of` (the node of each rank) and `network` outlive this.
  AlgorithmChoice(const std::vector<int>& hosts, const std::vector<int>& node_of, const GroupNetwork& network,
                  SimEngine& engine);

  /// Which algorithms may be chosen.
  enum class Among {
    all,
    timed,     ///< while the engine runs: all but those whose time only a simulation tells, unless a library takes them
    in_step,   ///< those whose ranks go from round to round together: all but trees that stream chunks
    symmetric  ///< those in which all ranks do the same in each round, so that one can stand for all; if any can run
  };

  /// The algorithm that the collective takes: its own if it names one. The fastest of several that are equal is the
  /// first in the order of the enumeration. With a number of rings, only those that can run on so many count, if there
  /// are any. What a library would take gives way to the fastest of those that may be chosen if it is none of them.
  CollectiveAlgorithm choose(const Collective& collective, Among among = Among::all);

  /// s that the collective takes on an idle network; infinite if the group cannot run its algorithm (hierarchical with
  /// unequal nodes). REQUIRES: !is_choice(collective.algorithm) && supports(..).
  double predict(const Collective& collective);

 private:
  CollectiveAlgorithm choose_anew(const Collective& collective, Among among);
  CollectiveAlgorithm fastest(const Collective& collective, Among among);
  CollectiveAlgorithm taken_by_nccl(const Collective& collective, Among among);
  bool can_run(const Collective& collective) const;
  bool is_symmetric(CollectiveOp op, CollectiveAlgorithm algorithm);
  /// Of a vector of kMeasuredBytes, without windows.
  IdleTime measure(const Collective& collective);
  IdleTime idle_time_of(const Collective& collective, double bytes);
  double predict_double_tree(const Collective& collective);
  double least_double_tree(const Collective& collective, double enough);
  double least_pairwise(const Collective& collective);

  const std::vector<int>& hosts_;
  const std::vector<int>& node_of_;
  const GroupNetwork& network_;
  SimEngine& engine_;
  std::vector<int> ranks_on_node_;  ///< by node
  bool equal_nodes_ = true;
  std::map<std::tuple<CollectiveOp, CollectiveAlgorithm, int>, IdleTime> measured_;  ///< of 1 GB; the last is rings
  std::map<std::pair<CollectiveOp, int>, double> tree_messages_;  ///< on its longest path, by the number of chunks
  std::map<CollectiveOp, double> tree_busiest_;                   ///< s/B of the busiest link
  std::map<std::pair<CollectiveOp, CollectiveAlgorithm>, bool> symmetric_;
  std::map<std::tuple<CollectiveAlgorithm, CollectiveOp, double, double, int, Among>, CollectiveAlgorithm> chosen_;
};

}  // namespace epocast
