#pragma once
// What the accounts of a step say as one micro-batch after the other comes by.

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/activity.hpp"
#include "sim/compiled_graph.hpp"
#include "sim/recurrence.hpp"
#include "sim/task_activity.hpp"
#include "sim/traffic.hpp"

namespace epocast {

/// What micro-batches add to a step.
struct StepGrowth {
  double seconds = 0;
  std::vector<ActivityTimes> activity;      ///< by counted device
  std::vector<double> on_links, off_links;  ///< bytes by set of flows

  /// So many times as much.
  StepGrowth operator*(double times) const;
};

/// Strikes when a task of the first kind that micro-batches have ends, of a folded step.
class StepClock {
 public:
  /// `workers`: devices whose times count.
  StepClock(const CompiledGraph& graph, std::vector<CountedDevice> workers, double start);

  bool strikes_at(std::uint32_t task) const { return task < strikes_at_.size() && strikes_at_[task]; }
  void strike(double now, const ActivityAccounts& accounts, const TrafficCounter& traffic);

  const std::vector<CountedDevice>& workers() const { return workers_; }

  /// What one turn of a recurrence adds to the last iteration. Nothing unless it struck once for each of
  /// `micro_batches`, and two turns in a row, while the step does the same again, added the same.
  std::optional<StepGrowth> growth(const Recurrence& recurrence, int micro_batches) const;

 private:
  struct Strike {
    double date = 0;
    std::vector<ActivityTimes> activity;
    std::vector<double> on_links, off_links;
  };
  static StepGrowth between(const Strike& earlier, const Strike& later);

  std::vector<CountedDevice> workers_;
  double start_;
  std::vector<bool> strikes_at_;
  std::vector<Strike> strikes_;
};

}  // namespace epocast
