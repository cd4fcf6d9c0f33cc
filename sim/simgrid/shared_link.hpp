#pragma once
// One link that many flows share equally: the fluid model without a solver.

#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

#include "sim/simgrid/ending_flow.hpp"

namespace epocast {

/// Processor sharing. All n flows move at capacity / n, so "bytes moved per flow since the start" is one number for all
/// (virtual time): a flow that starts at V with b bytes ends at V + b, whatever the others do meanwhile. A start or end
/// costs O(log n), where a max-min solver has to look at all n flows. A flow of an idle link sees no other rounding
/// than bytes / capacity.
class SharedLink {
 public:
  explicit SharedLink(double capacity) : capacity_(capacity) {}

  /// REQUIRES: `now` [s] not before any date given so far; bytes >= 0.
  void start(double now, double bytes, std::uint64_t token) {
    advance(now);
    flows_.push({moved_ + bytes, next_++, token});
  }

  /// When the next flow ends if none starts until then [s]; infinite without flows.
  double next_end() const {
    if (flows_.empty()) return std::numeric_limits<double>::infinity();
    return since_ + (flows_.top().end - moved_) * static_cast<double>(flows_.size()) / capacity_;
  }

  /// Ends all flows due by `now`, or up to `tolerance` [s] later, and calls `ended(token)` for each.
  template <class Ended>
  void end_flows(double now, double tolerance, Ended ended) {
    while (!flows_.empty() && next_end() <= now + tolerance) {
      const double end = flows_.top().end;
      advance(now);
      moved_ = end > moved_ ? end : moved_;  // what rounding or the tolerance left
      ended(flows_.top().token);
      flows_.pop();
      if (flows_.empty()) moved_ = 0;
    }
  }

  /// The date until which a timer stands for next_end(); kept for the owner.
  double armed = std::numeric_limits<double>::infinity();

 private:
  void advance(double now) {
    if (!flows_.empty()) {
      const double moved = (now - since_) * capacity_ / static_cast<double>(flows_.size());
      // Not beyond the end of a flow that has not been told so.
      moved_ = moved_ + moved < flows_.top().end ? moved_ + moved : flows_.top().end;
    }
    since_ = now;
  }

  double capacity_;   ///< B/s
  double moved_ = 0;  ///< B per flow at `since_`
  double since_ = 0;  ///< s
  std::uint64_t next_ = 0;
  std::priority_queue<EndingFlow> flows_;
};

}  // namespace epocast
