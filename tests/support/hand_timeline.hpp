#pragma once
// Timelines worked out by hand against simulated ones: two workers, all times in ms.

#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "strategies/register.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::testing {

/// What one row of a timeline should say, in ms after the iteration's start.
struct Row {
  std::string label;
  double start, end;
};

struct HandTimeline {
  std::string strategy;
  std::string options;  ///< YAML
  double period;        ///< ms
  std::vector<Row> rows;
  int settled = 0;  ///< iterations before this one differ from the rows
};

/// Runs 20 steps of a global batch of 2 on two workers with 1 GB/s and 1 ms between them, at every level of detail, and
/// compares iteration k, which starts at `first` + k x period. REQUIRES: the rows are all of the graph's tasks.
inline void check(const HandTimeline& expected, const TraceSource& trace, double first = 0) {
  constexpr double kMs = 1e-3;
  const Star star(2, 1e9, 1 * kMs);
  const ConfigNode node = ConfigNode::load_text(expected.options, "options");
  const auto strategy = builtin_strategies().make(expected.strategy, node, node);
  for (const CollectiveLevel level :
       {CollectiveLevel::automatic, CollectiveLevel::message, CollectiveLevel::flow, CollectiveLevel::closed_form}) {
    INFO(expected.strategy << " " << expected.options << ", level " << to_string(level));
    const TrainingStep step = strategy->compile({star.cluster(), {0, 1}, 2, trace, {.level = level}});
    const ExecutionResult result =
        simulate(star.cluster(), step.graph, {.iterations = 20, .exact = true, .record_timeline = true});
    CHECK(step.graph.tasks().size() == expected.rows.size());  // nothing is left out
    for (const int iteration : {expected.settled, 7, 19})
      for (const Row& row : expected.rows) {
        INFO(row.label << ", iteration " << iteration);
        const Interval found = interval(step.graph, result, row.label, 0, iteration);
        const double start = first + iteration * expected.period;
        CHECK(found.start == Approx((start + row.start) * kMs).margin(1e-9));
        CHECK(found.end == Approx((start + row.end) * kMs).margin(1e-9));
      }
    CHECK(result.iteration == Approx(expected.period * kMs).margin(1e-9));
    CHECK(result.bound->seconds <= expected.period * kMs + 1e-9);
  }
}

}  // namespace epocast::testing
