// Devices of different kinds: times of each, by hand. Device d1 and, where named, others are k times slower than d0 in
// everything.

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

#include "costmodels/nominal_scaling.hpp"
#include "costmodels/step_time.hpp"
#include "sim/device_kinds.hpp"
#include "tests/support/hand_timeline.hpp"

namespace epocast::unequal_devices_test {

using namespace epocast::testing;

namespace {

constexpr double k = 3;

/// A star of three devices of which these are k times slower.
struct Mixed {
  explicit Mixed(const std::vector<DeviceId>& slow, double bandwidth = 1e9, double latency = kMs)
      : star(3, bandwidth, latency), cluster(star.cluster()) {
    for (const DeviceId id : slow) {
      Device& device = cluster.devices[static_cast<std::size_t>(id)];
      device.model = "slow";
      device.peak_rate = device.peak_rate / k;
      device.memory_bandwidth = device.memory_bandwidth / k;
    }
  }

  StrategyContext context(const std::vector<DeviceId>& workers, const TraceSource& fast = two_layers) const {
    const auto on_device = [this, fast](std::int64_t batch, DeviceId device) {
      WorkloadTrace trace = fast(batch);
      for (LayerTrace& layer : trace.layers)
        if (cluster.devices[static_cast<std::size_t>(device)].model == "slow")
          layer.times = each_pass([&](DeviceTime LayerTimes::*pass) { return layer.times.*pass * k; });
      return trace;
    };
    const auto kinds = std::make_shared<const DeviceKinds>(cluster, workers);
    return {.cluster = cluster,
            .workers = workers,
            .global_batch = static_cast<std::int64_t>(workers.size()),
            .trace = TraceSource(kinds, on_device),
            .collective = {},
            .kinds = kinds};
  }

  TrainingStep compile(const std::string& strategy, const std::string& options, const std::vector<DeviceId>& workers,
                       const TraceSource& fast = two_layers) const {
    const ConfigNode node = ConfigNode::load_text(options, "options");
    return builtin_strategies().make(strategy, node, node)->compile(context(workers, fast));
  }

  ExecutionResult run(const std::string& strategy, const std::string& options, const std::vector<DeviceId>& workers,
                      const TraceSource& fast = two_layers) const {
    return simulate(cluster, compile(strategy, options, workers, fast).graph, {.iterations = 20, .exact = true});
  }

  Star star;
  Cluster cluster;
};

}  // namespace

TEST_CASE("times on devices of several kinds are calculated kind by kind") {
  const Mixed mixed({1});
  const std::vector<DeviceId> all{0, 1, 2};
  const auto kinds = std::make_shared<const DeviceKinds>(mixed.cluster, all);
  REQUIRE(kinds->examples() == std::vector<DeviceId>{0, 1});
  CHECK(kinds->of(2) == 0);
  const auto unequal = DeviceTime::each(kinds, [](DeviceId device) { return Seconds(1 + 4 * device); });  // 1, 5
  const DeviceTime sum = (unequal + Seconds(2)) * 2 / 4;                                                  // 1.5, 3.5
  CHECK(sum.on(0).value == 1.5);
  CHECK(sum.on(1).value == 3.5);
  CHECK(sum.on(2).value == 1.5);
  CHECK(sum.longest().value == 3.5);
  CHECK(sum.shortest().value == 1.5);
  CHECK_FALSE(sum.is_same());
  CHECK(DeviceTime(Seconds(0)).is_same());
  CHECK_FALSE(DeviceTime(Seconds(0)).any());

  // A computation whose time is not known on its device is refused.
  const std::vector<DeviceId> two{0, 1};
  const auto fewer = std::make_shared<const DeviceKinds>(mixed.cluster, two);
  CyclicTaskGraph graph;
  const QueueId queue = graph.add_queue("compute", graph.add_group("all", all), QueueRole::compute, Discipline::fifo);
  graph.compute(queue, DeviceTime::each(fewer, [](DeviceId device) { return Seconds(1 + device); }), {"work", ""});
  CHECK_THROWS_WITH(graph.validate(mixed.cluster), Catch::Contains("how long computation 'work' takes on device 'd2'"));
}

TEST_CASE("data parallelism on unequal devices takes the pace of the slow one") {
  // Nothing overlaps: k x (forward + backward) of the slow one, 30 MB in 2 + 30 ms, k x its update.
  const double expected = (k * 100 + 32 + k * 3) * kMs;
  for (const std::vector<DeviceId>& workers : {std::vector<DeviceId>{0, 1}, {1, 0}}) {
    const ExecutionResult result = Mixed({1}).run("data_parallel", "{granularity: model, overlap: false}", workers);
    CHECK_FALSE(result.folded);
    CHECK(result.iteration == Approx(expected).epsilon(1e-9));
    CHECK(result.bound->seconds == Approx(expected).epsilon(1e-9));
    CHECK(result.metrics.compute == Approx((1 + k) / 2 * 103 * kMs).epsilon(1e-9));
  }
  const ExecutionResult equal = Mixed({0, 1, 2}).run("data_parallel", "{granularity: model, overlap: false}", {0, 1});
  CHECK(equal.folded);
  CHECK(equal.iteration == Approx(expected).epsilon(1e-9));
}

TEST_CASE("parameter servers on unequal devices") {
  // Links that take microseconds, so that computing is what remains. The server is device 2.
  const double kFast = 1e13, kSoon = 1e-9, margin = 30e-6;
  // Adding up one gradient of 30 MB: three accesses of 500 GB/s.
  const double accumulation = 3 * 30 * kMB / 500e9;
  const std::string sync = "{mode: sync, granularity: model, overlap: false}";
  CHECK(Mixed({1}, kFast, kSoon).run("parameter_server", sync, {0, 1}).iteration ==
        Approx(k * 100 * kMs + accumulation + 3 * kMs).margin(margin));
  CHECK(Mixed({1}, kFast, kSoon).run("parameter_server", sync, {1, 0}).iteration ==
        Approx(k * 100 * kMs + accumulation + 3 * kMs).margin(margin));
  // A slow server adds up two gradients and updates, all k times slower.
  CHECK(Mixed({2}, kFast, kSoon).run("parameter_server", sync, {0, 1}).iteration ==
        Approx(100 * kMs + k * (2 * accumulation + 3 * kMs)).margin(margin));
  // Asynchronous: the slow worker's own round, with the server's update; k rounds of the other fit into it, so that it
  // finds the server busy at most once in a while. All steps are over when the slow one's are.
  const ExecutionResult async =
      Mixed({1}, kFast, kSoon).run("parameter_server", "{mode: async, granularity: model, overlap: false}", {0, 1});
  CHECK(async.total >= 20 * (k * 100 + 3) * kMs);
  CHECK(async.total <= 20 * (k * 100 + 2 * 3) * kMs + 20 * margin);
  REQUIRE(async.workers.size() == 2);
  CHECK(async.workers[0].steps == 20);
}

TEST_CASE("pipeline stages take the times of their own devices, and the split knows them") {
  // A batch of two samples: stage 0 has A (10, 40, update 1), stage 1 B (20, 15 + 30, update 2), which updates while A
  // goes back.
  const double kFast = 1e13, kSoon = 1e-9, margin = 30e-6;
  const std::string options = "{schedule: naive, first_layers: [B]}";
  CHECK(Mixed({1}, kFast, kSoon).run("pipeline", options, {1, 0}).iteration ==
        Approx((k * 51 + 65) * kMs).margin(margin));
  CHECK(Mixed({1}, kFast, kSoon).run("pipeline", options, {0, 1}).iteration ==
        Approx((51 + k * 65) * kMs).margin(margin));

  // Of four equal layers, a device that is three times slower gets one.
  const TraceSource four = [](std::int64_t batch) {
    return chain({layer("a", 1, 2, 0, {1e3}), layer("b", 1, 2, 0, {1e3}), layer("c", 1, 2, 0, {1e3}),
                  layer("d", 1, 2, 0, {1e3})},
                 batch);
  };
  const Mixed mixed({1});
  CHECK(mixed.compile("pipeline", "{schedule: naive}", {0, 1}, four).memory[1].holder == "stage 1 (d to d)");
  CHECK(mixed.compile("pipeline", "{schedule: naive}", {1, 0}, four).memory[1].holder == "stage 1 (b to d)");
  CHECK(mixed.compile("pipeline", "{schedule: naive}", {0, 2}, four).memory[1].holder == "stage 1 (c to d)");
}

TEST_CASE("measured times hold on the device that was measured, and are scaled to others with a caveat") {
  /// As measured, whatever the device.
  struct Measured : CostModel {
    PassTimes times(const Layer&, std::int64_t, const Device&) const override {
      return {Seconds(1), Seconds(2), Seconds(3), Seconds(4)};
    }
  };
  const Mixed mixed({1});
  const Device &fast = mixed.cluster.devices[0], &slow = mixed.cluster.devices[1];
  Layer layer;
  layer.name = "fc";
  layer.kind = LayerKind::fully_connected;
  layer.forward_flop = layer.backward_data_flop = layer.backward_weights_flop = 1e15;  // launching takes nothing
  layer.parameters = {{"weights", 1'000'000'000}};
  const NominallyScaled model(std::make_unique<Measured>(), "timings 'x'", fast);
  CHECK(model.times(layer, 1, fast).forward.value == 1);
  CHECK(model.device_caveats(fast).empty());
  const PassTimes scaled = model.times(layer, 1, slow);
  CHECK(scaled.forward.value == Approx(k).epsilon(1e-6));
  CHECK(scaled.backward_weights.value == Approx(3 * k).epsilon(1e-6));
  CHECK(scaled.update.value == Approx(4 * k));
  REQUIRE(model.device_caveats(slow).size() == 1);
  CHECK_THAT(model.device_caveats(slow).front(),
             Catch::Contains("times on slow are scaled from those on synthetic (timings 'x')"));

  Model net;
  net.name = "net";
  net.layers = {layer};
  const StepTimeAnchored anchored(std::make_unique<Roofline>(RooflineOptions{}), net, fast, {{1, 10}});
  CHECK(anchored.device_caveats(fast).empty());
  CHECK(anchored.device_caveats(slow).size() == 1);
  CHECK(make_trace(net, anchored, 1, fast).compute_time().longest().value == Approx(10));
  CHECK(make_trace(net, anchored, 1, slow).compute_time().longest().value == Approx(10 * k).epsilon(1e-3));
}

}  // namespace epocast::unequal_devices_test
