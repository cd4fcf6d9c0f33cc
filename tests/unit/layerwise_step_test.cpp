// Global configurations replayed: image parallelism is data parallelism, bytes are those of the boxes, timelines by
// hand.
#include <catch2/catch.hpp>

#include <random>

#include "experiments/run_study.hpp"
#include "strategies/layerwise/step.hpp"
#include "tests/support/conservation.hpp"
#include "tests/support/error_message.hpp"
#include "tests/support/layerwise.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::layerwise_step_test {

namespace {

double sent(const TrainingStep& step, std::size_t devices) {
  return testing::sum(testing::bytes_sent_per_iteration(step.graph, devices));
}

}  // namespace

TEST_CASE("images over all workers is data parallelism layer by layer", "[layerwise]") {
  const std::string network = GENERATE("vgg16", "alexnet_owt", "resnet50", "inception_v3");
  const std::string platform = GENERATE("p100_cluster, workers: 8", "skylake_10gbe, workers: 3");
  const std::string overlap = GENERATE("true", "false");
  const Study study = parse_study("{study: same, platform: " + platform + ", model: " + network +
                                      ", batch: {per_worker: 16}, compute: roofline, collective: {algorithm: ring}, "
                                      "sweep: {strategy: [{name: data_parallel, granularity: layer, overlap: " +
                                      overlap + "}, {name: layerwise, overlap: " + overlap + "}]}}",
                                  "same.yaml");
  const std::vector<ScenarioResult> results = run_study(study.scenarios, builtin_registries(), {}, 1, {});
  INFO(network << " on " << platform << ", overlap " << overlap);
  for (const ScenarioResult& result : results) REQUIRE(result.error.empty());
  const ScenarioResult &data = results[0], &layerwise = results[1];
  CHECK(layerwise.iteration_s == Approx(data.iteration_s).epsilon(1e-9));
  CHECK(layerwise.compute_s == Approx(data.compute_s).epsilon(1e-9));
  CHECK(layerwise.comm_bytes_per_iteration == Approx(data.comm_bytes_per_iteration).epsilon(1e-9));
  CHECK(layerwise.exposed_comm_s == Approx(data.exposed_comm_s).margin(1e-9 * data.iteration_s));
  CHECK(layerwise.peak_memory_bytes.value() == Approx(data.peak_memory_bytes.value()).epsilon(1e-9));
}

TEST_CASE("one weird trick: bytes by hand", "[layerwise]") {
  // P workers, batch B. Convolutions: all-reduces, 2 (P - 1) times their parameters. Each fully connected layer's
  // input, divided by images (the first) or channels, is lacking to (P - 1)/P on every worker: P - 1 times it, forth
  // and back.
  struct Case {
    const char* network;
    double convolutions;         // parameters
    std::vector<double> inputs;  // values per sample
  };
  const int workers = 8;
  const double batch = 64, p = workers;
  for (const Case& of : {Case{"alexnet_owt", 2469696, {9216, 4096, 4096}}, {"vgg16", 14714688, {25088, 4096, 4096}}}) {
    double inputs = 0;
    for (const double values : of.inputs) inputs += values;
    const double bytes = 4 * (2 * (p - 1) * of.convolutions + 2 * (p - 1) * batch * inputs);
    const testing::LayerwiseSetting setting(testing::shipped_model(of.network), testing::cluster_of(workers), workers,
                                            static_cast<std::int64_t>(batch));
    CHECK(sent(setting.compile("{configuration: one_weird_trick}"), workers) == Approx(bytes).epsilon(1e-9));
  }
}

TEST_CASE("VGG-16 on four devices, fully connected layers on two", "[layerwise]") {
  // DeePa, A.3: convolutions over all four, 2 x 3 x 58.86 MB. The first fully connected layer lacks three quarters of
  // 12.85 MB on both its devices, the others half of 2.10 MB each; forth and back.
  const testing::LayerwiseSetting setting(testing::shipped_model("vgg16"), testing::cluster_of(4), 4, 128);
  const double fully = 2 * 4 * 128 * (2 * 0.75 * 25088 + 2 * 0.5 * 4096 * 2);
  CHECK(sent(setting.compile("{configuration: {fc6: {c: 2}, fc7: {c: 2}, fc8: {c: 2}}}"), 4) ==
        Approx(6 * 4 * 14714688.0 + fully).epsilon(1e-9));
}

TEST_CASE("a replay sends what the boxes say, whatever the configuration", "[layerwise]") {
  std::mt19937 random(23);
  for (const char* name : {"alexnet_owt", "resnet18",
                           "{name: gpt2, layers: 2, width: 64, heads: 4, sequence: 16, "
                           "vocabulary: 96}"}) {
    const int workers = 12;
    const std::int64_t batch = 30;
    const testing::LayerwiseSetting setting(testing::shipped_model(name), testing::cluster_of(workers), workers, batch);
    const auto network = std::make_shared<const OperatorNetwork>(setting.model());
    for (int trial = 0; trial < 8; ++trial) {
      std::vector<Configuration> configurations;
      for (std::size_t op = 0; op < network->size(); ++op) {
        const Degrees degrees = testing::random_degrees(random, *network, op, batch, workers);
        configurations.push_back({degrees, testing::random_devices(random, degrees.product(), workers)});
      }
      const LayerwisePlan plan =
          make_plan(network, configurations, batch, 4, LayerwisePipeline::single(workers), PlaceRule::packed);
      TileTimes times(setting.context(), *network);
      using enum GradientExchange;
      for (const GradientExchange exchange : {all_reduce, device_servers, sharded_servers}) {
        INFO(name << ", trial " << trial << ", " << to_string(exchange));
        const TrainingStep step = layerwise_step(setting.context(), plan, times, {.exchange = exchange});
        CHECK_NOTHROW(step.graph.validate(setting.cluster()));
        CHECK(sent(step, workers) == Approx(traffic(plan, exchange).total().value).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("parts together do the work and hold the parameters of the whole", "[layerwise]") {
  // With a cost per FLOP, tiles that do not overlap take as long as the whole layer, whatever the configuration.
  std::mt19937 random(29);
  const int workers = 6;
  const std::int64_t batch = 12;
  const testing::LayerwiseSetting setting(testing::shipped_model("vgg16"), testing::cluster_of(workers), workers,
                                          batch);
  const OperatorNetwork network(setting.model());
  const WorkloadTrace whole = setting.context().trace(batch);
  TileTimes times(setting.context(), network);
  for (std::size_t op = 0; op < network.size(); ++op)
    for (int trial = 0; trial < 10; ++trial) {
      const Degrees degrees = testing::random_degrees(random, network, op, batch, workers);
      const Division division(network, op, degrees, batch, devices_of(degrees.product(), workers, PlaceRule::packed));
      INFO(network.at(op).name << " " << degrees.text());
      double parts = 0, all = 0;
      const std::size_t first = network.at(op).layers.front();
      for (std::size_t p = 0; p < division.places(); ++p)
        parts += times.trace(op, first, division.tile(p)).times.forward.longest().value;
      all = whole.layers[first].times.forward.longest().value;
      CHECK(parts == Approx(all).epsilon(1e-9));
      double held = 0;
      for (const ParameterShard& shard : division.shards()) held += shard.values;
      double parameters = 0;
      for (const std::size_t l : network.at(op).layers)
        parameters += static_cast<double>(setting.model().layers[l].parameter_count());
      CHECK(held == Approx(parameters).epsilon(1e-9));
    }
}

TEST_CASE("a layer on one device, the next on two: a timeline by hand", "[layerwise]") {
  // Two fully connected layers of 1000 x 1000, 100 samples, 1 ps per FLOP and parameter: a layer's forward pass takes
  // 0.2 ms. The first is on device 0 and has no gradient to hand back; the second is divided by channels. At 1 GB/s the
  // 400 kB that device 1 needs take 0.4 ms there and as long back.
  const testing::Star star(2, 1e9, 0);
  auto model = std::make_shared<Model>();
  const auto dense = [&](const char* name, int input, bool hands_back) {
    Layer layer;
    layer.name = name;
    layer.kind = LayerKind::fully_connected;
    layer.inputs = {input};
    layer.input = layer.output = {1000, 1, 1};
    layer.input_values = 1000;
    layer.forward_flop = layer.backward_weights_flop = 2e6;
    layer.backward_data_flop = hands_back ? 2e6 : 0;
    layer.parameters = {{std::string(name) + ".weight", 1000000}};
    layer.needs_gradient = true;
    return layer;
  };
  Layer data;
  data.name = "data";
  data.output = {1000, 1, 1};
  model->layers = {data, dense("a", 0, false), dense("b", 1, true)};
  const testing::LayerwiseSetting setting(model, star.cluster(), 2, 100);
  const TrainingStep step = setting.compile("{configuration: {a: {n: 1}, b: {c: 2}}}");
  const ExecutionResult result =
      testing::simulate(star.cluster(), step.graph, {.iterations = 4, .exact = true, .record_timeline = true});
  // Forward a 0.2, message 0.4, forward b 0.1, backward b 0.2, message 0.4, backward a 0.2 ms; updates of 1 us, of
  // device 0 0.5 us for its half of b and 1 us for a.
  CHECK(testing::interval(step.graph, result, "forward b part 1").start == Approx(0.6e-3).epsilon(1e-9));
  CHECK(testing::interval(step.graph, result, "backward a").start == Approx(1.3e-3).epsilon(1e-9));
  CHECK(result.iteration == Approx(1.5015e-3).epsilon(1e-9));
  CHECK(result.metrics.bytes == Approx(2 * 400e3));
}

TEST_CASE("servers: pushes, an update, pulls", "[layerwise]") {
  // One layer of 10^6 parameters and next to no computing, on four workers, 4 MB at 1 GB/s. Host server: 4 pushes and 4
  // pulls of 4 ms, one after the other. On a device: three pulls of 4 ms leave it one after the other, and the push
  // that follows each comes in while the next pull goes out, so that the last push ends after 16 ms. On all devices:
  // each sends three parts of 1 MB to the others while it takes in theirs, 3 ms, and as much after the update.
  const testing::Star star(4, 1e9, 0);
  auto model = std::make_shared<Model>();
  Layer data, layer;
  data.name = "data";
  data.output = {1000, 1, 1};
  layer.name = "a";
  layer.kind = LayerKind::fully_connected;
  layer.inputs = {0};
  layer.input = layer.output = {1000, 1, 1};
  layer.input_values = 1000;
  layer.forward_flop = layer.backward_weights_flop = 1;
  layer.parameters = {{"a.weight", 1000000}};
  layer.needs_gradient = true;
  model->layers = {data, layer};
  const testing::LayerwiseSetting setting(model, star.cluster(), 4, 4);
  const auto period = [&](const std::string& options) {
    return testing::simulate(star.cluster(), setting.compile(options).graph, {.iterations = 10}).iteration;
  };
  CHECK(period("{exchange: host_server, server_rate: 1 GB/s}") == Approx(32e-3).epsilon(1e-3));
  CHECK(period("{exchange: device_servers}") == Approx(16e-3).epsilon(1e-3));
  CHECK(period("{exchange: sharded_servers}") == Approx(6e-3).epsilon(1e-3));
}

}  // namespace epocast::layerwise_step_test
