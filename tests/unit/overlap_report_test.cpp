// Which communication kept a worker waiting, for how long: on timelines worked out by hand.
#include <catch2/catch.hpp>

#include "experiments/overlap_report.hpp"
#include "strategies/register.hpp"
#include "tests/support/hand_timeline.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::overlap_report_test {

namespace {

/// Two workers with 1 GB/s and 1 ms between them.
OverlapReport report(const std::string& strategy, const std::string& options) {
  const testing::Star star(2, 1e9, 1e-3);
  const ConfigNode node = ConfigNode::load_text(options, "options");
  const TrainingStep step =
      builtin_strategies().make(strategy, node, node)->compile({star.cluster(), {0, 1}, 2, testing::two_layers, {}});
  return *measure_overlap(step.graph,
                          testing::simulate(star.cluster(), step.graph, {.iterations = 50, .record_timeline = true}));
}

const CommunicationTime& find(const OverlapReport& report, const std::string& layer) {
  for (const CommunicationTime& c : report.communications)
    if (c.layer == layer) return c;
  throw std::runtime_error("no communication of " + layer);
}

}  // namespace

TEST_CASE("blocked time is the gap before the computation that waited", "[overlap]") {
  // Backward A ends at 100 ms; update B runs until 102, update A waits for the second chunk until 112.
  const OverlapReport r = report("two_chunk_data_parallel", "{k: 1}");
  CHECK(r.communications.size() == 2);
  CHECK(find(r, "chunk 1").time == Approx(22e-3));
  CHECK(find(r, "chunk 1").blocked == Approx(0).margin(1e-12));
  CHECK(find(r, "chunk 2").time == Approx(12e-3));
  CHECK(find(r, "chunk 2").blocked == Approx(10e-3));
  CHECK(*r.ratio() == Approx(1 - 10.0 / 34));
  CHECK(r.waiting == Approx(0).margin(1e-12));
  const std::vector<std::pair<std::string, double>> expected{{"forward", 30e-3}, {"backward", 70e-3}, {"update", 3e-3}};
  REQUIRE(r.compute.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(r.compute[i].first == expected[i].first);
    CHECK(r.compute[i].second == Approx(expected[i].second));
  }
}

TEST_CASE("waiting that begins in the previous iteration counts", "[overlap]") {
  // The next update A waits for A's all-reduce, from the end of backward A on: 12 ms.
  const OverlapReport r = report("layerwise_data_parallel", "{overlap: next_forward}");
  CHECK(find(r, "B").blocked == Approx(0).margin(1e-12));
  CHECK(find(r, "A").blocked == Approx(12e-3));
}

TEST_CASE("without overlap all communication is blocked, without communication there is no ratio", "[overlap]") {
  const OverlapReport none = report("layerwise_data_parallel", "{gradients: pcnn, overlap: none}");
  CHECK(none.communications.size() == 5);
  CHECK(none.blocked() == Approx(none.communication()));
  CHECK(*none.ratio() == Approx(0).margin(1e-9));
  CHECK_FALSE(OverlapReport{}.ratio().has_value());
}

}  // namespace epocast::overlap_report_test
