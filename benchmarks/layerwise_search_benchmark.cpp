// How long degrees of parallelism for every operator take to find: the tables of equation 1, from fitted times of
// kernels, and node and edge elimination on them.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "experiments/scenario.hpp"
#include "strategies/layerwise.hpp"
#include "strategies/layerwise/search.hpp"

using namespace epocast;

namespace {

struct Problem {
  const char* model;
  const char* platform;
  int workers;
  bool with_sums;   ///< degrees of the reduction dimension, too
  double node = 0;  ///< B/s of what a node's devices share; 0: all workers are on one
};

constexpr Problem kAlexNet16{"alexnet_owt", "k80_server", 16, false};
constexpr Problem kVgg16{"vgg16", "k80_server", 16, false};
constexpr Problem kInception16{"inception_v3", "k80_server", 16, false};
constexpr Problem kInception16Sums{"inception_v3", "k80_server", 16, true};
constexpr Problem kVgg64{"vgg16", "p2_16xlarge", 64, false};
constexpr Problem kVgg64Sums{"vgg16", "p2_16xlarge", 64, true};
constexpr Problem kVgg64Nodes{"vgg16", "p2_16xlarge", 64, false, 2.5e9};
constexpr Problem kVgg64NodesSums{"vgg16", "p2_16xlarge", 64, true, 2.5e9};

/// A study of 32 images per device, as far as a search needs it.
class SearchStudy {
 public:
  explicit SearchStudy(const Problem& of)
      : setup_(read_scenario(parse_study(fmt::format("{{study: search, platform: {}, workers: {}, model: {}, "
                                                     "batch: {{per_worker: 32}}, compute: {{cost_model: fitted, "
                                                     "calibration: k80}}, strategy: {{name: layerwise}}}}",
                                                     of.platform, of.workers, of.model),
                                         "search.yaml")
                                 .scenarios.front(),
                             registries_)),
        context_(setup_.context(setup_.phases.front())),
        network_(Layerwise::network_of(context_, context_.trace(context_.worker_batch()))) {
    settings_.links.device = BytesPerSecond(4.494e9);
    if (of.with_sums) settings_.dimensions.push_back(Dimension::k);
    if (of.node == 0) return;
    settings_.links.node = BytesPerSecond(of.node);
    settings_.links.node_of = node_numbers(setup_.cluster, setup_.phases.front().workers);
  }

  CostTables tables() const {
    TileTimes times(context_, *network_);
    return cost_tables(*network_, times, context_.global_batch, context_.workers.size(), 4, 0, settings_);
  }

 private:
  Registries registries_ = builtin_registries();
  ScenarioSetup setup_;
  StrategyContext context_;
  std::shared_ptr<const OperatorNetwork> network_;
  CostSettings settings_;
};

void search_alone(benchmark::State& state, const Problem& of) {
  const CostTables costs = SearchStudy(of).tables();
  SearchResult found;
  for (auto _ : state) found = search(costs);
  std::size_t most = 0;
  for (const OperatorCosts& each : costs.operators) most = std::max(most, each.configurations.size());
  state.counters["configurations"] = static_cast<double>(most);
  state.counters["operators"] = static_cast<double>(costs.operators.size());
  state.counters["left"] = static_cast<double>(found.left_by_paper);
}

void search_with_tables(benchmark::State& state, const Problem& of) {
  const SearchStudy study(of);
  for (auto _ : state) benchmark::DoNotOptimize(search(study.tables()));
}

}  // namespace

#define EPOCAST_SEARCHES(PROBLEM)                                                            \
  BENCHMARK_CAPTURE(search_with_tables, PROBLEM, k##PROBLEM)->Unit(benchmark::kMillisecond); \
  BENCHMARK_CAPTURE(search_alone, PROBLEM, k##PROBLEM)->Unit(benchmark::kMillisecond)
EPOCAST_SEARCHES(AlexNet16);
EPOCAST_SEARCHES(Vgg16);
EPOCAST_SEARCHES(Inception16);
EPOCAST_SEARCHES(Inception16Sums);
EPOCAST_SEARCHES(Vgg64);
EPOCAST_SEARCHES(Vgg64Sums);
EPOCAST_SEARCHES(Vgg64Nodes);
EPOCAST_SEARCHES(Vgg64NodesSums);
BENCHMARK_MAIN();
