#pragma once
// How much of each communication a worker had to wait for: the metrics of Lee 2020, equation 3.8, figures 3.6 and 4.9.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/execution.hpp"
#include "sim/strategy.hpp"

namespace epocast {

/// Times in s per iteration of the graph.
struct CommunicationTime {
  std::string operation, layer;
  double time = 0;     ///< from start to end, other traffic included (T_c)
  double blocked = 0;  ///< nothing was computed because the next computation waited for this one (T_b)
};

struct OverlapReport {
  std::vector<CommunicationTime> communications;        ///< that the first worker takes part in, in program order
  std::vector<std::pair<std::string, double>> compute;  ///< its computations by operation, in program order
  double waiting = 0;                                   ///< for anything but its own communication

  double communication() const;  ///< sum of all times
  double blocked() const;
  /// Equation 3.8 as a fraction; absent without communication. Negative if communications wait for one another so long
  /// that what is waited for adds up to more than they take.
  std::optional<double> ratio() const;
};

/// Of the first worker over one period, or over the last simulated iterations if there is none. Absent if the timeline
/// was not recorded or was truncated.
std::optional<OverlapReport> measure_overlap(const CyclicTaskGraph& graph, const ExecutionResult& result);

}  // namespace epocast
