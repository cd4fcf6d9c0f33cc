#pragma once
// In which order queues have served their tasks.

#include <cstdint>
#include <vector>

#include "sim/compiled_graph.hpp"
#include "sim/cycle_bound.hpp"

namespace epocast {

/// Follows the instances that wait for first-come and priority queues.
class ServiceOrder {
 public:
  explicit ServiceOrder(const CompiledGraph& graph);

  /// REQUIRES: the instance waits for a slot.
  void waits(Instance i) { turns_[at(i)].waits = true; }
  void begins(Instance i) { turns_[at(i)] = {++beginnings_, false}; }

  /// What maximum_cycle_ratio() wants to know of this moment; of rank 0 alone if `one_rank`. `started`: by instance.
  std::vector<ServiceCount> counts(const std::vector<std::uint32_t>& started, bool one_rank) const;

 private:
  struct Turn {
    std::uint64_t order = 0;  ///< of its last beginning among all
    bool waits = false;       ///< in line for the next one
  };
  std::size_t at(Instance i) const { return first_turn_[i.task] + i.rank; }

  const CompiledGraph& graph_;
  std::vector<Turn> turns_;              ///< by instance that waits for a slot
  std::vector<std::size_t> first_turn_;  ///< by task: of its rank 0
  std::uint64_t beginnings_ = 0;
};

}  // namespace epocast
