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
#include "strategies/placement/methods.hpp"
#include "strategies/placement/placed_step.hpp"
#include "workloads/model_reader.hpp"

namespace epocast {
namespace {

/// Those of libraries come behind those of our own.
std::vector<PlacementMethod> all_methods() {
  const std::span<const PlacementMethod> own = placement_methods();
  std::vector<PlacementMethod> all(own.begin(), own.end());
  all.push_back({"metis", "METIS on the undirected graph", place_with_metis});
  all.push_back({"scotch", "Scotch on the undirected graph", place_with_scotch});
  return all;
}

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

const std::vector<std::pair<std::string, std::string>>& placement_method_names() {
  static const std::vector<std::pair<std::string, std::string>> list = [] {
    std::vector<std::pair<std::string, std::string>> out;
    for (const PlacementMethod& method : all_methods()) out.emplace_back(method.name, method.description);
    return out;
  }();
  return list;
}

MethodOutcome place_by(const std::string& name, const NamedGraph& graph, const PlacementMachine& machine,
                       const ReplayOptions& options) {
  const std::vector<PlacementMethod> methods = all_methods();
  const auto method = std::ranges::find_if(methods, [&](const PlacementMethod& m) { return name == m.name; });
  if (method == methods.end()) {
    std::vector<std::string> names;
    for (const PlacementMethod& m : methods) names.emplace_back(m.name);
    throw ConfigError("--method: unknown word '" + name + "'" + name_hint(name, names));
  }
  const auto begin = std::chrono::steady_clock::now();
  std::vector<PlacementStage> stages = place_by(*method, graph.graph, machine, {.replay = options});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return {name, std::move(stages), took.count()};
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
  for (const std::vector<std::uint32_t>& members : group_members(graph.graph))
    for (const std::uint32_t member : members)
      if (out[member] != out[members.front()])
        throw ConfigError(
            fmt::format("{}: node '{}' is on device {}, but the graph has it with '{}', which is on device {}", file,
                        abridged(printable(graph.nodes[member])), out[member],
                        abridged(printable(graph.nodes[members.front()])), out[members.front()]));
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
  if (cluster.trainers() < devices)
    throw ConfigError(fmt::format("--simulate: platform '{}' has {}; use at most as many --devices", platform,
                                  counted(cluster.trainers(), "device")));
  std::vector<std::vector<DeviceId>> used;
  for (DeviceId device = 0; device < devices; ++device) used.push_back({device});
  SimEngine engine(cluster);
  return execute(placed_step(graph.graph, placement, used, {.names = graph.nodes}), cluster, engine, {.iterations = 1})
      .total;
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
