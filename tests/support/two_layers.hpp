#pragma once
// Strategies of synchronous data parallelism on two workers and two layers, for timelines worked out by hand. Times are
// in ms: forward A 10, B 20; backward B 30, A 40; update A 1, B 2: 103 in all. Gradients: A 6 + 4 MB, B 15 + 5 MB.
// Between 2 ranks a ring all-reduce is two rounds of half the vector: with 1 ms of latency and 1 GB/s, n MB take 2 + n
// ms, and half of it, a reduce-scatter or an all-gather, 1 + n/2 ms.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "strategies/register.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/synthetic.hpp"

namespace epocast::testing {

inline constexpr double kMs = 1e-3, kMB = 1e6;

/// The time per sample is given for a batch of one worker; see above.
inline WorkloadTrace two_layers(std::int64_t batch) {
  return chain({layer("A", 10 * kMs, 40 * kMs, 1 * kMs, {6 * kMB, 4 * kMB}),
                layer("B", 20 * kMs, 30 * kMs, 2 * kMs, {15 * kMB, 5 * kMB})},
               batch);
}

/// What one row of a timeline should say, in ms.
struct Expected {
  std::string label;
  double start, end;
};

/// Of one training step of a strategy.
struct ExpectedStep {
  double period;                   ///< ms
  std::vector<Expected> timeline;  ///< of iteration k, from k x period on; every task of the graph
  double compute = 103;            ///< ms a worker computes
  double megabytes = 2 * 30;       ///< that all messages carry: of an all-reduce each of two ranks sends the vector
  std::vector<int> iterations{0, 7, 19};  ///< that are looked at
};

/// Runs 20 iterations of the options, at every level of detail, and compares.
inline void check_two_layers(const std::string& strategy, const std::string& options, const ExpectedStep& expected,
                             const TraceSource& trace = two_layers, std::int64_t global_batch = 2) {
  const Star star(2, 1e9, 1 * kMs);
  const ConfigNode node = ConfigNode::load_text(options, "options");
  const auto made = builtin_strategies().make(strategy, node, node);
  node.check_all_read();
  for (const CollectiveLevel level :
       {CollectiveLevel::automatic, CollectiveLevel::message, CollectiveLevel::flow, CollectiveLevel::closed_form}) {
    INFO(strategy << " " << options << ", level " << to_string(level));
    const StrategyContext context{star.cluster(), {0, 1}, global_batch, trace, {.level = level}};
    const TrainingStep step = made->compile(context);
    const ExecutionResult result =
        simulate(star.cluster(), step.graph, {.iterations = 20, .exact = true, .record_timeline = true});
    // Message level is not folded: rank 1 has the same timeline as rank 0. Collectives have rank 0 only.
    const std::uint32_t ranks = result.folded ? 1 : 2;
    for (const int iteration : expected.iterations) {
      for (const Expected& e : expected.timeline) {
        const bool collective = e.label.starts_with("all-") || e.label.starts_with("reduce-");
        for (std::uint32_t rank = 0; rank < (collective ? 1 : ranks); ++rank) {
          INFO(e.label << " of rank " << rank << ", iteration " << iteration);
          const Interval found = interval(step.graph, result, e.label, rank, iteration);
          CHECK(found.start == Approx((iteration * expected.period + e.start) * kMs).margin(1e-9));
          CHECK(found.end == Approx((iteration * expected.period + e.end) * kMs).margin(1e-9));
        }
      }
    }
    CHECK(step.graph.tasks().size() == expected.timeline.size());  // nothing is left out above
    CHECK(result.iteration == Approx(expected.period * kMs).margin(1e-9));
    CHECK(result.bound->seconds == Approx(expected.period * kMs).margin(1e-9));  // nothing contends
    CHECK(result.metrics.compute == Approx(expected.compute * kMs).margin(1e-9));
    CHECK(result.metrics.bytes == Approx(expected.megabytes * kMB));
  }
}

}  // namespace epocast::testing
