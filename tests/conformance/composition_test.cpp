// The product of what a training step is put together from: every legal combination of mesh, schedule, body,
// synchronisation, encoding and recomputation on a small transformer. Whatever is combined, bytes are conserved,
// nothing is faster than its bound, folded runs equal unfolded ones, extrapolated ones those that are simulated to the
// end, and a period is found where there is one.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "tests/conformance/composition_parts.hpp"
#include "tests/support/conservation.hpp"
#include "tests/support/one_pace.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/transformer.hpp"

namespace epocast::composition_test {

using namespace conformance;

namespace {

struct Combination {
  std::string options;
  bool mixture = false;  ///< of experts
  bool recompute = false;
  CollectiveSettings collective;
};

constexpr int kWorkers = 8, kDevices = 16;  // two servers for each of four stages

/// What never ends a step is not combined with what exchanges parameters between steps.
bool has_several_versions(const std::string& schedule) {
  return schedule.starts_with("2bw") || schedule == "pipedream" || schedule.starts_with("threaded");
}
/// Gradients of which replicas compute parts for each other.
bool has_own_shares(const std::string& synchronisation) {
  return synchronisation.find("partial") != std::string::npos || synchronisation.find("chunks") != std::string::npos;
}
/// Where replicas may differ, they must have samples of their own.
bool may_differ(const std::string& synchronisation) {
  return synchronisation.find("period") != std::string::npos || synchronisation.find("mode: ") != std::string::npos ||
         synchronisation.find("hogwild") != std::string::npos || has_own_shares(synchronisation);
}
bool divides_samples(const std::string& mesh) {
  return mesh.find("context") != std::string::npos || mesh.find("expert") != std::string::npos;
}
bool exchanges_parameters(const std::string& synchronisation) {
  return synchronisation.find("period") != std::string::npos || synchronisation == "hogwild" ||
         has_own_shares(synchronisation);
}

std::vector<Combination> all_combinations() {
  const char* without_messages[] = {"hogwild", "none"};
  const CollectiveSettings collectives[] = {{CollectiveAlgorithm::ring, CollectiveLevel::automatic, 0},
                                            {CollectiveAlgorithm::automatic, CollectiveLevel::flow, 1e-10},
                                            {CollectiveAlgorithm::double_binary_tree, CollectiveLevel::message, 0}};
  std::vector<Combination> all;
  const auto add = [&](std::span<const char* const> some) {
    for (const MeshPart& mesh : mesh_parts())
      for (const char* schedule : mesh.pipeline ? pipeline_schedules() : single_stage_schedules())
        for (const std::string body : mesh.bodies)
          for (const char* synchronisation : some) {
            const bool nobody = synchronisation == std::string("none");
            if (mesh.data ? nobody : !nobody && synchronisation != synchronisations().front()) continue;
            if (divides_samples(mesh.mesh) && may_differ(synchronisation)) continue;
            if (has_several_versions(schedule) && exchanges_parameters(synchronisation)) continue;
            for (const bool recompute : {false, true}) {
              std::string options = std::string("{mesh: ") + mesh.mesh + ", schedule: {name: " + schedule + "}";
              if (!body.empty()) options += ", body: " + body;
              options += std::string(", synchronisation: ") + synchronisation + "}";
              all.push_back({options, mesh.mixture, recompute, collectives[all.size() % std::size(collectives)]});
            }
          }
  };
  add(synchronisations());
  add(without_messages);
  return all;
}

TrainingStep compile(const Combination& c, const Cluster& cluster) {
  static const auto dense = testing::small_transformer(4), mixture = testing::small_mixture(4);
  return testing::compile_transformer(cluster, kWorkers, "composition", c.options,
                                      {c.mixture ? mixture : dense, 16, c.collective, c.recompute});
}

/// Of one node where memory is shared.
Cluster cluster_of(const testing::Star& star, const Combination& c) {
  Cluster cluster = star.cluster();
  if (c.options.find("hogwild") != std::string::npos)
    for (Device& device : cluster.devices) device.node = "node";
  return cluster;
}

/// What all tasks do in the first iterations. They are simulated with as many behind them, since tasks that run ahead
/// leave links to the others when they are done.
std::vector<Interval> first_iterations(const Cluster& cluster, const CyclicTaskGraph& graph, std::int64_t iterations) {
  std::vector<Interval> intervals =
      testing::simulate(cluster, graph,
                        {.iterations = 2 * iterations, .exact = true, .fold = false, .record_timeline = true})
          .timeline.intervals;
  std::erase_if(intervals, [&](const Interval& i) { return i.iteration >= iterations; });
  return intervals;
}

/// Whether the first iterations tell that all must repeat. They must if each begins when the one before has ended in
/// all tasks: nothing is left then that could make a difference. They need not if they overlap and share links (see
/// tests/unit/transient_test.cpp), unless they are seen to: in the last three quarters of what is given. The clock then
/// passes a power of two by iteration 2 (iterations / 4 + length), and a short period is soon seen twice behind that.
bool must_repeat(std::vector<Interval> intervals, std::int64_t iterations) {
  std::ranges::sort(intervals, {}, [](const Interval& i) { return std::tuple(i.iteration, i.task, i.rank); });
  const std::size_t width = intervals.size() / static_cast<std::size_t>(iterations);
  const auto row = [&](std::int64_t k) {
    return std::span(intervals).subspan(static_cast<std::size_t>(k) * width, width);
  };
  const auto overlaps = [&](std::int64_t k) {
    return std::ranges::min(row(k), {}, &Interval::start).start <
           std::ranges::max(row(k - 1), {}, &Interval::end).end * (1 - 1e-12);
  };
  const auto repeats = [&](std::int64_t k, std::int64_t length) {
    const auto now = row(k), before = row(k - length);
    const double shift = now[0].end - before[0].end;
    for (std::size_t i = 1; i < width; ++i)
      if (std::abs(now[i].end - before[i].end - shift) > 1e-11 * shift) return false;
    return true;
  };
  std::int64_t apart = 1;
  while (apart < iterations && !overlaps(apart)) ++apart;
  if (apart == iterations) return true;
  for (std::int64_t length = 1; length <= iterations / 16; ++length) {
    std::int64_t k = iterations / 4 + length;
    while (k < iterations && repeats(k, length)) ++k;
    if (k == iterations) return true;
  }
  return false;
}

void check(const std::vector<Combination>& combinations) {
  const testing::Star star(kDevices, 1e9, 5e-6);
  const auto compile = [&](const Combination& c) { return composition_test::compile(c, cluster_of(star, c)); };
  constexpr std::int64_t kIterations = 40;
  const std::vector<ExecutionOptions> ways{{.iterations = kIterations, .exact = true, .fold = false},
                                           {.iterations = kIterations, .fold = false},
                                           {.iterations = kIterations}};
  const auto packed = testing::on_engines(
      star.cluster(), static_cast<int>(combinations.size() * ways.size()), [&](int job, SimEngine& engine) {
        const Combination& c = combinations[static_cast<std::size_t>(job) / ways.size()];
        const ExecutionOptions& way = ways[static_cast<std::size_t>(job) % ways.size()];
        return testing::execute_packed(star.cluster(), engine, {{compile(c).graph, way}});
      });
  for (std::size_t i = 0; i < combinations.size(); ++i) {
    const Combination& c = combinations[i];
    INFO(c.options << (c.recompute ? " recomputed" : ""));
    const ExecutionResult exact = testing::unpack(packed[ways.size() * i]).front(),
                          extrapolated = testing::unpack(packed[ways.size() * i + 1]).front(),
                          folded = testing::unpack(packed[ways.size() * i + 2]).front();
    const TrainingStep step = compile(c);
    const std::vector<double> expected =
        testing::bytes_sent_per_iteration(step.graph, star.cluster().devices.size(), exact.algorithms);
    for (std::size_t d = 0; d < expected.size(); ++d)
      REQUIRE(exact.totals.sent[d] == Approx(expected[d] * static_cast<double>(kIterations)).epsilon(1e-9));
    CHECK(testing::sum(exact.totals.received) == Approx(testing::sum(exact.totals.sent)).epsilon(1e-9));
    CHECK(exact.metrics.max_link_utilization <= 1 + 1e-9);
    REQUIRE(exact.bound);
    CHECK(exact.iteration >= exact.bound->seconds * (1 - 1e-6));
    CHECK(extrapolated.total == Approx(exact.total).epsilon(1e-9));
    if (extrapolated.iterations_simulated == kIterations)
      CHECK_FALSE(must_repeat(first_iterations(star.cluster(), step.graph, kIterations), kIterations));
    CHECK(folded.total == Approx(exact.total).epsilon(1e-9));
    CHECK(folded.metrics.bytes == Approx(exact.metrics.bytes).epsilon(1e-9));
    CHECK(folded.metrics.communication == Approx(extrapolated.metrics.communication).epsilon(1e-9));
    CHECK(folded.metrics.exposed_communication ==
          Approx(extrapolated.metrics.exposed_communication).margin(1e-9 * exact.iteration));
  }
}

}  // namespace

TEST_CASE("every combination of mesh, schedule, body and synchronisation makes a graph that can run", "[composition]") {
  const testing::Star star(kDevices, 1e9, 5e-6);
  for (const Combination& c : all_combinations()) {
    INFO(c.options << (c.recompute ? " recomputed" : ""));
    const TrainingStep step = compile(c, cluster_of(star, c));
    CHECK_NOTHROW(step.graph.validate(star.cluster()));
    CHECK(testing::tasks_driven_by_nobody(step.graph) == std::vector<std::string>{});
  }
}

/// Every so manieth. A step that has no factor in common with the lengths of the lists meets every pair of parts.
std::vector<Combination> every(std::size_t step, std::size_t from) {
  const std::vector<Combination> all = all_combinations();
  std::vector<Combination> some;
  for (std::size_t i = from; i < all.size(); i += step) some.push_back(all[i]);
  return some;
}

TEST_CASE("combinations of mesh, schedule, body and synchronisation keep the rules: a sample", "[composition]") {
  check(every(41, 0));
}

TEST_CASE("combinations of mesh, schedule, body and synchronisation keep the rules: all", "[composition][long]") {
  constexpr std::size_t kParts = 5;  // each by itself: -c 'part 1 of 5'
  for (std::size_t part = 0; part < kParts; ++part) {
    DYNAMIC_SECTION("part " << part + 1 << " of " << kParts) {
      const std::vector<Combination> some = every(kParts, part);
      REQUIRE(some.size() >= 1500);
      check(some);
    }
  }
}

}  // namespace epocast::composition_test
