// Collectives that wait together run as one. By hand, on two ranks 1 ms apart at 1 GB/s: an all-reduce of n MB takes 2
// + n ms.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "experiments/scenario.hpp"
#include "experiments/study.hpp"
#include "tests/support/in_child.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/synthetic.hpp"

namespace epocast::fusion_test {

using testing::interval;

namespace {

constexpr double kMs = 1e-3, kMB = 1e6;

/// A step of 10 ms of computation, then one collective after each millisecond of it on a queue that fuses.
struct Trial {
  explicit Trial(double limit, Discipline discipline = Discipline::fifo) {
    compute = graph.add_queue("compute", both, QueueRole::compute, Discipline::program_order);
    wire = graph.add_queue("wire", both, QueueRole::communication, discipline);
    graph.set_fusion(wire, Bytes(limit));
  }
  TaskId send(const char* name, double megabytes, int priority = 0, CollectiveOp op = CollectiveOp::all_reduce) {
    const TaskId work = graph.compute(compute, Seconds(1 * kMs), {"work", name});
    const TaskId sent =
        graph.collective(wire, {.op = op, .group = both, .bytes = Bytes(megabytes * kMB)}, {"send", name});
    graph.after(work, sent);
    graph.set_priority(sent, priority);
    if (!first) first = work;
    graph.after(sent, *first, 1);
    return sent;
  }
  /// Folded or not, in all detail or not, each is sent from `begin` to `end` [ms] in the first iterations.
  struct Expected {
    const char* label;
    double begin, end;
  };
  void check(double period, const std::vector<Expected>& expected) const {
    const testing::Star star(2, 1e9, 1 * kMs);
    for (const CollectiveLevel level : {CollectiveLevel::automatic, CollectiveLevel::message, CollectiveLevel::flow}) {
      CyclicTaskGraph at_level = graph;
      at_level.tune_collectives([&](Collective& work, const Group&) { work.level = level; });
      for (const bool fold : {false, true}) {
        const ExecutionResult result = testing::simulate(
            star.cluster(), at_level, {.iterations = 8, .exact = true, .fold = fold, .record_timeline = true});
        for (const int iteration : {0, 5})
          for (const Expected& e : expected) {
            INFO(e.label << ", iteration " << iteration << ", level " << to_string(level));
            const Interval found = interval(at_level, result, e.label, 0, iteration);
            CHECK(found.start == Approx((iteration * period + e.begin) * kMs).margin(1e-9));
            CHECK(found.end == Approx((iteration * period + e.end) * kMs).margin(1e-9));
          }
        CHECK(result.iteration == Approx(period * kMs).margin(1e-9));
        REQUIRE(result.bound);
        CHECK(result.bound->seconds <= period * kMs + 1e-9);
        double bytes = 0;  // an all-reduce of two sends the vector once each way
        for (const Task& task : graph.tasks())
          if (const auto* work = std::get_if<Collective>(&task.work))
            bytes += (work->op == CollectiveOp::all_reduce ? 2 : 1) * work->bytes.value;
        CHECK(result.metrics.bytes == Approx(bytes));
        CHECK(result.metrics.communication <= period * kMs + 1e-9);
      }
    }
  }

  CyclicTaskGraph graph;
  GroupId both = graph.add_group("both", {0, 1});
  QueueId compute{}, wire{};
  std::optional<TaskId> first;
};

}  // namespace

TEST_CASE("what waits when the queue becomes free runs together", "[fusion]") {
  Trial trial(100 * kMB);
  trial.send("a", 5);
  trial.send("b", 5);
  trial.send("c", 10);
  trial.check(25, {{"send a", 1, 8}, {"send b", 8, 25}, {"send c", 8, 25}});
}

TEST_CASE("no more than the limit together, and nothing overtakes what does not fit", "[fusion]") {
  Trial trial(10 * kMB);
  trial.send("a", 20);  // more than the limit: alone
  trial.send("b", 6);
  trial.send("c", 5);  // does not fit beside b
  trial.send("d", 4);  // would have
  trial.check(42, {{"send a", 1, 23}, {"send b", 23, 31}, {"send c", 31, 42}, {"send d", 31, 42}});
}

TEST_CASE("by priority, and only what is alike", "[fusion]") {
  Trial trial(100 * kMB, Discipline::priority);
  trial.send("a", 5, 9);
  trial.send("b", 5, 3);
  trial.send("c", 4, 1, CollectiveOp::all_gather);  // 1 + 2
  trial.send("d", 5, 2);
  trial.check(23, {{"send a", 1, 8}, {"send c", 8, 11}, {"send d", 11, 23}, {"send b", 11, 23}});
}

TEST_CASE("what becomes ready at the same time belongs together", "[fusion]") {
  Trial trial(100 * kMB);
  const TaskId a = trial.send("a", 5), b = trial.send("b", 5);
  const TaskId work = trial.graph.compute(trial.compute, Seconds(1 * kMs), {"work", "last"});
  trial.graph.after(work, a);
  trial.graph.after(work, b);
  trial.check(15, {{"send a", 3, 15}, {"send b", 3, 15}});
}

TEST_CASE("fused sizes are tuned as sizes of their own", "[fusion]") {
  Trial trial(100 * kMB);
  trial.send("a", 5);
  trial.send("b", 5);
  trial.send("c", 10);
  // As if measured: 1 ms a MB and 1 ms more from 15 MB on.
  trial.graph.tune_collectives([](Collective& work, const Group&) {
    work.measured = Seconds((work.bytes.value / kMB + (work.bytes.value >= 15 * kMB ? 1 : 0)) * kMs);
  });
  const testing::Star star(2, 1e9, 1 * kMs);
  const ExecutionResult result = testing::simulate(star.cluster(), trial.graph, {.iterations = 8, .exact = true});
  CHECK(result.iteration == Approx(22 * kMs));  // 1 + 5 + 16
}

TEST_CASE("only collectives of a queue with a line are fused", "[fusion]") {
  const testing::Star star(2, 1e9, 1 * kMs);
  Trial computes(1 * kMB);
  computes.send("a", 5);
  computes.graph.compute(computes.wire, Seconds(1), {"copy", ""});
  CHECK_THROWS_WITH(computes.graph.validate(star.cluster()), Catch::Contains("cannot be fused"));
  Trial ordered(1 * kMB, Discipline::program_order);
  ordered.send("a", 5);
  CHECK_THROWS_WITH(ordered.graph.validate(star.cluster()), Catch::Contains("cannot be fused"));
}

TEST_CASE("fused sizes choose an algorithm of their own, while others compute", "[fusion]") {
  // On links that are unlike, how long a double tree takes is known by simulating it, which a run cannot stop for.
  const auto iteration = [](const std::string& algorithm) {
    const std::string study =
        "study: fused\nplatform: v100_hgx_cloud\nworkers: 4\nmodel: resnet50\ndataset: {samples: 6400}\n"
        "batch: {per_worker: 16}\nstrategy: horovod\ncollective: {algorithm: " +
        algorithm + "}\n";
    return deserialize(testing::in_child([&] {
             return serialize(
                 run_scenario(parse_study(study, "study.yaml").scenarios.front(), builtin_registries(), {}));
           }))
        .iteration_s;
  };
  double best = iteration("ring");
  for (const char* const named : {"halving_doubling", "recursive_doubling", "double_binary_tree"})
    best = std::min(best, iteration(named));
  CHECK(iteration("auto") <= 1.05 * best);
  CHECK(iteration("nccl") >= best);
}

}  // namespace epocast::fusion_test
