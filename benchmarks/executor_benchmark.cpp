// Times epocast's own machinery: how many task executions per second, how long the bound takes, how long a trace takes.
// SimGrid allows one engine per process, so all benchmarks share one platform and its clock goes on.

#include <benchmark/benchmark.h>

#include <numeric>

#include "costmodels/roofline.hpp"
#include "platforms/platform_loader.hpp"
#include "sim/compiled_graph.hpp"
#include "sim/cycle_bound.hpp"
#include "sim/data_directory.hpp"
#include "sim/executor.hpp"
#include "strategies/register.hpp"
#include "workloads/model_reader.hpp"

namespace epocast {
namespace {

const std::filesystem::path& data() {
  static const std::filesystem::path folder = data_directory();
  return folder;
}

const Cluster& cluster() {
  static const Cluster loaded = load_platform(data() / "platforms" / "ideal_star_1024.xml");
  return loaded;
}

SimEngine& engine() {
  static SimEngine only(cluster());
  return only;
}

const Model& resnet50() {
  static const Model model = load_model(data() / "workloads" / "models" / "resnet50.yaml");
  return model;
}

TrainingStep compile_step(const std::string& options, int workers) {
  const StrategyRegistry registry = builtin_strategies();
  const ConfigNode node = ConfigNode::load_text(options, "benchmark");
  const auto strategy = registry.make(node.at("name").as_string(), node, node);
  std::vector<DeviceId> devices(static_cast<std::size_t>(workers));
  std::iota(devices.begin(), devices.end(), 0);
  StrategyContext context{.cluster = cluster(), .workers = devices, .trace = {}, .collective = {}};
  context.global_batch = 32 * workers;
  const Roofline cost{RooflineOptions{}};
  context.trace = [&cost](std::int64_t batch) {
    return make_trace(resnet50(), cost, batch, cluster().devices.front());
  };
  return strategy->compile(context);
}

/// Simulates 5 iterations with every worker and every flow; counts executions of task instances.
void execute_unfolded(benchmark::State& state, const std::string& options, int max_iterations) {
  const auto workers = static_cast<int>(state.range(0));
  const TrainingStep step = compile_step(options, workers);
  std::int64_t executions = 0;
  for (auto _ : state) {
    const ExecutionResult result =
        execute(step.graph, cluster(), engine(), {.iterations = max_iterations, .exact = true, .fold = false});
    benchmark::DoNotOptimize(result.total);
    executions += result.iterations_simulated * static_cast<std::int64_t>(compile(step.graph, false).instances);
  }
  state.counters["executions/s"] = benchmark::Counter(static_cast<double>(executions), benchmark::Counter::kIsRate);
}

void data_parallel_per_tensor(benchmark::State& state) {
  execute_unfolded(state, "{name: data_parallel, granularity: tensor}", 5);
}
BENCHMARK(data_parallel_per_tensor)->Arg(4)->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);

void parameter_server_async(benchmark::State& state) {
  execute_unfolded(state, "{name: parameter_server, mode: async, granularity: model}", 5);
}
BENCHMARK(parameter_server_async)->Arg(4)->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);

/// All layers at once to and from every server: many flows between the same two hosts, which no link alone limits.
void several_servers(benchmark::State& state) {
  execute_unfolded(state, "{name: parameter_server, servers: 8, location: colocated, granularity: layer}", 2);
}
BENCHMARK(several_servers)->Arg(16)->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);

void find_cycle(benchmark::State& state, const std::string& options) {
  const TrainingStep step = compile_step(options, static_cast<int>(state.range(0)));
  const CompiledGraph graph = compile(step.graph, false);
  for (auto _ : state)
    benchmark::DoNotOptimize(maximum_cycle_ratio(graph, [](Instance i) { return 1e-3 + 1e-6 * i.task; }, {}).seconds);
  state.counters["instances"] = static_cast<double>(graph.instances);
}

void cycle_ratio(benchmark::State& state) {
  find_cycle(state, "{name: parameter_server, mode: async, granularity: layer}");
}
BENCHMARK(cycle_ratio)->Arg(1)->Arg(16)->Arg(64)->Unit(benchmark::kMillisecond);

void cycle_ratio_of_pipeline(benchmark::State& state) {
  find_cycle(state, "{name: pipeline, schedule: 1f1b, micro_batches: 128}");
}
BENCHMARK(cycle_ratio_of_pipeline)->Arg(4)->Arg(16)->Unit(benchmark::kMillisecond);

void load_resnet50(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(load_model(data() / "workloads" / "models" / "resnet50.yaml").layers.size());
}
BENCHMARK(load_resnet50)->Unit(benchmark::kMicrosecond);

void load_all_models(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(list_models(data() / "workloads" / "models").size());
}
BENCHMARK(load_all_models)->Unit(benchmark::kMillisecond);

void load_all_platforms(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(list_platforms(data() / "platforms").size());
}
BENCHMARK(load_all_platforms)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace epocast

BENCHMARK_MAIN();
