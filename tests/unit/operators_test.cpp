// Placed operations as a strategy: what nodes take and hold is what the trace says, and what replicas exchange is every
// gradient once.
#include <catch2/catch.hpp>

#include "strategies/placement/methods.hpp"
#include "strategies/placement/replay.hpp"
#include "strategies/placement/step_nodes.hpp"
#include "strategies/register.hpp"
#include "tests/support/layerwise.hpp"
#include "tests/support/simulate.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::operators_test {

using namespace epocast::testing;

namespace {

double total(const std::vector<DeviceTime>& times) {
  double sum = 0;
  for (const DeviceTime& time : times) sum += time.longest().value;
  return sum;
}

/// Two layers with parameters, an activation between them.
WorkloadTrace small(std::int64_t batch = 1) {
  return chain({layer("a", 1e-3, 4e-3, 0.25e-3, {4e6}), layer("b", 0.5e-3, 0.5e-3, 0, {}),
                layer("c", 2e-3, 6e-3, 0.5e-3, {8e6})},
               batch);
}

TrainingStep compile(const Cluster& cluster, int workers, const std::string& options) {
  const ConfigNode node = ConfigNode::load_text(options, "options");
  std::vector<DeviceId> devices(static_cast<std::size_t>(workers));
  std::iota(devices.begin(), devices.end(), 0);
  const auto made = builtin_strategies().make("operators", node, node);
  node.check_all_read();
  return made->compile({cluster,
                        devices,
                        workers,
                        [](std::int64_t batch) { return small(batch); },
                        {.algorithm = CollectiveAlgorithm::ring}});
}

}  // namespace

TEST_CASE("operations together take what the trace says of their layers") {
  for (const char* name : {"lenet", "resnet18", "gpt2"}) {
    const auto model = shipped_model(name);
    const LayerwiseSetting setting(model, cluster_of(1), 1, 2);
    const StrategyContext& context = setting.context();
    const WorkloadTrace trace = context.trace(2);
    const StepNodes nodes = operation_nodes(context.operations(2), trace, context.device(0));
    INFO(name);
    CHECK(total(nodes.times) == Approx(trace.compute_time().longest().value).epsilon(1e-12));
    double resident = 0;
    for (std::size_t n = 0; n < nodes.graph.size(); ++n)
      if (nodes.graph.lifetime[n] == Lifetime::residual) resident += nodes.graph.memory[n];
    CHECK(resident >= trace.parameter_bytes().value);
  }
}

TEST_CASE("passes: a step on one device takes the sum of its passes, and holds each parameter once") {
  const Star star(4, 1e9, 0);
  const TrainingStep step = compile(star.cluster(), 1, "{nodes: passes, bandwidth: 1 GB/s, method: single}");
  // 1 + 4 + 0.25, 0.5 + 0.5, 2 + 6 + 0.5 ms.
  CHECK(simulate(star.cluster(), step.graph).iteration == Approx(14.75e-3).epsilon(1e-9));
  REQUIRE(step.memory.size() == 1);
  CHECK(step.memory.front().use.parameters.value == Approx(12e6));
}

TEST_CASE("passes: a view has no memory, and is read where it shows") {
  const std::string before =
      "model: views\ndescription: test\nsource: test\ninput: {channels: 64}\nlayers:\n"
      "  - {fc: a, units: 512}\n  - {relu: ra}\n";
  const std::string behind = "  - {fc: b, units: 256}\n  - {relu: rb}\n  - {fc: c, units: 10}\n  - softmax\n";
  const auto step = [&](const std::string& between) {
    const auto model = std::make_shared<const Model>(parse_model(before + between + behind, "views"));
    return LayerwiseSetting(model, cluster_of(1), 1, 8)
        .compile("{nodes: passes, bandwidth: 1 GB/s, method: single}", "operators");
  };
  const TrainingStep plain = step(""), viewed = step("  - {flatten: x}\n  - {flatten: y}\n");
  CHECK(viewed.graph.tasks().size() == plain.graph.tasks().size() + 4);  // forward and backward of each
  CHECK(viewed.memory.front().use.total() == plain.memory.front().use.total());
}

TEST_CASE("passes: replicas of one device exchange every gradient once") {
  const Star star(4, 1e9, 0);
  const TrainingStep step =
      compile(star.cluster(), 4, "{nodes: passes, bandwidth: 1 GB/s, method: single, devices: 1}");
  const ExecutionResult result = simulate(star.cluster(), step.graph);
  // A ring of four sends 2 x 3 / 4 of 12 MB from each.
  CHECK(result.totals.sent.front() / static_cast<double>(result.iterations_simulated) == Approx(18e6).epsilon(1e-9));
  // Forward until 3.5 ms. The gradients of c's input (3 ms) and parameters (3 ms) until 9.5, whose sum takes 12 ms; b
  // and a until 14; the sum of a's, 6 ms, begins at 21.5; then a's update.
  CHECK(result.iteration == Approx(27.75e-3).epsilon(1e-9));
}

TEST_CASE("placed passes take in the simulator what the replay says") {
  const Star star(2, 1e9, 0);
  const StepNodes nodes = pass_nodes(small(), Optimizer::sgd);
  PlacementMachine machine;
  machine.devices = 2;
  machine.bytes_per_second = 1e9;
  for (const char* method : {"round_robin", "in_turn", "heft"}) {
    const auto found =
        std::ranges::find_if(placement_methods(), [&](const auto& m) { return std::string(m.name) == method; });
    const Placement placement = place_by(*found, nodes.graph, machine).back().placement;
    const Ticks makespan = replay(nodes.graph, machine, placement, {.links = Links::copy_engines}).makespan;
    const TrainingStep step =
        compile(star.cluster(), 2, fmt::format("{{nodes: passes, bandwidth: 1 GB/s, method: {}}}", method));
    INFO(method);
    CHECK(simulate(star.cluster(), step.graph).iteration == Approx(to_seconds(makespan)).epsilon(1e-6));
    Bytes parameters;
    for (const DeviceMemory& device : step.memory) parameters += device.use.parameters;
    CHECK(parameters.value == Approx(12e6));
  }
}

TEST_CASE("a placed network with shapes: replicas of two devices exchange all parameters") {
  const Star star(4, 10e9, 0);
  const LayerwiseSetting setting(shipped_model("lenet"), star.cluster(), 4, 8);
  const TrainingStep step = setting.compile("{bandwidth: 10 GB/s, devices: 2, method: in_turn}", "operators");
  Bytes summed;
  for (const Task& task : step.graph.tasks())
    if (const auto* collective = std::get_if<Collective>(&task.work)) summed += collective->bytes;
  CHECK(summed.value == Approx(setting.context().trace(1).parameter_bytes().value));
}

TEST_CASE("a placed network in mixed precision has parameters and state in fp32, and a copy in 2 bytes") {
  const LayerwiseSetting setting(shipped_model("lenet"), cluster_of(1), 1, 2);
  const StrategyContext& context = setting.context();
  WorkloadTrace trace = context.trace(2);
  const auto resident = [&](Precision precision) {
    trace.precision = precision;
    const StepNodes nodes = operation_nodes(context.operations(2), trace, context.device(0));
    double sum = 0;
    for (std::size_t n = 0; n < nodes.graph.size(); ++n)
      sum += nodes.beside[n] + (nodes.graph.lifetime[n] == Lifetime::residual ? nodes.graph.memory[n] : 0);
    return sum;
  };
  const double parameters = context.trace(2).parameter_bytes().value;
  CHECK(resident(Precision::fp16) - resident(Precision::fp32) == Approx(parameters / 2));
}

TEST_CASE("operators: what cannot be is refused") {
  const Star star(4, 1e9, 0);
  using Catch::Contains;
  CHECK_THROWS_WITH(compile(star.cluster(), 4, "{nodes: passes, bandwidth: 1 GB/s, devices: 3}"),
                    Contains("4 workers cannot be divided into replicas of 3 devices"));
  CHECK_THROWS_WITH(compile(star.cluster(), 4, "{bandwidth: 1 GB/s}"), Contains("set nodes: passes"));
  CHECK_THROWS_WITH(compile(star.cluster(), 4, "{nodes: passes}"), Contains("bandwidth"));
  CHECK_THROWS_WITH(compile(star.cluster(), 4, "{nodes: passes, bandwidth: 1 GB/s, method: hft}"), Contains("heft"));
  CHECK_THROWS_WITH(compile(star.cluster(), 4, "{nodes: passes, bandwidth: 1 GB/s, method: heft, search: 10}"),
                    Contains("only ParDNN searches"));
}

}  // namespace epocast::operators_test
