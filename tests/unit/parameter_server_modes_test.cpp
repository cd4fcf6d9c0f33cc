// Asynchronous and stale synchronous servers, and those with backup workers: who waits for whom. Times and sizes as in
// tests/unit/parameter_server_test.cpp.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/run_study.hpp"
#include "tests/support/served.hpp"

namespace epocast::parameter_server_modes_test {

using namespace testing::served;
using testing::interval;

TEST_CASE("asynchronous: equal workers settle one update apart", "[parameter_server]") {
  // Both pull at 0 and push at 51, through half a link each: 72. The server applies one gradient first (72..74; which
  // one is a tie), then the other (74..76). The first worker pulls at 74: from 75 to 77 alone, 2 MB; then both share
  // the link: its other 8 MB take until 93. The second has 2 MB left by then, alone: 95. So it stays 2 behind and the
  // push is like the pull: the first pushes 123..142, the second 125..144, updates 142..144 and 144..146: all as
  // before, 70 later.
  const testing::Star star(3, 1e9, 1 * kMs);
  const Executed executed = run(star, 2, "{mode: async}");
  const std::uint32_t first = executed.start("update A", 0, 0) < executed.start("update A", 1, 0) ? 0 : 1;
  for (const std::uint32_t rank : {0U, 1U}) {
    const double behind = rank == first ? 0 : 2;
    executed.check("pull A", rank, 0, 0, 21);
    executed.check("push A", rank, 0, 51, 72);
    executed.check("update A", rank, 0, 72 + behind, 74 + behind);
    for (const std::int64_t k : {1, 2, 40}) {
      const double t = 70 * static_cast<double>(k - 1) + behind;
      executed.check("pull A", rank, k, t + 74, t + 93);
      executed.check("backward A", rank, k, t + 103, t + 123);
      executed.check("push A", rank, k, t + 123, t + 142);
      executed.check("update A", rank, k, t + 142, t + 144);
    }
  }
  CHECK(executed.result.iteration == Approx(70 * kMs).margin(1e-9));
  CHECK(executed.result.metrics.mean_staleness == 1.0);  // the other worker's update lies between
}

TEST_CASE("asynchronous: who is ready first is served first", "[parameter_server]") {
  // Worker 0 computes twice as long: worker 1 has the link to itself, pushes 51..62 and is served 62..64; then it pulls
  // 64..75. Worker 0 pushes at 81, alone as well: 92, and is served 92..94.
  const testing::Star star(3, 1e9, 1 * kMs);
  const Executed executed = run(star, 2, "{mode: async}", {2, 1, 1});
  executed.check("update A", 1, 0, 62, 64);
  executed.check("pull A", 1, 1, 64, 75);
  executed.check("backward A", 0, 0, 41, 81);
  executed.check("push A", 0, 0, 81, 92);
  executed.check("update A", 0, 0, 92, 94);
}

TEST_CASE("asynchronous: n equal workers are n - 1 versions behind", "[parameter_server]") {
  // Every worker's gradient is applied once between two of any other's: n - 1 others. Synchronously nobody is behind.
  for (const int workers : {2, 4, 8}) {
    INFO(workers << " workers");
    const testing::Star star(workers + 1, 1e12, 0);
    const Executed async = run(star, workers, "{mode: async}");
    CHECK(async.result.metrics.mean_staleness == workers - 1.0);
    CHECK(async.result.metrics.max_staleness == workers - 1);
    const Executed sync = run(star, workers, "{mode: sync}");
    CHECK(sync.result.metrics.mean_staleness == 0.0);
    CHECK(sync.result.metrics.max_staleness == 0);
  }
}

TEST_CASE("stale synchronous with bound 0 is synchronous, without one asynchronous, bit for bit",
          "[parameter_server]") {
  // On several layers, where pushes and pulls overlap computation, with a worker of half and one of two thirds the
  // speed, and on one with copies and a server that takes time.
  const auto layers = [](std::int64_t batch) {
    return testing::chain({testing::layer("A", 3 * kMs, 4 * kMs, 1 * kMs, {2 * kMB}),
                           testing::layer("B", 5 * kMs, 6 * kMs, 2 * kMs, {11 * kMB})},
                          batch);
  };
  const testing::Star star(5, 1e9, 0.1 * kMs);
  const std::string rest = ", copy_rate: 2 GB/s, server_rate: 3 GB/s}";
  const std::vector<double> slowdown{1, 2, 1, 1.5, 1};
  const auto times = [&](const std::string& mode) {
    const ExecutionResult result = run(star, 4, "{mode: " + mode + rest, slowdown, layers).result;
    std::vector<double> ends;
    for (const Interval& i : result.timeline.intervals) ends.push_back(i.end);
    ends.push_back(result.total);
    return ends;
  };
  CHECK((times("stale, staleness: 0") == times("sync")));
  CHECK((times("stale, staleness: infinite") == times("async")));
  // A bound that nobody reaches in 50 steps leaves no trace either, but for what waits for it.
  const auto total = [&](const std::string& mode) {
    return run(star, 4, "{mode: " + mode + rest, slowdown, layers).result.total;
  };
  CHECK(total("stale, staleness: 60") == total("async"));
}

TEST_CASE("a bound holds: nobody starts a step that far ahead of the slowest", "[parameter_server]") {
  // Worker 2 is three times slower. With bound s, step k of anybody starts when step k - 1 - s of all has been applied.
  const testing::Star star(4, 1e9, 0);
  for (const int bound : {0, 1, 3, 10}) {
    INFO("bound " << bound);
    const Executed executed = run(star, 3, "{mode: stale, staleness: " + std::to_string(bound) + "}", {1, 1, 3, 1});
    int held_back = 0;
    for (std::int64_t k = 1 + bound; k < 50; ++k)
      for (const std::uint32_t rank : {0U, 1U}) {
        const double slowest = bound == 0 ? interval(executed.graph, executed.result, "update A", 0, k - 1).end
                                          : interval(executed.graph, executed.result, "update A", 2, k - 1 - bound).end;
        const double start = executed.start("pull A", rank, k);
        CHECK(start >= slowest - 1e-12);
        held_back += start < slowest + 1e-9 ? 1 : 0;
      }
    CHECK(held_back > 30);  // and it is the bound that holds the fast ones back
    // While a worker does one step, each of two others can come from `bound` steps behind it to `bound` ahead.
    CHECK(executed.result.metrics.max_staleness <= 2 * (2 * bound + 1));
  }
}

TEST_CASE("the tighter the bound, the longer it takes with a passing straggler", "[parameter_server]") {
  const testing::Star star(4, 1e9, 0);
  const auto total = [&](const std::string& mode) { return run(star, 3, mode, {1, 1, 1.5, 1}).result.total; };
  const double sync = total("{mode: sync}"), async = total("{mode: async}");
  double last = sync * 1.001;
  for (const char* bound : {"1", "5", "20"}) {
    const double now = total(std::string("{mode: stale, staleness: ") + bound + "}");
    CHECK(now <= last * (1 + 1e-9));
    CHECK(now >= async * (1 - 0.02));  // the order of service at the server may shift a little
    last = now;
  }
}

TEST_CASE("backup workers: who is last is not waited for", "[parameter_server]") {
  // As the synchronous run above with three workers, of which worker 2 takes 10 times as long. Two pull and push at
  // once: the period is that of two workers, 74.12, once worker 2 is busy with its first step: pulls of all three
  // 0..31, computation until 61, two pushes 61..82, two sums of 0.06, update of 2: 84.12.
  const testing::Star star(4, 1e9, 1 * kMs);
  const Executed executed = run(star, 3, "{mode: backup, backup: 1}", {1, 1, 10, 1});
  executed.check("update A", 0, 0, 82.12, 84.12);
  executed.check("pull A", 0, 1, 84.12, 84.12 + 21);
  executed.check("update A", 0, 1, 84.12 + 72.12, 84.12 + 74.12);
  // Worker 2 computes from 31 to 331 and is dropped; by then updates 1, 2 and 3 have begun, the last at 304.48, and 4
  // has not: it goes on with step 4.
  executed.check("forward A", 2, 0, 31, 131);
  CHECK_THROWS(executed.start("forward A", 2, 1));
  CHECK_THROWS(executed.start("forward A", 2, 3));
  CHECK(executed.start("forward A", 2, 4) > 331 * kMs);
  REQUIRE(executed.result.workers.size() == 3);
  CHECK(executed.result.workers[2].dropped == executed.result.workers[2].steps);
  CHECK(executed.result.workers[0].steps == 50);
  CHECK(executed.result.workers[0].dropped == 0);
  // With nobody spare it is the synchronous run.
  CHECK(run(star, 3, "{mode: backup, backup: 0}", {1, 1, 3, 1}).result.total ==
        run(star, 3, "{mode: sync}", {1, 1, 3, 1}).result.total);
}

TEST_CASE("asynchronous throughput grows with the workers until the server is saturated", "[parameter_server]") {
  // Free network; computing 30, an update 2. The server is busy 2 n of every step: n workers are n times as fast as one
  // while 2 n <= 32, that is up to 16; from there on the server makes an update every 2 ms. Staleness is n - 1 always.
  for (const int workers : {1, 2, 8, 15, 16, 17, 24}) {
    INFO(workers << " workers");
    const testing::Star star(workers + 1, 1e15, 0);
    const StepMetrics metrics = run(star, workers, "{mode: async}").result.metrics;
    const double iteration = run(star, workers, "{mode: async}").result.iteration;
    CHECK(iteration == Approx(std::max(32, 2 * workers) * kMs).epsilon(1e-6));
    CHECK(metrics.mean_staleness == workers - 1.0);
    CHECK(metrics.max_staleness == workers - 1);
  }
}

TEST_CASE("asynchronous throughput grows until the server's link is saturated", "[parameter_server]") {
  // An update that takes no time; 10 MB at 1 GB/s each way: 10 per worker and direction. From far more workers than
  // (30 + 20) / 10 = 5 on, the two directions are what n messages queue for. Equal workers keep in step, all pulling,
  // then all pushing: 20 n + 30. With computing times that vary, they spread: a balanced closed network of two
  // stations, of which each is busy n / (n + 1) of the time (Reiser and Lavenberg 1980): 10 (n + 1).
  const auto trace = [](std::int64_t batch) {
    return testing::chain({testing::layer("A", 10 * kMs, 20 * kMs, 0, {10 * kMB})}, batch);
  };
  constexpr int kWorkers = 48;
  const testing::Star star(kWorkers + 1, 1e9, 0);
  CHECK(run(star, kWorkers, "{mode: async}", {}, trace).result.iteration ==
        Approx((20 * kWorkers + 30) * kMs).epsilon(1e-6));

  const ConfigNode node = ConfigNode::load_text("{mode: async}", "options");
  std::vector<DeviceId> devices(kWorkers);
  std::iota(devices.begin(), devices.end(), 0);
  const TrainingStep step = builtin_strategies()
                                .make("parameter_server", node, node)
                                ->compile({star.cluster(), devices, kWorkers, trace, {}});
  const ExecutionResult spread = testing::simulate(
      star.cluster(), step.graph, {.iterations = 400, .exact = true, .noise = {.compute_cv = 0.5, .seed = 1}});
  CHECK(spread.iteration == Approx(10 * (kWorkers + 1) * kMs).epsilon(0.03));
  CHECK(spread.metrics.mean_staleness == Approx(kWorkers - 1).epsilon(0.01));
}

TEST_CASE("backup workers: updates apply what they leave of unequal shares, on average", "[parameter_server]") {
  // Of 2 samples and 1, one of both: 1.5 a step, 4 steps for 6 samples.
  const ScenarioResult result = testing::run_study(
      "study: backup\nplatform: skylake_10gbe\nworkers: 2\nmodel: mlp_mnist\ndataset: {samples: 6}\n"
      "batch: {global: 3, spare: idle}\nstack: ideal\nstrategy: {name: parameter_server, mode: backup}\n");
  CHECK(result.samples_per_s == Approx(1.5 / result.iteration_s));
  CHECK(result.global_batch == 2);
  CHECK(result.comm_bytes_per_epoch == Approx(4 * result.comm_bytes_per_iteration));
}

}  // namespace epocast::parameter_server_modes_test
