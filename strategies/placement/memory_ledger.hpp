#pragma once
// Memory by device and time while nodes change devices and times stay: what a move would do, in O(log V) for each
// output that it concerns.

#include <cstdint>
#include <span>
#include <vector>

#include "strategies/placement/max_tree.hpp"
#include "strategies/placement/replay.hpp"

namespace epocast {

/// Moments number the starts and ends of nodes in a replay; where there are too many, what lies between two counts at
/// both. What lies where is as residences() has it.
class MemoryLedger {
 public:
  /// Moves nodes of `placement`, which has to outlive the ledger, as the graph has.
  MemoryLedger(const PlacementGraph& graph, int devices, const ReplayResult& times, Placement& placement);

  std::size_t devices() const { return memory_.size(); }
  std::size_t moments() const { return moments_; }
  std::uint32_t start(std::size_t n) const { return start_[n]; }
  std::uint32_t end(std::size_t n) const { return end_[n]; }  ///< the last moment in which n runs

  double most(std::size_t device) const { return memory_[device].max(); }
  double at(std::size_t device, std::size_t moment) const { return memory_[device].max(moment, moment); }
  std::size_t fullest_moment(std::size_t device) const { return memory_[device].argmax(); }

  void move(std::span<const std::uint32_t> nodes, std::int16_t to);

 private:
  void number_moments(const ReplayResult& times);
  void occupy(std::uint32_t n, int sign);

  struct Away {
    std::int16_t device;
    double bytes;
    std::uint32_t last;
  };

  const PlacementGraph& graph_;
  Placement& placement_;
  std::size_t moments_ = 0;
  std::vector<std::uint32_t> start_, end_, latest_send_;  ///< moments, both included
  std::vector<MaxTree> memory_;                           ///< by device
  std::vector<Away> away_;
  std::vector<std::uint32_t> affected_;
};

}  // namespace epocast
