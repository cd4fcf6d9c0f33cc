// Pipelines whose stages have unequal numbers of replicas, against a timeline worked out by hand, and choices of where
// stages begin and how many replicas they have, against trying out all of them.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "sim/recompute.hpp"
#include "strategies/register.hpp"
#include "tests/support/error_message.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/synthetic.hpp"

namespace epocast::pipeline_layout_test {

using testing::interval;

namespace {

constexpr double kMs = 1e-3;

/// Times are ms per sample.
struct LayerCosts {
  double forward = 0, backward = 0, parameters = 0, output = 0, kept = 0;
};

TraceSource layers(const std::vector<LayerCosts>& all) {
  return [all](std::int64_t batch) {
    const double samples = double(batch);
    std::vector<LayerTrace> made;
    for (const LayerCosts& layer : all) {
      made.push_back(testing::layer("L" + std::to_string(made.size()), layer.forward * samples * kMs,
                                    layer.backward * samples * kMs, 0, {layer.parameters}));
      made.back().output = Bytes(layer.output * samples);
      made.back().kept_activations = Bytes(layer.kept * samples);
    }
    WorkloadTrace trace = testing::chain(std::move(made), batch);
    trace.layers.front().output = trace.layers.front().kept_activations = Bytes(0);
    return trace;
  };
}

TrainingStep compile(const Cluster& cluster, const std::string& options, int workers, int batch,
                     const TraceSource& trace, Bytes reserve = {}) {
  const ConfigNode node = ConfigNode::load_text(options, "options");
  std::vector<DeviceId> devices(static_cast<std::size_t>(workers));
  std::iota(devices.begin(), devices.end(), 0);
  const auto strategy = builtin_strategies().make("pipeline", node, node);
  node.check_all_read();
  return strategy->compile({.cluster = cluster,
                            .workers = devices,
                            .global_batch = batch,
                            .trace = trace,
                            .collective = {},
                            .optimizer = Optimizer::adam,
                            .memory_reserve = reserve});
}

std::vector<std::size_t> replicas(const TrainingStep& step) {
  std::vector<std::size_t> out;
  for (const DeviceMemory& stage : step.memory) out.push_back(stage.devices.size());
  return out;
}

int micro_batches(const TrainingStep& step) {
  int most = 0;
  for (const Task& task : step.graph.tasks()) {
    const std::string label = task.label.text();
    if (label == "forward stage 0") most = std::max(most, 1);
    if (label.starts_with("forward stage 0 #")) most = std::max(most, 1 + std::stoi(label.substr(17)));
  }
  return most;
}

}  // namespace

TEST_CASE("micro-batches that nobody chose: the most up to four a stage, in multiples of the stages", "[pipeline]") {
  const testing::Star star(3, 1e9, 0.1 * kMs);
  const TraceSource trace = layers({{1, 2, 1e6, 1e6}, {1, 2, 1e6, 1e6}, {1, 2, 1e6, 0}});
  const auto chosen = [&](int batch) { return micro_batches(compile(star.cluster(), "{}", 3, batch, trace)); };
  CHECK(chosen(24) == 12);
  CHECK(chosen(27) == 9);
  CHECK(chosen(15) == 3);  // not 5, in which stages would be busy unequally often
  CHECK(chosen(10) == 10);
  CHECK(chosen(7) == 7);
  // What takes a batch as a whole may be told so.
  CHECK(micro_batches(compile(star.cluster(), "{schedule: pipedream, micro_batches: 1}", 3, 15, trace)) == 1);
}

TEST_CASE("two replicas feed one stage, each with its share of the samples", "[pipeline]") {
  // 2 micro-batches of 2 samples. L0, 1 + 2 ms and 1 MB of parameters, is on two replicas with a sample each; L1,
  // 0.5 + 1 ms per sample, takes both on one device: 1 + 2 ms. A sample's activations are 0.25 MB; 1 GB/s, 0.1 ms.
  // Stage 0: F0 0-1, F1 1-2. Both shares of micro-batch 0 go through stage 1's link: 0.1 + 0.5 ms, 1-1.6; of 1, 2-2.6.
  // Stage 1: F0 1.6-2.6, B0 2.6-4.6, F1 4.6-5.6, B1 5.6-7.6. It sends gradients to replica 0, then to replica 1, 0.35
  // ms each: 4.6-4.95-5.3 and 7.6-7.95-8.3. Replica 0: B0 4.95-6.95, B1 7.95-9.95; replica 1: B0 5.3-7.3, B1 8.3-10.3.
  // All-reduce of 1 MB between 2, two rounds of 0.1 + 0.5 ms: 10.3-11.5.
  const testing::Star star(3, 1e9, 0.1 * kMs);
  const TraceSource trace = layers({{1, 2, 1e6, 0.25e6}, {0.5, 1, 3e6, 0}});
  const TrainingStep step = compile(star.cluster(), "{replicas: [2, 1], micro_batches: 2}", 3, 4, trace);
  const ExecutionResult result =
      testing::simulate(star.cluster(), step.graph, {.iterations = 3, .exact = true, .record_timeline = true});
  const auto check = [&](const std::string& label, double start, double end) {
    INFO(label);
    for (const int iteration : {0, 2}) {
      const Interval i = interval(step.graph, result, label, 0, iteration);
      CHECK(i.start == Approx((11.5 * iteration + start) * kMs).epsilon(1e-9));
      CHECK(i.end == Approx((11.5 * iteration + end) * kMs).epsilon(1e-9));
    }
  };
  check("forward stage 0 replica 1 #1", 1, 2);
  check("send activations stage 0 replica 0 #0", 1, 1.6);
  check("send activations stage 0 replica 1 #0", 1, 1.6);
  check("send activations stage 0 replica 1 #1", 2, 2.6);
  check("forward stage 1 #0", 1.6, 2.6);
  check("backward stage 1 #0", 2.6, 4.6);
  check("send gradients stage 1 to replica 0 #0", 4.6, 4.95);
  check("send gradients stage 1 to replica 1 #0", 4.95, 5.3);
  check("backward stage 0 replica 0 #0", 4.95, 6.95);
  check("backward stage 0 replica 1 #0", 5.3, 7.3);
  check("send gradients stage 1 to replica 1 #1", 7.95, 8.3);
  check("backward stage 0 replica 0 L0 #1", 7.95, 9.95);
  check("backward stage 0 replica 1 L0 #1", 8.3, 10.3);
  check("all-reduce stage 0 L0", 10.3, 11.5);
  CHECK(result.iteration == Approx(11.5 * kMs).epsilon(1e-9));
  CHECK(result.metrics.bytes == Approx(8 * 0.25e6 + 2 * 1e6));  // 4 + 4 shares, and the all-reduce
  CHECK(result.metrics.max_staleness == 0);
  CHECK(replicas(step) == std::vector<std::size_t>{2, 1});
}

TEST_CASE("stages divide samples at different places", "[pipeline]") {
  // A micro-batch of 6 samples of 1 kB. Of 3 replicas with 2 samples each the second one's go to both of 2 with 3 each.
  const TraceSource trace = layers({{1, 2, 1, 1e3}, {1, 2, 1, 0}});
  const Cluster cluster = testing::cluster_of(5);
  const TrainingStep step = compile(cluster, "{replicas: [3, 2], micro_batches: 1}", 5, 6, trace);
  step.graph.validate(cluster);
  std::vector<std::string> found;
  for (const Task& task : step.graph.tasks())
    if (const auto* transfer = std::get_if<Transfer>(&task.work))
      found.push_back(fmt::format("{} {} {} {}", task.label.operation, step.graph.group(transfer->from).devices.front(),
                                  step.graph.group(transfer->to).devices.front(), transfer->bytes.value));
  std::sort(found.begin(), found.end());
  CHECK(found == std::vector<std::string>{"send activations 0 3 2000", "send activations 1 3 1000",
                                          "send activations 1 4 1000", "send activations 2 4 2000",
                                          "send gradients 3 0 2000", "send gradients 3 1 1000",
                                          "send gradients 4 1 1000", "send gradients 4 2 2000"});
  // Neighbours are replicas of a stage, or stages of a replica as far as there are any.
  CHECK(step.memory[1].devices == std::vector<DeviceId>{3, 4});
  const TrainingStep other =
      compile(cluster, "{replicas: [3, 2], micro_batches: 1, placement: replica_major}", 5, 6, trace);
  CHECK(other.memory[0].devices == std::vector<DeviceId>{0, 2, 4});
  CHECK(other.memory[1].devices == std::vector<DeviceId>{1, 3});
}

TEST_CASE("equal replicas in a list are equal replicas", "[pipeline]") {
  const TraceSource trace = layers({{1, 2, 1e6, 1e3}, {1, 2, 1e6, 0}});
  const Cluster cluster = testing::cluster_of(4);
  const TrainingStep list = compile(cluster, "{replicas: [2, 2]}", 4, 32, trace);
  const TrainingStep stages = compile(cluster, "{stages: 2}", 4, 32, trace);
  REQUIRE(list.graph.tasks().size() == stages.graph.tasks().size());
  for (std::size_t t = 0; t < list.graph.tasks().size(); ++t)
    CHECK(list.graph.tasks()[t].label.text() == stages.graph.tasks()[t].label.text());
}

TEST_CASE("a replica holds what its share of the samples needs", "[pipeline]") {
  // GPipe with 2 micro-batches of 4 samples: of L0's 100 B per sample two replicas keep 2 x 2 each, L1 keeps all 2 x 4
  // of 50 B and what it receives, 10 B each. Adam: weights, gradients and two values of state.
  const TraceSource trace = layers({{1, 2, 1e3, 10, 100}, {1, 2, 2e3, 0, 50}});
  const TrainingStep step =
      compile(testing::cluster_of(3), "{replicas: [2, 1], schedule: gpipe, micro_batches: 2}", 3, 8, trace);
  CHECK(step.memory[0].use.total().value == 4e3 + 400);
  CHECK(step.memory[1].use.total().value == 8e3 + 8 * 60);
}

TEST_CASE("numbers of replicas are chosen for the least time", "[pipeline]") {
  // Per sample 0.9 ms in a layer with few parameters and 0.3 ms in one with many, on 4 devices of 1 GB/s. 1 GB of them
  // makes an all-reduce over all of 2 x 3/4 s; with 3 replicas and 1, all are busy and send hardly anything.
  const auto chosen = [](double parameters, const std::string& more = "") {
    const TraceSource trace = layers({{0.3, 0.6, 1e3, 10}, {0.1, 0.2, parameters, 0}});
    return replicas(
        compile(testing::cluster_of(4), "{replicas: auto, split_bandwidth: 1 GB/s" + more + "}", 4, 96, trace));
  };
  using Counts = std::vector<std::size_t>;
  CHECK(chosen(1e9) == Counts{3, 1});
  // Without many parameters no pipeline beats data parallelism, which has no bubble; if it must be two stages, 3 and 1.
  CHECK(chosen(1e3) == Counts{4});
  CHECK(chosen(1e3, ", stages: 2") == Counts{3, 1});
  // 2 micro-batches of 48 samples, 3 x 14.4 ms of pipeline; all on each, 96 x 1.2 / 4 = 28.8 ms. 10 MB add 15 ms, 9.6
  // ms of them during the second micro-batch's backward pass: 34.2 ms.
  CHECK(chosen(10e6, ", micro_batches: 2") == Counts{4});
  CHECK(chosen(40e6, ", micro_batches: 2") == Counts{3, 1});  // 60 ms add 50.4
  // Micro-batches of 4 samples are not for 3 replicas.
  CHECK(chosen(1e9, ", micro_batches: 24, stages: 2") == Counts{2, 2});
}

TEST_CASE("split: time is the fastest split that fits", "[pipeline]") {
  // Against all splits, which first_layers names. Parameters are powers of 2, so that a stage's tell its layers.
  std::mt19937_64 random(6);
  const auto below = [&](std::uint64_t n) { return double(random() % n); };
  int constrained = 0, impossible = 0;
  for (int round = 0; round < 120; ++round) {
    std::vector<LayerCosts> network(7);
    for (std::size_t l = 0; l < network.size(); ++l)
      network[l] = {1 + below(9), 1 + below(9), 16 * std::pow(2, double(l)), 1 + below(20), below(30)};
    // Nothing is computed again, or all that a stage does not receive, or segments wherever stages begin.
    const auto again = random() % 3;
    const TraceSource trace = [made = layers(network), again](std::int64_t batch) {
      WorkloadTrace out = made(batch);
      if (again == 2) apply_recompute(out, {Recompute::Segments::count, 3});
      return out;
    };
    const WorkloadTrace sample = trace(1);
    const std::vector<std::string> schedules{"gpipe",     "1f1b", "zb_h1",    "zb_h2",
                                             "pipedream", "2bw",  "threaded", "naive"};
    const std::string schedule = schedules[random() % schedules.size()];
    const std::string common =
        "schedule: " + schedule + (again == 1 ? ", recompute: true" : "") + ", replicas: [1, 2, 1]";
    INFO(common << ", round " << round);
    Cluster cluster = testing::cluster_of(4);
    const Bytes reserve(100), limit(4000 + below(16000));
    for (Device& device : cluster.devices) device.memory = limit + reserve;
    const auto most = [](const TrainingStep& step) {
      Bytes need;
      for (const DeviceMemory& stage : step.memory) need = std::max(need, stage.use.total());
      return need;
    };
    const auto pace = [&](const TrainingStep& step) {
      double slowest = 0;
      for (const DeviceMemory& stage : step.memory) {
        double time = 0;
        for (std::size_t l = 0; l < network.size(); ++l)
          if (std::fmod(stage.use.gradients.value / network[l].parameters, 2) >= 1)
            time +=
                (network[l].forward * (again == 1 || sample.layers[l + 1].segment >= 0 ? 2 : 1) + network[l].backward) /
                double(stage.devices.size());
        slowest = std::max(slowest, time);
      }
      return slowest;
    };
    double fastest = INFINITY, fastest_that_fits = INFINITY;
    for (std::size_t second = 1; second < network.size(); ++second)
      for (std::size_t third = second + 1; third < network.size(); ++third) {
        const TrainingStep step =
            compile(cluster, fmt::format("{{{}, first_layers: [L{}, L{}]}}", common, second, third), 4, 24, trace);
        fastest = std::min(fastest, pace(step));
        if (most(step) <= limit) fastest_that_fits = std::min(fastest_that_fits, pace(step));
      }
    const TrainingStep chosen = compile(cluster, "{" + common + "}", 4, 24, trace, reserve);
    CHECK(pace(compile(cluster, "{split: time_only, " + common + "}", 4, 24, trace, reserve)) ==
          Approx(fastest).epsilon(1e-12));
    if (fastest_that_fits == INFINITY) {
      ++impossible;
      CHECK(pace(chosen) == Approx(fastest).epsilon(1e-12));
    } else {
      CHECK(most(chosen) <= limit);
      CHECK(pace(chosen) == Approx(fastest_that_fits).epsilon(1e-12));
      constrained += fastest_that_fits > fastest * (1 + 1e-9);
    }
  }
  CHECK(constrained >= 10);
  CHECK(impossible >= 5);
}

TEST_CASE("chunks of interleaved stages are kept within shares of the memory", "[pipeline]") {
  // Five layers on 2 stages of 2 chunks; L0 and L1 take 1 ms, the others 2. By time alone L0 L1 | L2 | L3 | L4: stage 0
  // has 1000 + 500 + 900 B of parameters, 9600 B with Adam, and a few activations. 8100 B are 4050 for each chunk: L0
  // without L1, 4000 B, and L3, 3600 B.
  const TraceSource trace =
      layers({{0.5, 0.5, 1000, 1}, {0.5, 0.5, 500, 1}, {1, 1, 10, 1}, {1, 1, 900, 1}, {1, 1, 10, 1}});
  Cluster cluster = testing::cluster_of(2);
  const auto first_gradients = [&](double memory) {
    for (Device& device : cluster.devices) device.memory = Bytes(memory);
    const TrainingStep step = compile(cluster, "{schedule: interleaved, micro_batches: 2}", 2, 4, trace);
    CHECK(step.memory[1].holder == (step.memory[0].use.gradients.value < 2400 ? "stage 1 (L1 to L2, L4 to L4)"
                                                                              : "stage 1 (L2 to L2, L4 to L4)"));
    return step.memory[0].use.gradients.value;
  };
  CHECK(first_gradients(1e9) == 2400);
  CHECK(first_gradients(8100) == 1900);
  CHECK(first_gradients(4000) == 2400);  // no split fits: the fastest
}

TEST_CASE("replicas that do not fit are errors that say what would", "[pipeline]") {
  const auto message = [&](const std::string& options, int workers = 4, int batch = 32) {
    const TraceSource trace = layers({{1, 2, 1e3, 10}, {1, 2, 1e3, 10}, {1, 2, 1e3, 0}});
    return testing::message([&] { compile(testing::cluster_of(workers), options, workers, batch, trace); });
  };
  using Catch::Contains;
  CHECK_THAT(message("{replicas: [3, 2]}"), Contains("replicas: 3 + 2 replicas need 5 workers, but the study has 4"));
  CHECK_THAT(message("{replicas: [4, 0]}"), Contains("replicas[1]"));
  CHECK_THAT(message("{replicas: []}"), Contains("no stages"));
  CHECK_THAT(message("{replicas: some}"), Contains("a list of counts, one per stage, or auto"));
  CHECK_THAT(message("{replicas: [3, 1]}"),
             Contains("a batch of 32 samples does not divide into 3 equal shares; set batch.global to 30 or 33"));
  CHECK_THAT(message("{replicas: [3, 1], micro_batches: 5}", 4, 48), Contains("use 4 or 8"));
  CHECK_THAT(message("{replicas: [2, 2], stages: 3}"), Contains("stages: 3 stages, but replicas of 2"));
  CHECK_THAT(message("{replicas: [1, 1, 1, 1]}"), Contains("replicas: 4 stages are too many"));
  CHECK_THAT(message("{replicas: [2, 2], schedule: naive, gradients: one_processor}"), Contains("do not go together"));
  CHECK_THAT(message("{replicas: auto}"), Contains("split_bandwidth must say"));
  CHECK_THAT(message("{replicas: auto, split: even}"), Contains("only split: time chooses"));
  CHECK_THAT(message("{replicas: auto, first_layers: [L1]}"), Contains("only split: time chooses"));
  CHECK_THAT(message("{replicas: auto, split_bandwidth: 1 GB/s, schedule: interleaved}"), Contains("are not chosen"));
  CHECK_THAT(message("{replicas: auto, split_bandwidth: 1 GB/s, stages: 5}"), Contains("5 stages need 5 workers"));
  CHECK_THAT(message("{replicas: auto, split_bandwidth: 1 GB/s, stages: 2, micro_batches: 25}", 5, 25),
             Contains("nothing to choose") && Contains("micro-batches of 1 samples"));
}

TEST_CASE("over a mesh, stages begin with copies of the block that the network repeats", "[pipeline]") {
  const auto named = [](const std::vector<std::string>& names) {
    std::vector<LayerTrace> made;
    for (const std::string& name : names) made.push_back(testing::layer(name, 1, 2, 0, {1}));
    return testing::chain(std::move(made));
  };
  std::vector<std::string> names{"words", "drop.0.mask"};
  for (int copy = 0; copy < 7; ++copy)
    for (const char* part : {"norm", "drop_1.0.mask"}) names.push_back("layer." + std::to_string(copy) + "." + part);
  names.push_back("logits");
  const WorkloadTrace trace = named(names);
  // Behind data, words and one copy of another block: two layers for each copy.
  CHECK(block_copies(trace) == std::vector<std::size_t>{3, 5, 7, 9, 11, 13, 15});
  CHECK(divide_blocks_evenly(trace, 7) == std::vector<std::size_t>{0, 5, 7, 9, 11, 13, 15, 18});
  // 7 = 2 + 3 + 2, and 1 + 2 + 2 + 1 + 1: one more in the middle.
  CHECK(divide_blocks_evenly(trace, 3) == std::vector<std::size_t>{0, 7, 13, 18});
  CHECK(divide_blocks_evenly(trace, 5) == std::vector<std::size_t>{0, 5, 9, 13, 15, 18});
  CHECK_THROWS_WITH(divide_blocks_evenly(trace, 8), Catch::Contains("7 copies of a block"));
  // Encoder and decoder are two blocks; layers that are named otherwise none.
  CHECK(block_copies(named({"encoder.0.a", "encoder.1.a", "decoder.0.a", "decoder.1.a"})).empty());
  CHECK(block_copies(named({"conv1", "layer.x.a", "layer..b", "layer.3"})).empty());
  CHECK_THROWS_WITH(divide_blocks_evenly(named({"conv1"}), 2), Catch::Contains("no one block that is repeated"));
}

}  // namespace epocast::pipeline_layout_test
