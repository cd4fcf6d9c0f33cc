#pragma once
// A timeline as slices on lanes and arrows between them, ready to be printed in any trace format.

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/trace_lanes.hpp"
#include "sim/execution.hpp"
#include "sim/task_graph.hpp"

namespace epocast {

/// Whole ns, the resolution of trace viewers: what does not overlap before rounding does not overlap after it.
using Nanoseconds = std::int64_t;

Nanoseconds nanoseconds(double seconds);

/// What a task's slices count as: transfers and collectives are communication, computation takes its queue's role.
QueueRole role_of(const CyclicTaskGraph& graph, const Task& task);

/// One execution of one task on one device.
struct TraceSlice {
  std::uint32_t task = 0;  ///< in the graph, plus the tasks of the graphs before it
  std::uint32_t lane = 0;
  std::uint32_t rank = 0;
  std::int64_t iteration = 0;
  Nanoseconds start = 0, end = 0;
};

/// From a slice to one on another lane that waited for it.
struct TraceArrow {
  std::uint32_t from = 0, to = 0;
};

class TraceSlices {
 public:
  static constexpr std::size_t kMaxSlices = 4'000'000;  ///< browsers give up well before
  static constexpr std::size_t kMaxArrows = 200'000;

  /// Adds a phase that starts `start` seconds into the run. A collective has a slice on each rank's device, or only on
  /// the first one's if the result is folded. Returns remarks on what found no room.
  std::vector<std::string> add(const CyclicTaskGraph& graph, const ExecutionResult& result, double start);

  /// By phase, then by start, end, and order of ending.
  const std::vector<TraceSlice>& slices() const { return slices_; }
  const std::vector<TraceArrow>& arrows() const { return arrows_; }
  const std::vector<TraceLane>& lanes() const { return lanes_.all(); }

 private:
  std::vector<std::uint32_t> add_slices(const CyclicTaskGraph& graph, const ExecutionResult& result, double start);
  bool add_arrows(const CyclicTaskGraph& graph, const ExecutionResult& result,
                  const std::vector<std::uint32_t>& first_slice);

  TraceLanes lanes_;
  std::vector<TraceSlice> slices_;
  std::vector<TraceArrow> arrows_;
  std::uint32_t tasks_ = 0;
};

}  // namespace epocast
