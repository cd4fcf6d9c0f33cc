// Local steps and exchanges on a star of 1 GB/s and 1 ms, worked out by hand. Times in ms: forward 10, backward 20,
// update 2; 10 MB of parameters, 11 to send; reading or writing all of them once, 0.02. The server is the first device
// that is not a worker.
#include <catch2/catch.hpp>

#include <numeric>
#include <string>
#include <vector>

#include "strategies/register.hpp"
#include "strategies/synchronisation/commit.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/synthetic.hpp"

namespace epocast::periodic_commit_test {

namespace {

constexpr double kMs = 1e-3, kMB = 1e6;

WorkloadTrace one_layer(std::int64_t batch) {
  return testing::chain({testing::layer("A", 10 * kMs, 20 * kMs, 2 * kMs, {10 * kMB})}, batch);
}

struct Executed {
  TrainingStep step;
  ExecutionResult result;
};

Executed run(const testing::Star& star, int workers, const std::string& name, const std::string& options,
             const std::vector<double>& slowdown = {}, Optimizer optimizer = Optimizer::sgd) {
  const ConfigNode node = ConfigNode::load_text(options, "options");
  std::vector<DeviceId> devices(static_cast<std::size_t>(workers));
  std::iota(devices.begin(), devices.end(), 0);
  const auto strategy = builtin_strategies().make(name, node, node);
  Executed out{strategy->compile({.cluster = star.cluster(),
                                  .workers = devices,
                                  .global_batch = workers,
                                  .trace = one_layer,
                                  .collective = {},
                                  .optimizer = optimizer}),
               {}};
  out.result = testing::simulate(star.cluster(), out.step.graph,
                                 {.iterations = 50, .exact = true, .slowdown = slowdown, .record_timeline = true});
  return out;
}

}  // namespace

TEST_CASE("what a round of two steps takes a lone worker, by rule", "[periodic_commit]") {
  const testing::Star star(2, 1e9, 1 * kMs);
  struct Expected {
    const char* rule;
    double round;
  };
  // Gradients: pull 11, forward and backward 30, update 2, 30 again, add to the first gradient 3 x 0.02, push 11.
  const double gradients = 11 + 30 + 2 + 30 + 0.06 + 11;
  // Parameters: the second step ends with an update as well, and no gradients are added.
  const double steps = 32 + 32, parameters = 11 + steps + 11;
  const std::vector<Expected> expected{
      {"downpour", gradients + 2},                        // the server applies it: 2
      {"agn", gradients + 0.04 + 2},                      // divided by 2: read, write
      {"adag", gradients + 0.04 + 2 * 7.0 / 3},           // an update with Adam's 7 accesses, where SGD's has 3
      {"async_momentum", gradients + 2},                  // one of plain SGD
      {"async_local_sgd", parameters + 3 * 0.02},         // mixed in
      {"model_averaging", parameters + 3 * 0.02 + 0.04},  // added up, divided
      {"easgd", steps + 11 + 3 * 0.02},                   // push and pull at once, then the worker's move
      {"aeasgd", steps + 11 + 4 * 0.02},                  // pull, move; the push runs beside the next steps
  };
  REQUIRE(expected.size() == commit_rules().size());
  for (const auto& [rule, round] : expected) {
    INFO(rule);
    const Executed executed = run(star, 1, rule, "{period: 2}");
    CHECK(executed.step.steps == 2);
    CHECK(executed.result.iteration == Approx(round * kMs).margin(1e-9));
    CHECK(executed.result.metrics.bytes == Approx(2 * 10 * kMB));
  }
}

TEST_CASE("a longer period sends the same less often", "[periodic_commit]") {
  const testing::Star star(4, 1e9, 1 * kMs);
  for (const CommitRule& rule : commit_rules())
    for (const int period : {1, 5}) {
      INFO(rule.name << ", period " << period);
      const Executed executed = run(star, 3, rule.name, "{period: " + std::to_string(period) + "}");
      CHECK(executed.step.steps == period);
      CHECK(executed.result.metrics.bytes == Approx(3 * 2 * 10 * kMB));  // of a round
      // Workers take turns, so that at an end of the observed rounds one may lack a part of one of them.
      CHECK(executed.result.metrics.compute > period * 30 * kMs * (1 - 1 / 50.0));
    }
}

TEST_CASE("model averaging after every step moves the bytes of synchronous parameter servers", "[periodic_commit]") {
  const testing::Star star(7, 1e9, 1 * kMs);
  for (const std::string servers : {"{servers: 1}", "{servers: 2, placement: even}"}) {
    const double averaging = run(star, 4, "model_averaging", servers).result.metrics.bytes;
    CHECK(averaging == run(star, 4, "parameter_server", servers).result.metrics.bytes);
  }
}

TEST_CASE("downpour after every step is asynchronous training with whole models, bit for bit", "[periodic_commit]") {
  const testing::Star star(5, 1e9, 1 * kMs);
  const std::vector<double> slowdown{1, 1.3, 1, 2, 1};
  const ExecutionResult downpour = run(star, 4, "downpour", "{}", slowdown).result;
  const ExecutionResult async = run(star, 4, "parameter_server", "{mode: async, granularity: model}", slowdown).result;
  CHECK(downpour.total == async.total);
  CHECK(downpour.metrics.mean_staleness == async.metrics.mean_staleness);
}

TEST_CASE("who waits for whom", "[periodic_commit]") {
  // One of three workers is three times slower. Synchronous rules go at its pace, for the others an asynchronous rule's
  // early rounds take what they take alone; their shares end earlier.
  const testing::Star star(4, 1e12, 0);
  for (const CommitRule& rule : commit_rules()) {
    INFO(rule.name);
    const Executed executed = run(star, 3, rule.name, "{period: 2}", {1, 1, 3, 1});
    REQUIRE(executed.result.workers.size() == 3);
    const double fast = executed.result.workers[0].ended, slow = executed.result.workers[2].ended;
    if (rule.waits_for_all)
      CHECK(fast > 0.95 * slow);
    else
      CHECK(fast < 0.4 * slow);
  }
}

TEST_CASE("staleness of asynchronous rules is that of equal workers", "[periodic_commit]") {
  // Between a worker's pull and its next commit everybody else commits once. Those that wait for all are never stale,
  // but for elastic averaging, which swaps with the centre of the round before.
  const testing::Star star(6, 1e12, 0);
  for (const CommitRule& rule : commit_rules()) {
    if (rule.exchange == CommitRule::Exchange::swap) continue;
    INFO(rule.name);
    const StepMetrics metrics = run(star, 5, rule.name, "{period: 3}").result.metrics;
    if (rule.waits_for_all) {
      CHECK(metrics.max_staleness == 0);
    } else if (rule.exchange == CommitRule::Exchange::push_then_pull) {
      CHECK(metrics.mean_staleness == 4.0);
      CHECK(metrics.max_staleness == 4);
    } else {
      // A worker that pulls commits as soon as it has moved: at most those of the others that came just now.
      CHECK(metrics.max_staleness <= 4);
    }
  }
}

TEST_CASE("momentum by asynchrony spares the server its velocity", "[periodic_commit]") {
  // With the study's optimizer momentum, DOWNPOUR's server keeps a value per parameter; this rule's does not.
  const testing::Star star(3, 1e9, 1 * kMs);
  const auto server_state = [&](const char* rule) {
    for (const DeviceMemory& memory : run(star, 2, rule, "{}", {}, Optimizer::momentum).step.memory)
      if (memory.holder == "server 0") return memory.use.optimizer_state.value;
    return -1.0;
  };
  CHECK(server_state("downpour") == 10 * kMB);
  CHECK(server_state("async_momentum") == 0);
}

}  // namespace epocast::periodic_commit_test
