// Whatever the graph, simulated training obeys the same laws: it does not get stuck, what is sent arrives, every
// device's time adds up, no cycle is beaten, and when the loop has become periodic, arithmetic replaces simulation.
//
// Graphs are random with fixed seeds. In every other one unlike events fall on one date all the time; who goes first
// must then not be left to rounding, which depends on the date. EPOCAST_TEST_GRAPHS sets their number.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/property/execution_random_graph.hpp"
#include "tests/support/conservation.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::execution_property_test {

using testing::sum;

namespace {

const int kGraphs = std::getenv("EPOCAST_TEST_GRAPHS") ? std::atoi(std::getenv("EPOCAST_TEST_GRAPHS")) : 250;
constexpr int kDevices = 5;
constexpr std::int64_t kIterations = 300;

struct Sample {
  CyclicTaskGraph graph;
  ExecutionResult exact, extrapolated, folded, later;
};

const std::vector<Sample>& samples() {
  static const std::vector<Sample> all = [] {
    const testing::Star star(kDevices, 1e9, 100e-6);
    std::vector<Sample> made(static_cast<std::size_t>(kGraphs));
    for (int g = 0; g < kGraphs; ++g)
      made[static_cast<std::size_t>(g)].graph =
          testing::RandomGraph(1000 + static_cast<std::uint64_t>(g), kDevices, g % 2 == 1).make();
    const std::vector<ExecutionOptions> options{{.iterations = kIterations, .exact = true, .fold = false},
                                                {.iterations = kIterations, .fold = false},
                                                {.iterations = kIterations}};
    // The last run is a second phase: what comes before it ends at a date like 0.123456789.
    CyclicTaskGraph before;
    before.compute(before.add_queue("q", before.add_group("g", {0}), QueueRole::compute, Discipline::fifo),
                   Seconds(0.123456789), {"before", ""});
    const Cluster& cluster = star.cluster();
    const auto packed = testing::on_engines(cluster, 4 * kGraphs, [&](int job, SimEngine& engine) {
      const CyclicTaskGraph& graph = made[static_cast<std::size_t>(job / 4)].graph;
      if (job % 4 == 3) return testing::execute_packed(cluster, engine, {{before, {}}, {graph, options[0]}});
      return testing::execute_packed(cluster, engine, {{graph, options[static_cast<std::size_t>(job % 4)]}});
    });
    for (std::size_t g = 0; g < made.size(); ++g) {
      made[g].exact = testing::unpack(packed[4 * g]).front();
      made[g].extrapolated = testing::unpack(packed[4 * g + 1]).front();
      made[g].folded = testing::unpack(packed[4 * g + 2]).front();
      made[g].later = testing::unpack(packed[4 * g + 3]).back();
    }
    return made;
  }();
  return all;
}

double relative_difference(double a, double b) {
  return a == b ? 0 : std::abs(a - b) / std::max(std::abs(a), std::abs(b));
}

template <class Check>
void for_all(Check check) {
  for (std::size_t g = 0; g < samples().size(); ++g) {
    INFO("graph of seed " << 1000 + g);
    check(samples()[g]);
  }
}

}  // namespace

TEST_CASE("random graphs do not get stuck", "[execution][property]") {
  for_all([](const Sample& s) {
    CHECK(s.exact.iterations_simulated == kIterations);
    CHECK(s.exact.exact);
    CHECK(std::isfinite(s.exact.total));
  });
}

TEST_CASE("extrapolating a random graph gives what simulating it gives", "[execution][property]") {
  int periodic = 0;
  double worst = 0;
  for_all([&](const Sample& s) {
    periodic += s.extrapolated.period.has_value() && s.extrapolated.iterations_simulated < kIterations;
    const double difference = relative_difference(s.exact.total, s.extrapolated.total);
    CHECK(difference < 1e-9);
    worst = std::max(worst, difference);
  });
  CHECK(periodic > kGraphs / 2);  // or else little has been tested
  if (std::getenv("EPOCAST_TEST_NUMBERS"))
    WARN(periodic << " of " << kGraphs << " extrapolated, worst error " << worst);
}

TEST_CASE("a random graph takes equally long whenever it starts", "[execution][property]") {
  // Ranks that nothing keeps in step can be chaotic: sharing links amplifies any difference, and after some hundred
  // iterations rounding is as large as all else. Such a loop never becomes periodic.
  for_all([](const Sample& s) {
    CHECK(relative_difference(s.exact.total, s.later.total) < (s.exact.period ? 1e-9 : 0.01));
  });
}

TEST_CASE("random graphs fold without a difference", "[execution][property]") {
  int folded = 0;
  for_all([&](const Sample& s) {
    folded += s.folded.folded;
    CHECK(relative_difference(s.folded.total, s.extrapolated.total) < 1e-9);
  });
  if (std::getenv("EPOCAST_TEST_NUMBERS")) WARN(folded << " folded");
}

TEST_CASE("a folded graph says of its devices what the whole one says", "[execution][property]") {
  // Groups that share all devices, some or none, and queues of single devices beside them: a device's time is that of
  // all groups that it is in. Averages are over devices, whoever stands for them.
  const testing::Star star(kDevices, 1e9, 100e-6);
  const auto graph_of = [](int g) {
    return testing::RandomGraph(5000 + static_cast<std::uint64_t>(g), kDevices, g % 2 == 1, true).make();
  };
  const Cluster& platform = star.cluster();
  const auto packed = testing::on_engines(platform, kGraphs, [&](int g, SimEngine& engine) {
    const CyclicTaskGraph graph = graph_of(g);
    return testing::execute_packed(
        star.cluster(), engine,
        {{graph, {.iterations = kIterations, .fold = false}}, {graph, {.iterations = kIterations}}});
  });
  int folded = 0;
  for (int g = 0; g < kGraphs; ++g) {
    INFO("graph of seed " << 5000 + g);
    const std::vector<ExecutionResult> results = testing::unpack(packed[static_cast<std::size_t>(g)]);
    const ExecutionResult &whole = results[0], &one = results[1];
    REQUIRE_FALSE(whole.folded);
    if (!one.folded) continue;
    ++folded;
    CHECK(relative_difference(whole.total, one.total) < 1e-9);
    CHECK(relative_difference(whole.iteration, one.iteration) < 1e-9);
    const double rounding = 1e-9 * whole.iteration;
    const StepMetrics &a = whole.metrics, &b = one.metrics;
    CHECK(a.compute == Approx(b.compute).margin(rounding));
    CHECK(a.communication == Approx(b.communication).margin(rounding));
    CHECK(a.exposed_communication == Approx(b.exposed_communication).margin(rounding));
    CHECK(relative_difference(a.bytes, b.bytes) < 1e-9);
    CHECK(relative_difference(a.max_link_utilization, b.max_link_utilization) < 1e-9);
    CHECK(a.mean_staleness == b.mean_staleness);
    REQUIRE((whole.bound && one.bound));
    CHECK(relative_difference(whole.bound->seconds, one.bound->seconds) < 1e-9);
  }
  CHECK(folded > kGraphs / 4);  // or else little has been tested
  if (std::getenv("EPOCAST_TEST_NUMBERS")) WARN(folded << " of " << kGraphs << " folded");
}

TEST_CASE("random graphs conserve bytes and time", "[execution][property]") {
  for_all([](const Sample& s) {
    const auto expected = testing::bytes_sent_per_iteration(s.graph, kDevices);
    for (const ExecutionResult* result : {&s.exact, &s.extrapolated}) {
      const auto iterations = static_cast<double>(result->iterations_simulated);
      for (std::size_t d = 0; d < kDevices; ++d) {
        CHECK(result->totals.sent[d] == Approx(expected[d] * iterations).epsilon(1e-9));
        CHECK(relative_difference(result->totals.activity[d].total(), result->totals.makespan) < 1e-9);
      }
      CHECK(relative_difference(sum(result->totals.received), sum(result->totals.sent)) < 1e-9);
      CHECK(relative_difference(sum(result->totals.on_link), 2 * sum(result->totals.sent)) < 1e-9);  // up and down
      CHECK(result->metrics.max_link_utilization <= 1 + 1e-9);
    }
  });
}

TEST_CASE("no random graph beats its bound", "[execution][property]") {
  for_all([](const Sample& s) {
    REQUIRE(s.exact.bound);
    // An average over a window that is no period may be off by a part of an iteration.
    if (s.exact.period) CHECK(s.exact.iteration >= s.exact.bound->seconds * (1 - 1e-8) - 1e-9);
    // A cycle of lag L needs its first turn only after L iterations; lags are at most 3 here, and a cycle's at most 3
    // n.
    CHECK(s.exact.total >= s.exact.bound->seconds * static_cast<double>(kIterations - 30) * (1 - 1e-8));
  });
}

}  // namespace epocast::execution_property_test
