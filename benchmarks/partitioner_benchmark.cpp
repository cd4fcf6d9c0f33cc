// Times partitioners on the hypergraphs of networks, which are made beforehand. Counters say what each reached: volume
// [million values of a batch of 32, connectivity], and the largest load over the average, which is above 1.1 where a
// partitioner does not keep to the imbalance.

#include <benchmark/benchmark.h>

#include <map>

#include "experiments/partition/metis_backend.hpp"
#include "sim/data_directory.hpp"
#include "strategies/partitioners/class_annealing.hpp"
#include "strategies/partitioners/grid_annealing.hpp"
#include "strategies/partitioners/model_filters.hpp"
#include "strategies/partitioners/simple_partitioners.hpp"
#include "workloads/model_reader.hpp"

namespace epocast {
namespace {

enum class Grain { coarse, fine };

/// A network and its hypergraph, made once.
struct Problem {
  FilterNetwork network;
  Hypergraph graph;
};

const Problem& problem(const std::string& name, Grain grain) {
  static std::map<std::pair<std::string, Grain>, Problem> known;
  const auto [entry, missing] = known.try_emplace({name, grain});
  Problem& out = entry->second;
  if (missing) {
    constexpr int kBatch = 32;
    const Model model = load_model(data_directory() / "workloads" / "models" / (name + ".yaml"));
    std::vector<double> work;
    for (const Layer& layer : model.layers)
      work.push_back(kBatch * (layer.forward_flop + layer.backward_data_flop + layer.backward_weights_flop));
    out.network = filter_network(model, kBatch, work);
    out.graph = grain == Grain::fine ? fine_grain(out.network) : coarse_grain(out.network);
  }
  return out;
}

using Partitioner = Partition (*)(const Problem&, const PartitionOptions&);

void run(benchmark::State& state, const std::string& name, Grain grain, Partitioner partitioner) {
  const Problem& given = problem(name, grain);
  const PartitionOptions options{.parts = static_cast<int>(state.range(0))};
  Partition partition;
  for (auto _ : state) partition = partitioner(given, options);
  state.counters["volume_M"] = cut_cost(given.graph, partition, options.objective) / 1e6;
  state.counters["load_over_average"] =
      load_balance(given.graph, partition).max * options.parts / given.graph.total_weight();
}

Partition bisection(const Problem& given, const PartitionOptions& options) {
  return layerwise_bisection(given.network, options.parts);
}
Partition annealing(const Problem& given, const PartitionOptions& options) {
  return partition_by_annealing(given.graph, options);
}
Partition grid_annealing(const Problem& given, const PartitionOptions& options) {
  return partition_fine_grain(given.network, options);
}
Partition metis(const Problem& given, const PartitionOptions& options) {
  return partition_with_metis(given.graph, options);
}

void add(const std::string& name, Grain grain, const std::string& algorithm, Partitioner partitioner,
         const std::vector<int>& parts) {
  auto* added =
      benchmark::RegisterBenchmark((name + (grain == Grain::fine ? "_fine/" : "_coarse/") + algorithm).c_str(),
                                   [=](benchmark::State& state) { run(state, name, grain, partitioner); });
  for (const int number : parts) added->Arg(number);
  // METIS works in child processes, which CPU time leaves out.
  added->Unit(benchmark::kMillisecond)->UseRealTime();
}

void add_all() {
  add("vgg16", Grain::coarse, "layerwise_bisection", bisection, {8});  // no more than 16 layers have work
  add("vgg16", Grain::coarse, "annealing", annealing, {8, 128});
  add("vgg16", Grain::fine, "annealing", grid_annealing, {16});
  add("resnet50", Grain::coarse, "layerwise_bisection", bisection, {8});
  add("resnet50", Grain::coarse, "annealing", annealing, {8});
  if (!has_metis()) return;
  add("vgg16", Grain::coarse, "metis", metis, {8, 128});
  add("vgg16", Grain::fine, "metis", metis, {16});
  add("resnet50", Grain::coarse, "metis", metis, {8});
}

}  // namespace
}  // namespace epocast

int main(int argc, char** argv) {
  epocast::add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
