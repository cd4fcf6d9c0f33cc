#include "experiments/place/place_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <ostream>
#include <sstream>
#include <unordered_map>

#include "costmodels/csv_table.hpp"
#include "costmodels/fitted.hpp"
#include "costmodels/operator_times.hpp"
#include "experiments/place/undirected.hpp"
#include "platforms/platform_loader.hpp"
#include "sim/data_directory.hpp"
#include "sim/data_file.hpp"
#include "sim/executor.hpp"
#include "sim/text.hpp"
#include "sim/words.hpp"
#include "strategies/placement/list_placement.hpp"
#include "strategies/placement/placed_step.hpp"
#include "workloads/model_reader.hpp"

namespace epocast {
namespace {

std::string node_name(const OperatorGraph& graph, std::size_t n) {
  const std::string& layer = graph.layers[graph.layer[n]];
  return fmt::format("{}{}{}_{}", layer, layer.empty() ? "" : "/", graph.operation_of(n), n);
}

Placement pardnn_with(const PlacementGraph&, std::span<const Ticks>, int) { return {}; }  // has stages of its own

Placement single(const PlacementGraph& graph, std::span<const Ticks>, int) { return Placement(graph.size(), 0); }

Placement linear(const PlacementGraph& graph, std::span<const Ticks> transfer, int devices) {
  Placement out =
      guided_load_balancing(graph, linear_clustering(graph, transfer), compute_levels(graph, transfer).top, devices);
  unite_groups(graph, transfer, devices, out);
  return out;
}

Placement in_turn(const PlacementGraph& graph, std::span<const Ticks> transfer, int devices) {
  return fill_in_turn(graph, transfer, devices);
}

struct Method {
  const char* name;
  const char* description;
  Placement (*place)(const PlacementGraph&, std::span<const Ticks>, int);
};

constexpr Method kMethods[] = {
    {"pardnn", "ParDNN, steps kept only if they help, and a search on replays", pardnn_with},
    {"pardnn_literal", "ParDNN as it is written", pardnn_with},
    {"round_robin", "nodes in topological order to devices in turn", round_robin},
    {"linear_clustering", "linear clustering and guided load balancing", linear},
    {"heft", "heterogeneous earliest finish time", heft},
    {"in_turn", "one device after the other, with equal shares of memory", in_turn},
    {"metis", "METIS on the undirected graph", place_with_metis},
    {"scotch", "Scotch on the undirected graph", place_with_scotch},
    {"single", "everything on the first device", single},
};

}  // namespace

ModelOperators model_operators(const ModelGraphRequest& request) {
  const ConfigNode root = ConfigNode::load_text("{model: '" + request.model + "'}", "command line");
  const Model model = load_model_named(root.at("model"), data_directory());
  const ConfigNode named = ConfigNode::load_text("{calibration: '" + request.calibration + "'}", "command line");
  const ComputeCalibration calibration = load_compute_calibration(find_data_file(
      named.at("calibration"), {"calibration", data_directory() / "costmodels" / "calibrations", ".yaml"}));
  ModelOperators out{build_operator_graph(model, request.batch, request.options), {}};
  out.seconds = operator_times(out.graph, model, calibration);
  if (request.times == OperatorTimes::layers) {
    Device device;
    device.peak_rate = calibration.rates.peak_rate;
    device.memory_bandwidth = calibration.rates.memory_bandwidth;
    const Fitted fitted(calibration, request.calibration, request.options.optimizer, model, device);
    anchor_to_layers(out.graph, make_trace(model, fitted, request.batch, device), out.seconds);
  }
  return out;
}

NamedGraph model_graph(const ModelGraphRequest& request) {
  const ModelOperators step = model_operators(request);
  NamedGraph out;
  out.name = fmt::format("{}, {}", step.graph.model, counted(request.batch, "sample"));
  out.graph = placement_graph(step.graph, step.seconds);
  out.nodes.reserve(step.graph.size());
  for (std::size_t n = 0; n < step.graph.size(); ++n) out.nodes.push_back(node_name(step.graph, n));
  return out;
}

const std::vector<std::pair<std::string, std::string>>& placement_methods() {
  static const std::vector<std::pair<std::string, std::string>> list = [] {
    std::vector<std::pair<std::string, std::string>> out;
    for (const Method& method : kMethods) out.emplace_back(method.name, method.description);
    return out;
  }();
  return list;
}

MethodOutcome place_by(const std::string& name, const NamedGraph& graph, const PlacementMachine& machine,
                       const ReplayOptions& options) {
  const auto* method =
      std::find_if(std::begin(kMethods), std::end(kMethods), [&](const Method& m) { return name == m.name; });
  if (method == std::end(kMethods)) {
    std::vector<std::string> names;
    for (const Method& m : kMethods) names.emplace_back(m.name);
    throw ConfigError("--method: unknown word '" + name + "'" + name_hint(name, names));
  }
  MethodOutcome out;
  out.method = name;
  const auto begin = std::chrono::steady_clock::now();
  if (method->place == pardnn_with) {
    ParDnnOptions all;
    all.literal = name == "pardnn_literal";
    all.replay = options;
    out.stages = pardnn(graph.graph, machine, all);
  } else {
    const std::vector<Ticks> transfer = transfer_times(graph.graph, machine);
    out.stages.push_back(
        judge(graph.graph, machine, options, name, method->place(graph.graph, transfer, machine.devices)));
    if (!out.stages.back().fits && machine.devices > 1) {
      Placement moved = out.stages.back().placement;
      const OverflowResult result = resolve_overflow(graph.graph, machine, options, moved);
      out.stages.push_back(judge(graph.graph, machine, options, "memory", std::move(moved)));
      out.stages.back().moved_nodes = result.moved_nodes;
    }
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

Placement read_placement(const std::string& text, const std::string& file, const NamedGraph& graph, int devices) {
  std::istringstream in(text);
  const CsvTable table = CsvTable::read(in, file);
  table.check_columns({"node", "device"}, {});
  std::unordered_map<std::string_view, std::size_t> index;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) index.emplace(graph.nodes[n], n);
  Placement out(graph.nodes.size(), -1);
  for (const CsvRow& row : table.rows()) {
    const auto found = index.find(row.text("node"));
    if (found == index.end())
      throw row.error("node", fmt::format("the graph has no node '{}'", abridged(printable(row.text("node")))));
    std::int16_t& device = out[found->second];
    if (device >= 0) throw row.error("node", "is placed twice");
    device = static_cast<std::int16_t>(row.whole("device", Range{0, static_cast<double>(devices - 1)}));
  }
  for (std::size_t n = 0; n < out.size(); ++n)
    if (out[n] < 0)
      throw ConfigError(fmt::format("{}: node '{}' has no device", file, abridged(printable(graph.nodes[n]))));
  return out;
}

void write_placement(std::ostream& out, const NamedGraph& graph, const Placement& placement) {
  const auto quoted = [](const std::string& name) {
    if (name.find_first_of(",\"\r\n") == std::string::npos) return name;
    std::string text = "\"";
    for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
    return text + '"';
  };
  out << "node,device\n";
  for (std::size_t n = 0; n < placement.size(); ++n) out << quoted(graph.nodes[n]) << ',' << placement[n] << '\n';
}

double simulate_placement(const NamedGraph& graph, const Placement& placement, int devices,
                          const std::string& platform) {
  const ConfigNode root = ConfigNode::load_text("{platform: '" + platform + "'}", "command line");
  const Cluster cluster = load_platform_named(root.at("platform"), data_directory());
  if (cluster.devices.size() < static_cast<std::size_t>(devices))
    throw ConfigError(fmt::format("--simulate: platform '{}' has {}; use at most as many --devices", platform,
                                  counted(cluster.devices.size(), "device")));
  std::vector<DeviceId> used(static_cast<std::size_t>(devices));
  std::iota(used.begin(), used.end(), DeviceId{0});
  SimEngine engine(cluster.platform_file.string());
  return execute(placed_step(graph.graph, placement, used, graph.nodes), cluster, engine, {.iterations = 1}).total;
}

std::string impossible_because(const NamedGraph& graph, const PlacementMachine& machine) {
  if (machine.memory <= 0) return "";
  const MemoryBound bound = memory_bound(graph.graph, machine);
  const std::string needs = to_string(Bytes(bound.bytes)), there = to_string(Bytes(machine.memory));
  const auto name = [&] { return abridged(printable(graph.nodes[bound.node])); };
  switch (bound.kind) {
    case MemoryBound::Kind::none: return "";
    case MemoryBound::Kind::node:
      return fmt::format("node '{}' and what it reads take {}; a device has {}", name(), needs, there);
    case MemoryBound::Kind::group:
      return fmt::format("'{}' and what shares its device take {}; a device has {}", name(), needs, there);
    case MemoryBound::Kind::all:
      return fmt::format("variables take {}; {} have {} together", needs, counted(machine.devices, "device"),
                         to_string(Bytes(machine.memory * machine.devices)));
  }
  return "";
}

}  // namespace epocast
