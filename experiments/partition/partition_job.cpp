#include "experiments/partition/partition_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "costmodels/csv_table.hpp"
#include "experiments/partition/metis_backend.hpp"
#include "experiments/partition/patoh_file.hpp"
#include "experiments/partition/zoltan_backend.hpp"
#include "sim/data_directory.hpp"
#include "sim/error.hpp"
#include "strategies/partitioners/class_annealing.hpp"
#include "strategies/partitioners/contiguous_split.hpp"
#include "strategies/partitioners/grid_annealing.hpp"
#include "strategies/partitioners/model_filters.hpp"
#include "strategies/partitioners/simple_partitioners.hpp"
#include "workloads/model_reader.hpp"

namespace epocast {
namespace {

/// What was named on the command line.
struct Source {
  Model model;
  std::int64_t batch = 0;
  std::optional<WorkloadTrace> trace;  ///< with a study
};

Source read_source(const PartitionRequest& request, const Registries& registries) {
  if (!is_study(request.network)) {
    const ConfigNode root = ConfigNode::load_text("{model: '" + request.network + "'}", "command line");
    return {load_model_named(root.at("model"), data_directory()), request.batch, {}};
  }
  const Study study = load_study(request.network, request.overrides);
  if (request.scenario > study.scenarios.size() || (request.scenario == 0 && study.scenarios.size() > 1))
    throw ConfigError(fmt::format("study '{}' has {} scenarios; choose one with --scenario 1..{}", study.name,
                                  study.scenarios.size(), study.scenarios.size()));
  const ScenarioSetup setup =
      read_scenario(study.scenarios[std::max<std::size_t>(request.scenario, 1) - 1], registries);
  if (setup.model.layers.empty()) throw ConfigError("the study has no model to partition");
  const StrategyContext context = setup.context(setup.phases.front());
  return {setup.model, context.worker_batch(), context.trace(context.worker_batch())};
}

/// Works from a CSV file: columns layer,work; layers that are not there have none.
std::vector<double> read_works(const std::string& file, const Model& model) {
  const CsvTable table = CsvTable::load(file);
  table.check_columns({"layer", "work"}, {});
  std::map<std::string, std::size_t> index;
  for (std::size_t l = 0; l < model.layers.size(); ++l) index[model.layers[l].name] = l;
  std::vector<double> out(model.layers.size());
  std::vector<std::string> names;
  for (const Layer& layer : model.layers) names.push_back(layer.name);
  for (const CsvRow& row : table.rows()) {
    const auto found = index.find(row.text("layer"));
    if (found == index.end())
      throw row.error("layer",
                      "the model has no layer '" + row.text("layer") + "'" + name_hint(row.text("layer"), names));
    out[found->second] += row.number("work", {0});
  }
  return out;
}

/// Work of each layer, and its unit.
std::pair<std::vector<double>, std::string> works_of(const PartitionRequest& request, const Source& source) {
  std::string weights = request.weights;
  if (weights.empty()) weights = source.trace ? "time" : "flop";
  std::vector<double> out;
  if (weights == "time") {
    if (!source.trace) throw ConfigError("--weights time: needs a study, whose cost model says how long layers take");
    for (const LayerTrace& layer : source.trace->layers) out.push_back(layer.times.total().longest().value);
    return {out, "s"};
  }
  if (weights != "flop") return {read_works(weights, source.model), ""};
  if (request.bandwidth)
    throw ConfigError(
        "--bandwidth: FLOP cannot be compared with the time that links take; use --weights time with a study, or a "
        "--weights file of seconds");
  for (const Layer& layer : source.model.layers)
    out.push_back(static_cast<double>(source.batch) *
                  (layer.forward_flop + layer.backward_data_flop + layer.backward_weights_flop));
  return {out, "FLOP"};
}

/// Stages of consecutive layers, as a partition of filters. With a bandwidth, work is in seconds.
Partition contiguous(const PartitionRequest& request, const Source& source, const std::vector<double>& work,
                     const FilterNetwork& network) {
  WorkloadTrace trace = source.trace.value_or(WorkloadTrace{source.model.name, source.batch, {}});
  if (!source.trace)
    for (const Layer& layer : source.model.layers) {
      LayerTrace& made = trace.layers.emplace_back();
      made.name = layer.name;
      made.inputs = layer.inputs;
      made.output = Bytes(4.0 * static_cast<double>(source.batch * layer.output.values()));
    }
  for (std::size_t l = 0; l < trace.layers.size(); ++l) trace.layers[l].times = {Seconds(work[l]), {}, {}, {}};
  const double fast = std::numeric_limits<double>::max();
  const ContiguousSplit split =
      split_contiguous(trace, {.devices = request.options.parts,
                               .stages = request.options.parts,
                               .bandwidth = request.bandwidth.value_or(BytesPerSecond(fast))});
  std::map<std::string, int> stage_of;
  for (std::size_t s = 0; s < split.stages.size(); ++s)
    for (std::size_t l = split.stages[s].first; l < split.stages[s].last; ++l)
      stage_of[trace.layers[l].name] = static_cast<int>(s);
  Partition out{request.options.parts, {}};
  for (const FilterLayer& layer : network.layers)
    out.part_of.insert(out.part_of.end(), static_cast<std::size_t>(layer.filters), stage_of.at(layer.name));
  return out;
}

Partition partition_graph(const PartitionRequest& request, const PartitionOptions& options, const Hypergraph& graph) {
  if (request.algorithm == "hypergraph") return partition_by_annealing(graph, options);
  if (request.algorithm == "metis") return partition_with_metis(graph, options);
  if (request.algorithm == "zoltan") return partition_with_zoltan(graph, options);
  if (request.algorithm == "incremental") return fill_in_order(graph, options.parts);
  throw ConfigError("--algorithm " + request.algorithm + ": needs a network, not a hypergraph");
}

Partition partition_network(const PartitionRequest& request, const PartitionOptions& options, const Source& source,
                            const std::vector<double>& work, const PartitionOutcome& outcome) {
  const std::string& algorithm = request.algorithm;
  const bool fine = request.grain == Grain::fine;
  const FilterNetwork& network = outcome.network;
  const auto of_layers = [&](const Partition& coarse) { return fine ? refine_grain(network, coarse) : coarse; };
  if (algorithm == "layerwise") return of_layers(layerwise_bisection(network, options.parts));
  if (algorithm == "horizontal") return of_layers(split_horizontally(network, options.parts));
  if (algorithm == "contiguous") return of_layers(contiguous(request, source, work, network));
  if (algorithm == "hypergraph" && fine) return partition_fine_grain(network, options);
  return partition_graph(request, options, outcome.graph);
}

}  // namespace

bool is_study(const std::string& name) {
  if (!name.ends_with(".yaml")) return false;
  const ConfigNode root = ConfigNode::load_file(name);
  return root.is_map() && root.has("study");
}

std::string PartitionOutcome::vertex_name(int vertex) const {
  if (network.layers.empty()) return fmt::format("vertex {}", vertex);
  return grain == Grain::fine ? fine_vertex_name(network, vertex) : coarse_vertex_name(network, vertex);
}

const std::vector<std::pair<std::string, std::string>>& partition_algorithms() {
  static const std::vector<std::pair<std::string, std::string>> all{
      {"hypergraph", "least volume within the imbalance: annealing on classes of equal vertices, or on grids"},
      {"layerwise", "whole layers, recursive bisection"},
      {"contiguous", "whole layers, optimal stages by dynamic programming"},
      {"horizontal", "every layer over all parts"},
      {"incremental", "vertices in order, each part filled in turn"},
      {"metis", "METIS, on a graph in the hypergraph's place, if this program was built with it"},
      {"zoltan", "Zoltan's parallel hypergraph partitioner, if this program was built with it"}};
  return all;
}

void check_partition_algorithm(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [algorithm, description] : partition_algorithms()) names.push_back(algorithm);
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw ConfigError("--algorithm: unknown algorithm '" + name + "'" + name_hint(name, names));
}

PartitionOutcome make_partition(const PartitionRequest& request, const Registries& registries) try {
  check_partition_algorithm(request.algorithm);
  PartitionOutcome out;
  out.grain = request.grain;
  PartitionOptions options = request.options;
  options.name = [&out](int vertex) { return out.vertex_name(vertex); };
  Source source;
  std::vector<double> work;
  if (!request.hypergraph.empty()) {
    out.graph = load_patoh(request.hypergraph);
  } else {
    source = read_source(request, registries);
    std::tie(work, out.weight_unit) = works_of(request, source);
    out.network = filter_network(source.model, source.batch, work);
    if (!(out.network.work() > 0)) throw ConfigError("no layer has any work; see --weights");
    out.graph = request.grain == Grain::fine ? fine_grain(out.network) : coarse_grain(out.network);
    out.cost_unit = "values";
  }
  if (!request.import_file.empty()) {
    out.partition = load_partition(request.import_file, out.graph.vertices(), options.parts);
  } else if (options.parts < 1) {
    throw ConfigError("--parts: say how many");
  } else if (!request.hypergraph.empty()) {
    out.partition = partition_graph(request, options, out.graph);
  } else {
    if (options.parts > out.graph.vertices()) check_partition_options(out.graph, options);
    out.partition = partition_network(request, options, source, work, out);
  }
  if (!out.network.layers.empty())
    out.shares = request.grain == Grain::fine ? fine_shares(out.network, out.partition)
                                              : coarse_shares(out.network, out.partition);
  return out;
} catch (const PartitionError& problem) {
  throw ConfigError(std::string("cannot partition: ") + problem.what());
} catch (const SplitError& problem) {
  throw ConfigError(std::string("cannot partition: ") + problem.what());
}

}  // namespace epocast
