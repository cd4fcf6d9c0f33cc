#pragma once
// Max-min fair rates of classes of flows.

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/flow_symmetry.hpp"

namespace epocast {

/// Flows under way, each of which stands for a class. Those that share no link, not even through others, do not touch
/// each other's rates: a start or an end costs what the flows around it cost, however many ranks they stand for.
class ClassFlows {
 public:
  explicit ClassFlows(FlowClasses classes) : classes_(std::move(classes)), on_orbit_(classes_.bandwidth.size()) {}

  /// REQUIRES: `now` [s] not before any date given so far; bytes >= 0.
  void start(double now, std::uint32_t flow_class, double bytes, std::uint64_t token);

  /// When the next flow ends if none starts until then [s]; infinite without flows.
  double next_end();

  /// Ends all flows due by `now`, or up to `tolerance` [s] later, and calls `ended(token)` for each, in the order of
  /// their starts.
  template <class Ended>
  void end_flows(double now, double tolerance, Ended ended) {
    if (next_end() > now + tolerance) return;
    std::size_t kept = 0;
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      if (flows_[f].end <= now + tolerance) {
        leave(flows_[f].flow_class);
        ended(flows_[f].token);
      } else {
        flows_[kept++] = flows_[f];
      }
    }
    flows_.resize(kept);
    changed_ = now;
    if (settled_) find_next_end();
  }

 private:
  struct Flow {
    std::uint32_t flow_class = 0;
    std::uint64_t token = 0;
    double left = 0;   ///< B at `since`
    double since = 0;  ///< s
    double rate = 0;   ///< B/s
    double end = std::numeric_limits<double>::infinity();
  };
  /// What a link of an orbit carries while rates are found.
  struct Orbit {
    bool disturbed = false;
    int under_way = 0;  ///< flows that cross it
    double free = 0;    ///< B/s
    double flows = 0;   ///< whose rates are not known yet
  };

  const FlowClass& of(const Flow& flow) const { return classes_.classes[flow.flow_class]; }
  void disturb(const FlowClass& own);
  void leave(std::uint32_t flow_class);
  double alone(const FlowClass& own) const;
  void settle();
  void find_next_end();
  void share(const std::vector<std::uint32_t>& flows);

  FlowClasses classes_;
  std::vector<Flow> flows_;
  std::vector<Orbit> on_orbit_;
  std::vector<std::uint32_t> disturbed_;  ///< orbits where flows began or ended since rates were found
  std::vector<std::uint32_t> touched_;    ///< by settle(); kept for its memory
  std::vector<bool> is_touched_;          ///< likewise
  double changed_ = 0;                    ///< s
  bool settled_ = true;
  double next_end_ = std::numeric_limits<double>::infinity();
};

}  // namespace epocast
