#pragma once
// Timelines worked out by hand, against simulated ones: a training step on two workers and two layers. Times are in ms.
// Between the workers are 1 ms of latency and 1 GB/s. So, of n MB, an all-reduce by ring, two rounds of half the
// vector, takes 2 + n ms; a reduce-scatter, all-gather or all-to-all takes 1 + n/2 ms.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "strategies/register.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/synthetic.hpp"

namespace epocast::testing {

inline constexpr double kMB = 1e6;

/// A convolution A and a fully connected layer B. Times in ms for a batch of one sample: forward A 10, B 20; backward
/// B 15 + 15 (input's gradient + parameters'), A 20 + 20; update A 1, B 2: 103 in all. Of more samples only the
/// gradient of B's parameters takes longer, in proportion. Gradients: A 6 + 4 MB, B 15 + 5 MB. Activations of a sample:
/// A 4 MB, B 2 MB.
inline WorkloadTrace two_layers(std::int64_t batch) {
  WorkloadTrace trace = chain({layer("A", 10 * kMs, 40 * kMs, 1 * kMs, {6 * kMB, 4 * kMB}),
                               layer("B", 20 * kMs, 30 * kMs, 2 * kMs, {15 * kMB, 5 * kMB})},
                              batch);
  const auto samples = static_cast<double>(batch);
  trace.layers[1].output = Bytes(4 * kMB * samples);
  trace.layers[2].kind = LayerKind::fully_connected;
  trace.layers[2].output = Bytes(2 * kMB * samples);
  trace.layers[2].times.backward_weights = Seconds(15 * kMs * samples);
  return trace;
}

/// What one row of a timeline should say, in ms after the iteration's start.
struct Row {
  std::string label;
  double start, end;
};

struct HandTimeline {
  std::string strategy;
  std::string options;        ///< YAML
  double period;              ///< ms
  std::vector<Row> rows;      ///< every task of the graph
  double compute = 103;       ///< ms a worker computes
  double megabytes = 2 * 30;  ///< that all messages carry: of an all-reduce each of two workers sends the vector
  std::vector<int> iterations{0, 7, 19};  ///< that are looked at
  double first = 0;                       ///< ms; iteration k starts at first + k x period
  bool queue_decides = false;  ///< waiting behind others that fuse is part of the period, and of no cycle's bound
};

/// Runs 20 iterations at every level of detail, and compares.
inline void check(const HandTimeline& expected, const TraceSource& trace = two_layers, std::int64_t global_batch = 2) {
  const Star star(2, 1e9, 1 * kMs);
  const ConfigNode node = ConfigNode::load_text(expected.options, "options");
  const auto strategy = builtin_strategies().make(expected.strategy, node, node);
  node.check_all_read();
  for (const CollectiveLevel level :
       {CollectiveLevel::automatic, CollectiveLevel::message, CollectiveLevel::flow, CollectiveLevel::closed_form}) {
    INFO(expected.strategy << " " << expected.options << ", level " << to_string(level));
    const StrategyContext context{star.cluster(), {0, 1}, global_batch, trace, {.level = level}};
    const TrainingStep step = strategy->compile(context);
    const ExecutionResult result =
        simulate(star.cluster(), step.graph, {.iterations = 20, .exact = true, .record_timeline = true});
    // Message level is not folded: rank 1 has the same timeline as rank 0. Collectives have rank 0 only.
    const std::uint32_t ranks = result.folded ? 1 : 2;
    for (const int iteration : expected.iterations) {
      const double begin = expected.first + iteration * expected.period;
      for (const Row& row : expected.rows) {
        const bool collective = row.label.starts_with("all-") || row.label.starts_with("reduce-");
        for (std::uint32_t rank = 0; rank < (collective ? 1 : ranks); ++rank) {
          INFO(row.label << " of rank " << rank << ", iteration " << iteration);
          const Interval found = interval(step.graph, result, row.label, rank, iteration);
          CHECK(found.start == Approx((begin + row.start) * kMs).margin(1e-9));
          CHECK(found.end == Approx((begin + row.end) * kMs).margin(1e-9));
        }
      }
    }
    CHECK(step.graph.tasks().size() == expected.rows.size());  // nothing is left out above
    CHECK(result.iteration == Approx(expected.period * kMs).margin(1e-9));
    if (expected.queue_decides)
      CHECK(result.bound->seconds <= expected.period * kMs + 1e-9);
    else  // nothing contends
      CHECK(result.bound->seconds == Approx(expected.period * kMs).margin(1e-9));
    CHECK(result.metrics.compute == Approx(expected.compute * kMs).margin(1e-9));
    CHECK(result.metrics.bytes == Approx(expected.megabytes * kMB));
  }
}

}  // namespace epocast::testing
