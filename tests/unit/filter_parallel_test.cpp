// Networks spread over devices by filters: what is sent, and when things happen.
#include <catch2/catch.hpp>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "strategies/filter_parallel/parts.hpp"
#include "strategies/register.hpp"
#include "tests/support/error_message.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/synthetic.hpp"

namespace epocast::filter_parallel_test {

using testing::interval;

namespace {

constexpr double kMs = 1e-3;

TrainingStep compile(const Cluster& cluster, const std::string& options, int workers, std::int64_t batch,
                     const TraceSource& trace) {
  const ConfigNode node = ConfigNode::load_text(options, "options");
  std::vector<DeviceId> devices(static_cast<std::size_t>(workers));
  std::iota(devices.begin(), devices.end(), 0);
  const auto strategy = builtin_strategies().make("filter_parallel", node, node);
  node.check_all_read();
  return strategy->compile({cluster, devices, batch, trace, {}});
}

/// Convolutions A and B and a pooling layer between them. forward and backward: A 2 and 4 ms, B 4 and 8 ms. A's output
/// is 4 MB, pooled 1 MB.
WorkloadTrace pooled(std::int64_t batch) {
  using testing::layer;
  WorkloadTrace trace = testing::chain(
      {layer("A", 2 * kMs, 4 * kMs, 0, {1e6}), layer("pool", 0, 0, 0, {}), layer("B", 4 * kMs, 8 * kMs, 0, {2e6})},
      batch);
  trace.layers[1].output = Bytes(4e6);
  trace.layers[2].kind = LayerKind::pooling;
  return trace;
}

/// VGG-16 as a chain of convolutions, pooling layers and fully connected layers, with outputs in units of 2^20 values
/// of a batch of 32 as bytes.
WorkloadTrace vgg16(std::int64_t batch) {
  std::vector<LayerTrace> layers;
  const auto add = [&](const std::string& name, LayerKind kind, double values) {
    layers.push_back(testing::layer(name, kMs, kMs, 0, {}));
    layers.back().kind = kind;
    layers.back().output = Bytes(values * 32 / (1 << 20));
    if (multiplies_weights(kind)) layers.back().gradients = {{name, Bytes(1)}};
  };
  int size = 224, number = 1;
  for (const std::vector<int>& block :
       {std::vector{64, 64}, {128, 128}, {256, 256, 256}, {512, 512, 512}, {512, 512, 512}}) {
    for (const int channels : block)
      add("L" + std::to_string(number++), LayerKind::convolution, size * size * channels);
    size /= 2;
    add("pool" + std::to_string(number - 1), LayerKind::pooling, size * size * block.back());
  }
  for (const int width : {4096, 4096, 1000}) add("F" + std::to_string(width), LayerKind::fully_connected, width);
  layers[layers.size() - 2].name = "F4096b";
  return testing::chain(std::move(layers), batch);
}

double volume_of_vgg16(int devices, FilterExchange exchange, const std::string& parts = "") {
  const WorkloadTrace trace = vgg16(32);
  const ConfigNode node = ConfigNode::load_text(parts.empty() ? "{}" : parts, "parts");
  const FilterParts spread_over(trace, devices, exchange, parts.empty() ? nullptr : &node);
  return spread(trace, spread_over, exchange).volume().value;
}

}  // namespace

TEST_CASE("direct: every device gets the other's pooled half", "[filter_parallel]") {
  // Two halves of everything at 1 GB/s: forward A 1 ms, half of the pooled megabyte each way 0.5 ms, forward B 2 ms,
  // backward B 4 ms, gradients 0.5 ms, backward A 2 ms: 10 ms.
  const testing::Star star(2, 1e9, 0);
  const TrainingStep step = compile(star.cluster(), "{}", 2, 8, pooled);
  const ExecutionResult result =
      testing::simulate(star.cluster(), step.graph, {.iterations = 5, .exact = true, .record_timeline = true});
  CHECK(result.iteration == Approx(10 * kMs).epsilon(1e-9));
  CHECK(result.metrics.bytes == Approx(2 * 1e6));
  CHECK(result.metrics.compute == Approx(9 * kMs).epsilon(1e-9));
  CHECK(interval(step.graph, result, "forward B part 0").start == Approx(1.5 * kMs).epsilon(1e-9));
  CHECK(interval(step.graph, result, "backward A..pool part 1").start == Approx(8 * kMs).epsilon(1e-9));
  CHECK(result.metrics.mean_staleness == 0.0);
  // Half of the parameters; 1 MB of input data, half of the three kept activations, and what comes in, 0.5 MB.
  CHECK(step.memory.front().use.parameters.value == 1.5e6);
  CHECK(step.memory.front().use.activations.value == 1e6 + 1.5e6 + 0.5e6);
}

TEST_CASE("direct: where nothing is trained, no gradients come back", "[filter_parallel]") {
  // As above up to the end of forward B: 1 + 0.5 + 2 ms.
  const testing::Star star(2, 1e9, 0);
  const auto untrained = [](std::int64_t batch) {
    WorkloadTrace trace = pooled(batch);
    for (LayerTrace& layer : trace.layers) {
      layer.gradients.clear();
      layer.parameters = Bytes(0);
      layer.needs_gradient = false;
      layer.times = {layer.times.forward, Seconds(0), Seconds(0), Seconds(0)};
    }
    return trace;
  };
  const TrainingStep step = compile(star.cluster(), "{}", 2, 8, untrained);
  const ExecutionResult result = testing::simulate(star.cluster(), step.graph, {.iterations = 5, .exact = true});
  CHECK(result.iteration == Approx(3.5 * kMs).epsilon(1e-9));
  CHECK(result.metrics.bytes == Approx(1e6));
}

TEST_CASE("of what is computed again, the largest segment's part is there at one time", "[filter_parallel]") {
  const auto memory = [](const std::vector<double>& recomputed) {
    const testing::Star star(2, 1e9, 0);
    const TrainingStep step = compile(star.cluster(), "{}", 2, 8, [&](std::int64_t batch) {
      WorkloadTrace trace =
          testing::chain({testing::layer("A", kMs, kMs, 0, {1e6}), testing::layer("B", kMs, kMs, 0, {1e6}),
                          testing::layer("C", kMs, kMs, 0, {1e6}), testing::layer("D", kMs, kMs, 0, {1e6})},
                         batch);
      REQUIRE(trace.layers.size() == 5);  // the input first
      for (std::size_t l = 1; l < 5; ++l) {
        trace.layers[l].segment = l < 3 ? 0 : 1;
        trace.layers[l].recomputed = Bytes(recomputed[l - 1]);
      }
      return trace;
    });
    return step.memory.front().use.activations.value;
  };
  // Segments A B and C D; half of each layer is on either device.
  const double none = memory({0, 0, 0, 0});
  CHECK(memory({1e6, 2e6, 3e6, 1e6}) - none == Approx(4e6 / 2));
  CHECK(memory({3e6, 2e6, 1e6, 3e6}) - none == Approx(5e6 / 2));
}

TEST_CASE("root: gathered before pooling, sent on after it", "[filter_parallel]") {
  // Device 1 has the last filters: forward A 1 ms; 2 MB to it, 2 ms; pooled megabyte back, 1 ms. The gradients: 1 ms
  // and 2 ms.
  const testing::Star star(2, 1e9, 0);
  const TrainingStep step = compile(star.cluster(), "{exchange: root}", 2, 8, pooled);
  const ExecutionResult result =
      testing::simulate(star.cluster(), step.graph, {.iterations = 5, .exact = true, .record_timeline = true});
  CHECK(interval(step.graph, result, "forward B part 1").start == Approx(3 * kMs).epsilon(1e-9));
  CHECK(interval(step.graph, result, "forward B part 0").start == Approx(4 * kMs).epsilon(1e-9));
  CHECK(result.metrics.bytes == Approx(2 * 3e6));
  CHECK(result.iteration == Approx((1 + 2 + 1 + 2 + 4 + 1 + 2 + 2) * kMs).epsilon(1e-9));
}

TEST_CASE("whole layers on one device each are a pipeline", "[filter_parallel]") {
  // A on device 0, B on device 1: 2 + 1 + 4 + 8 + 1 + 4 = 20 ms. With two batches under way, device 1 is never idle.
  const testing::Star star(2, 1e9, 0);
  const auto period = [&](int in_flight) {
    const TrainingStep step = compile(
        star.cluster(), "{parts: {A: [1, 0], B: [0, 1]}, in_flight: " + std::to_string(in_flight) + "}", 2, 8, pooled);
    return testing::simulate(star.cluster(), step.graph, {.iterations = 60, .exact = true});
  };
  CHECK(period(1).iteration == Approx(20 * kMs).epsilon(1e-9));
  const ExecutionResult two = period(2);
  CHECK(two.iteration == Approx(12 * kMs).epsilon(1e-9));
  CHECK(two.metrics.max_staleness == 1);
}

TEST_CASE("Eserol 2019, Table 5.4: even parts, gathered and broadcast", "[filter_parallel]") {
  // Printed 484, 1144, 2307, 4556, 9016, 17916, 35707 for N = 2 .. 128. They hold the input image for N - 1 parts,
  // 4.59375 each, which is on every device here; FC1 and FC2 are gathered but not broadcast there, 0.125 (N - 1) each.
  const std::vector<std::pair<int, double>> printed{{2, 484}, {4, 1144}, {8, 2307}, {16, 4556}, {32, 9016}};
  for (const auto& [parts, volume] : printed) {
    INFO(parts << " parts");
    const double image = 4.59375 * (parts - 1), not_sent_on = 2 * 0.125 * (parts - 1);
    // The last layer's output is gathered there as well: 1000 x 32 / 2^20 values.
    const double last = 1000.0 * 32 / (1 << 20) * (1 - 1.0 / parts);
    CHECK(std::floor(volume_of_vgg16(parts, FilterExchange::root) + image - not_sent_on + last) == volume);
  }
}

TEST_CASE("Eserol 2019, Table 5.2: whole layers", "[filter_parallel]") {
  // Cuts after layer 6 for N = 2 and after 3, 6 and 9 for N = 4: 24.5 and 85.75.
  const auto cut = [](int devices, const std::vector<int>& last) {
    std::string parts;
    const std::vector<std::string> names{"L1", "L2",  "L3",  "L4",  "L5",  "L6",    "L7",     "L8",
                                         "L9", "L10", "L11", "L12", "L13", "F4096", "F4096b", "F1000"};
    for (std::size_t l = 0; l < names.size(); ++l) {
      std::size_t part = 0;
      while (part < last.size() && static_cast<int>(l) >= last[part]) ++part;
      parts += (l == 0 ? "{" : ", ") + names[l] + ": [";
      for (int d = 0; d < devices; ++d)
        parts += std::string(d == 0 ? "" : ", ") + (static_cast<std::size_t>(d) == part ? "1" : "0");
      parts += "]";
    }
    return parts + "}";
  };
  for (const FilterExchange exchange : {FilterExchange::direct, FilterExchange::root}) {
    CHECK(volume_of_vgg16(2, exchange, cut(2, {6})) == Approx(24.5).epsilon(1e-12));
    CHECK(volume_of_vgg16(4, exchange, cut(4, {3, 6, 9})) == Approx(85.75).epsilon(1e-12));
  }
}

TEST_CASE("a given volume scales all messages", "[filter_parallel]") {
  const testing::Star star(2, 1e9, 0);
  const TrainingStep step = compile(star.cluster(), "{volume: 0.25 MB}", 2, 8, pooled);  // 2 MB for 8 samples
  const ExecutionResult result = testing::simulate(star.cluster(), step.graph, {.iterations = 3});
  CHECK(result.metrics.bytes == Approx(2 * 2e6));
}

TEST_CASE("works and volume alone: a chain of parts", "[filter_parallel]") {
  // Shares 1 : 2 of 6 + 12 ms, 0.25 MB a sample: 2 + 2 + 4 + 8 + 2 + 4 = 22 ms with one batch of 8 under way.
  const testing::Star star(2, 1e9, 0);
  const TrainingStep step = compile(star.cluster(), "{shares: [1, 2], volume: 0.25 MB}", 2, 8, pooled);
  const ExecutionResult result = testing::simulate(star.cluster(), step.graph, {.iterations = 4, .exact = true});
  CHECK(result.iteration == Approx(22 * kMs).epsilon(1e-9));
  CHECK(result.metrics.bytes == Approx(2 * 2e6));
  CHECK(step.memory.back().use.parameters.value == Approx(2e6));
}

TEST_CASE("parts that do not fit are errors that say why", "[filter_parallel]") {
  const Cluster cluster = testing::cluster_of(2);
  const auto message = [&](const std::string& options) {
    return testing::message([&] { compile(cluster, options, 2, 8, pooled); });
  };
  using Catch::Contains;
  CHECK_THAT(message("{parts: {A: [1, 1]}}"), Contains("nothing is said of layer 'B'"));
  CHECK_THAT(message("{parts: {A: [1, 1], C: [1, 1]}}"), Contains("no layer 'C'"));
  CHECK_THAT(message("{parts: {A: [1], B: [1, 1]}}"), Contains("1 shares for 2 workers"));
  CHECK_THAT(message("{parts: {A: [0, 0], B: [1, 1]}}"), Contains("no worker has a share"));
  CHECK_THAT(message("{parts: {A: [1, -1], B: [1, 1]}}"), Contains("parts.A[1]"));
  CHECK_THAT(message("{parts: {A: [1, 0], B: [1, 0]}, volume: 1 MB}"), Contains("nothing is sent"));
  CHECK_THAT(message("{shares: [1, 1]}"), Contains("give the volume"));
  CHECK_THAT(message("{shares: [1, 1, 1], volume: 1 MB}"), Contains("3 shares for 2 workers"));
  CHECK_THAT(message("{shares: [1, 1], volume: 1 MB, exchange: root}"), Contains("leave out one of the two"));
}

}  // namespace epocast::filter_parallel_test
