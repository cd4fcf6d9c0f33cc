// Bodies whose devices have programs of their own, in compositions: the same as the strategies of these names, with
// replicas and any order of axes.
#include <catch2/catch.hpp>

#include <numeric>
#include <string>
#include <vector>

#include "strategies/register.hpp"
#include "tests/support/error_message.hpp"
#include "tests/support/layerwise.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::mpmd_body_test {

using namespace epocast::testing;

namespace {

constexpr double kMs = 1e-3;

/// Convolutions A and B: forward 2 and 4 ms, backward 4 and 8 ms, no updates. A's output is 1 MB.
WorkloadTrace two_layers(std::int64_t batch) {
  WorkloadTrace trace = chain({layer("A", 2 * kMs, 4 * kMs, 0, {1e6}), layer("B", 4 * kMs, 8 * kMs, 0, {2e6})}, batch);
  trace.layers[1].output = Bytes(1e6);
  return trace;
}

TrainingStep compile(const Cluster& cluster, int workers, const std::string& options,
                     const std::string& strategy = "composition") {
  const ConfigNode node = ConfigNode::load_text(options, "options");
  std::vector<DeviceId> devices(static_cast<std::size_t>(workers));
  std::iota(devices.begin(), devices.end(), 0);
  const auto made = builtin_strategies().make(strategy, node, node);
  node.check_all_read();
  return made->compile({cluster,
                        devices,
                        8,
                        [](std::int64_t batch) { return two_layers(batch); },
                        {.algorithm = CollectiveAlgorithm::ring}});
}

std::string refusal(const std::string& options) {
  const Star star(4, 1e9, 0);
  return message([&] { compile(star.cluster(), 4, options); });
}

void check_same(const Cluster& cluster, const TrainingStep& a, const TrainingStep& b) {
  const ExecutionResult x = simulate(cluster, a.graph), y = simulate(cluster, b.graph);
  CHECK(x.iteration == y.iteration);
  CHECK(x.metrics.bytes == y.metrics.bytes);
  CHECK(a.composition == b.composition);
  REQUIRE(a.memory.size() == b.memory.size());
  for (std::size_t m = 0; m < a.memory.size(); ++m)
    CHECK(a.memory[m].use.total().value == b.memory[m].use.total().value);
}

}  // namespace

TEST_CASE("in a composition, each is what the strategy of its name is") {
  const Star star(4, 1e9, 1e-5);
  const auto same = [&](const std::string& composed, const std::string& strategy, const std::string& options) {
    INFO(composed);
    check_same(star.cluster(), compile(star.cluster(), 4, composed), compile(star.cluster(), 4, options, strategy));
  };
  same("{mesh: {tensor: 4}, body: {name: filters, exchange: direct}}", "filter_parallel", "{}");
  same(
      "{mesh: {tensor: 4}, schedule: {name: threaded, in_flight: 2, copy_rate: 1 GB/s}, "
      "body: {name: filters, parts: {A: [1, 1, 2, 0], B: [3, 0, 1, 1]}, volume: 1 MB}}",
      "filter_parallel", "{parts: {A: [1, 1, 2, 0], B: [3, 0, 1, 1]}, volume: 1 MB, in_flight: 2, copy_rate: 1 GB/s}");
  same("{mesh: {tensor: 4}, schedule: threaded, body: {name: filters, shares: [1, 2, 1, 1], volume: 1 MB}}",
       "filter_parallel", "{shares: [1, 2, 1, 1], volume: 1 MB}");
  same(
      "{mesh: {tensor: 4}, body: {name: layerwise, configuration: {A: {n: 2}}, rest: {n: 4}, exchange: "
      "device_servers}}",
      "layerwise", "{configuration: {A: {n: 2}}, rest: {n: 4}, exchange: device_servers}");
  same(
      "{mesh: {tensor: 4}, schedule: {name: gpipe, micro_batches: 2}, body: {name: layerwise, stages: [{workers: 2}, "
      "{from: B, workers: 2}]}, synchronisation: all_reduce}",
      "layerwise", "{schedule: {name: gpipe, micro_batches: 2}, stages: [{workers: 2}, {from: B, workers: 2}]}");
  same(
      "{mesh: {data: rest, tensor: 2}, body: {name: operators, nodes: passes, bandwidth: 1 GB/s, method: in_turn}, "
      "synchronisation: all_reduce}",
      "operators", "{devices: 2, nodes: passes, bandwidth: 1 GB/s, method: in_turn}");
}

TEST_CASE("replicas of a partition sum each part's gradients behind its backward pass") {
  // Halves of both layers. Forward A 1 ms, half a megabyte each way 0.5 ms, forward B 2, backward B 4: 7.5 ms. Then the
  // other's half of A's gradients, half a megabyte, and a ring of two for B's, a megabyte, share each link: both have
  // sent half a megabyte at 8.5. A's gradients take until 10.5, and their sum, half a megabyte, until 11.
  const Star star(4, 1e9, 0);
  const TrainingStep step =
      compile(star.cluster(), 4, "{mesh: {data: 2, tensor: 2}, body: {name: filters, exchange: direct}}");
  const ExecutionResult result =
      simulate(star.cluster(), step.graph, {.iterations = 4, .exact = true, .record_timeline = true});
  CHECK(result.iteration == Approx(11 * kMs).epsilon(1e-9));
  CHECK(interval(step.graph, result, "all-reduce B part 0").end == Approx(9 * kMs).epsilon(1e-9));
  CHECK(interval(step.graph, result, "backward A part 1").end == Approx(10.5 * kMs).epsilon(1e-9));
  // Four halves forward and back, and of each part 1.5 MB among two replicas.
  CHECK(result.metrics.bytes == Approx(2 * (2 * 1e6 + 2 * 1.5e6)).epsilon(1e-9));
  CHECK(step.composition == "mesh {data: 2, tensor: 2}, body filters, synchronisation all_reduce");
  // As much as without replicas, which have their own samples.
  const TrainingStep alone = compile(star.cluster(), 2, "{mesh: {tensor: 2}, body: {name: filters, exchange: direct}}");
  CHECK(step.memory.front().use.total().value == alone.memory.front().use.total().value);
}

TEST_CASE("the mesh's order says who shares a replica") {
  const Star star(4, 1e9, 0);
  const auto parts = [&](const std::string& mesh) {
    std::vector<std::vector<DeviceId>> devices;
    for (const DeviceMemory& part :
         compile(star.cluster(), 4, "{mesh: " + mesh + ", body: {name: filters, exchange: root}}").memory)
      devices.push_back(part.devices);
    return devices;
  };
  CHECK(parts("{data: rest, tensor: 2}") == std::vector<std::vector<DeviceId>>{{0, 2}, {1, 3}});
  CHECK(parts("{tensor: 2, data: rest}") == std::vector<std::vector<DeviceId>>{{0, 1}, {2, 3}});
}

TEST_CASE("bodies of many programs: what does not go together is refused, with what does") {
  using Catch::Contains;
  const std::string filters = "body: {name: filters, exchange: direct}",
                    operators = "body: {name: operators, nodes: passes, bandwidth: 1 GB/s}";
  CHECK_THAT(refusal("{mesh: {pipeline: 2, tensor: 2}, " + filters + "}"),
             Contains("mesh.pipeline: body filters") && Contains("replicas along data"));
  CHECK_THAT(refusal("{mesh: {context: 2, tensor: 2}, body: [context, {name: filters, exchange: direct}]}"),
             Contains("mesh.context: body filters"));
  CHECK_THAT(refusal("{mesh: {data: 4}, " + filters + "}"), Contains("no axis 'tensor'"));
  CHECK_THAT(refusal("{mesh: {tensor: 3}, " + filters + "}"), Contains("set workers to 3"));
  CHECK_THAT(refusal("{mesh: {data: 2, tensor: 2}, synchronisation: sharded, " + operators + "}"),
             Contains("synchronisation: with body operators") && Contains("use synchronisation: all_reduce"));
  CHECK_THAT(
      refusal("{mesh: {data: 2, tensor: 2}, synchronisation: {name: all_reduce, bucket: 1 MB}, " + filters + "}"),
      Contains("synchronisation.bucket") && Contains("leave this out"));
  CHECK_THAT(refusal("{mesh: {tensor: 4}, schedule: 1f1b, " + filters + "}"), Contains("name: threaded, in_flight: N"));
  CHECK_THAT(refusal("{mesh: {tensor: 4}, schedule: gpipe, " + operators + "}"), Contains("leave schedule out"));
  CHECK_THAT(refusal("{mesh: {data: 2, tensor: 2}, body: {name: operators, bandwidth: 1 GB/s, devices: 2}}"),
             Contains("body.devices: the mesh says"));
  CHECK_THAT(refusal("{mesh: {data: rest, tensor: 2}, body: layerwise}"),
             Contains("mesh.data: samples are a dimension"));
  CHECK_THAT(
      refusal("{mesh: {tensor: 4}, body: {name: layerwise, exchange: device_servers}, synchronisation: all_reduce}"),
      Contains("synchronisation: body layerwise says itself") && Contains("leave this out"));
  CHECK_THAT(refusal("{mesh: {tensor: 4}, body: layerwise, synchronisation: {name: parameter_server, servers: 2}}"),
             Contains("exchange: sharded_servers"));
  CHECK_THAT(refusal("{mesh: {tensor: 4}, body: layerwise, synchronisation: {name: all_reduce, bucket: 1 MB}}"),
             Contains("body layerwise says itself"));
}

}  // namespace epocast::mpmd_body_test
