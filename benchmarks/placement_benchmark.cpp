// How placing operator graphs scales: ParDNN with and without a memory limit, the methods that it is compared with, and
// the replay, on synthetic training steps of 10,000 to 1,000,000 nodes and 16 devices.
#include <benchmark/benchmark.h>

#include "experiments/place/synthetic_graph.hpp"
#include "strategies/placement/list_placement.hpp"
#include "strategies/placement/pardnn.hpp"

using namespace epocast;

namespace {

constexpr int kDevices = 16;

PlacementMachine machine(double memory = 0) { return {kDevices, to_ticks(3.4e-6), 150e9, memory}; }

PlacementGraph graph_of(const benchmark::State& state) {
  return synthetic_graph(static_cast<std::size_t>(state.range(0)), 1);
}

void report(benchmark::State& state, const PlacementGraph& graph, const PlacementStage& result) {
  state.counters["nodes"] = static_cast<double>(graph.size());
  state.counters["speedup"] = static_cast<double>(graph.total_time()) / static_cast<double>(result.makespan);
  state.counters["fits"] = result.fits ? 1 : 0;
  state.SetComplexityN(static_cast<benchmark::IterationCount>(graph.size()));
}

void pardnn_without_limit(benchmark::State& state) {
  const PlacementGraph graph = graph_of(state);
  PlacementStage result;
  for (auto _ : state) result = pardnn(graph, machine(), {.replay = {.links = Links::copy_engines}}).back();
  report(state, graph, result);
}

/// Each device gets four fifths of what the fullest one would take.
void pardnn_with_limit(benchmark::State& state) {
  const PlacementGraph graph = graph_of(state);
  const ParDnnOptions options{.replay = {.links = Links::copy_engines}};
  const double limit = 0.8 * pardnn(graph, machine(), options).back().peak_bytes;
  PlacementStage result;
  for (auto _ : state) result = pardnn(graph, machine(limit), options).back();
  report(state, graph, result);
}

void linear(benchmark::State& state) {
  const PlacementGraph graph = graph_of(state);
  const std::vector<Ticks> transfer = transfer_times(graph, machine());
  for (auto _ : state) benchmark::DoNotOptimize(linear_clustering(graph, transfer));
  state.SetComplexityN(static_cast<benchmark::IterationCount>(graph.size()));
}

void heft_placement(benchmark::State& state) {
  const PlacementGraph graph = graph_of(state);
  const std::vector<Ticks> transfer = transfer_times(graph, machine());
  for (auto _ : state) benchmark::DoNotOptimize(heft(graph, transfer, kDevices));
  state.SetComplexityN(static_cast<benchmark::IterationCount>(graph.size()));
}

void replay_of_round_robin(benchmark::State& state) {
  const PlacementGraph graph = graph_of(state);
  const Placement placement = round_robin(graph, transfer_times(graph, machine()), kDevices);
  for (auto _ : state)
    benchmark::DoNotOptimize(replay(graph, machine(), placement, {.links = Links::copy_engines}).makespan);
  state.SetComplexityN(static_cast<benchmark::IterationCount>(graph.size()));
}

}  // namespace

BENCHMARK(pardnn_without_limit)->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond)->Complexity();
BENCHMARK(pardnn_with_limit)->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond)->Complexity();
BENCHMARK(linear)->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond)->Complexity();
BENCHMARK(heft_placement)->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond)->Complexity();
BENCHMARK(replay_of_round_robin)
    ->Arg(10'000)
    ->Arg(100'000)
    ->Arg(1'000'000)
    ->Unit(benchmark::kMillisecond)
    ->Complexity();
BENCHMARK_MAIN();
