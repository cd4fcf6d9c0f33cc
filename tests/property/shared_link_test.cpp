// Flows of one bottleneck need no solver: dates without SimGrid's solver are those with it.
#include <catch2/catch.hpp>

#include <cmath>
#include <random>

#include "tests/support/simulate.hpp"

namespace epocast::shared_link_test {

using testing::Star;

namespace {

/// Asynchronous workers that push to and pull from one server, with random sizes and times.
CyclicTaskGraph one_server(std::uint64_t seed, int workers) {
  std::mt19937_64 random(seed);
  const auto between = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
  CyclicTaskGraph graph;
  std::vector<DeviceId> devices;
  for (int d = 1; d <= workers; ++d) devices.push_back(d);
  const GroupId group = graph.add_group("workers", devices), server = graph.add_group("server", {0});
  const QueueId own = graph.add_queue("own", group, QueueRole::compute, Discipline::program_order);
  const QueueId shared = graph.add_queue("shared", server, QueueRole::server, Discipline::fifo);
  const TaskId forward = graph.compute(own, Seconds(between(1e-3, 9e-3)), {"forward", ""});
  for (int piece = 0; piece < 3; ++piece) {
    const Bytes bytes(std::round(between(0, 4e6)));  // SimGrid rounds to 1/1024 B
    const std::string name = std::to_string(piece);
    const TaskId work = graph.compute(own, Seconds(between(1e-3, 9e-3)), {"backward", name});
    const TaskId push = graph.transfer(group, QueueId::none, {group, server, bytes}, {"push", name});
    const TaskId apply = graph.compute_for(group, shared, Seconds(between(1e-5, 5e-4)), {"apply", name});
    const TaskId pull = graph.transfer(group, QueueId::none, {server, group, bytes}, {"pull", name});
    graph.after(work, push);
    graph.after(push, apply);
    graph.after(apply, pull);
    graph.after(pull, forward, 1);
  }
  return graph;
}

}  // namespace

TEST_CASE("one shared link has the same dates with and without a solver", "[shared_link][property]") {
  double worst = 0;
  for (const int workers : {1, 2, 7, 30}) {
    const Star star(workers + 1, 1e9, 50e-6);
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const CyclicTaskGraph graph = one_server(seed, workers);
      // Short enough for chaos to amplify rounding to no more than a millionth of the tolerance.
      ExecutionOptions options{.iterations = 6,
                               .exact = true,
                               .noise = {.compute_cv = seed % 2 == 0 ? 0.1 : 0.0, .seed = seed},
                               .share_single_links = false,
                               .record_timeline = true};
      const ExecutionResult solver = testing::simulate(star.cluster(), graph, options);
      options.share_single_links = true;
      const ExecutionResult shared = testing::simulate(star.cluster(), graph, options);
      INFO(workers << " workers, seed " << seed);
      REQUIRE(solver.timeline.intervals.size() == shared.timeline.intervals.size());
      for (std::size_t k = 0; k < solver.timeline.intervals.size(); ++k) {
        const Interval& a = solver.timeline.intervals[k];
        const Interval& b = shared.timeline.intervals[k];
        REQUIRE((a.task == b.task && a.rank == b.rank && a.iteration == b.iteration));
        worst = std::max({worst, std::abs(a.end - b.end) / solver.total, std::abs(a.start - b.start) / solver.total});
      }
      CHECK(shared.totals.sent == solver.totals.sent);
    }
  }
  CHECK(worst < 1e-9);
  if (std::getenv("EPOCAST_TEST_NUMBERS")) WARN("worst difference, relative to the run: " << worst);
}

}  // namespace epocast::shared_link_test
