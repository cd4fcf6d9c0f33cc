#pragma once
// Flows between the same two hosts, of which a max-min solver needs to see one only.

#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "sim/simgrid/ending_flow.hpp"

namespace epocast {

/// Flows over the same links get the same rate, so n of them are as one of weight n, which moves n times as much until
/// the first of them ends. "Moved per flow since the start" is one number for all, as in SharedLink; here somebody else
/// says how far they have come. Volumes are in any unit.
class PairFlows {
 public:
  bool idle() const { return flows_.empty() && starting_.empty(); }
  /// How many move, those that were started after the last grant() not counted.
  double weight() const { return static_cast<double>(flows_.size()); }
  bool waits() const { return !starting_.empty(); }
  double granted() const { return granted_; }

  void start(double volume, std::uint64_t token) { starting_.emplace_back(volume, token); }

  /// Of what was granted last so much has not moved yet.
  void has_left(double left) {
    if (!flows_.empty()) moved_ += (granted_ - left) / weight();
  }
  /// Lets those begin that were started. Returns what all together move until the first of them ends. REQUIRES:
  /// !idle().
  double grant() {
    for (const auto& [volume, token] : starting_) flows_.push({moved_ + volume, next_++, token});
    starting_.clear();
    return granted_ = (flows_.top().end - moved_) * weight();
  }
  /// What was granted has moved. Ends the first flow and all that are less than `slack` behind it: calls ended(token).
  template <class Ended>
  void end(double slack, Ended ended) {
    moved_ = flows_.top().end;
    while (!flows_.empty() && flows_.top().end <= moved_ + slack) {
      const std::uint64_t token = flows_.top().token;
      flows_.pop();
      ended(token);
    }
    if (flows_.empty()) moved_ = 0;
  }

 private:
  double moved_ = 0;    ///< per flow
  double granted_ = 0;  ///< to all together, from `moved_` on
  std::uint64_t next_ = 0;
  std::priority_queue<EndingFlow> flows_;
  std::vector<std::pair<double, std::uint64_t>> starting_;
};

}  // namespace epocast
