#include "experiments/place/place_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "experiments/text_table.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

double transferred(const PlaceReport& report, const PlacementStage& stage) {
  double bytes = 0;
  for (const OutputTransfer& t : replay(report.graph->graph, report.machine, stage.placement, report.options).transfers)
    bytes += t.bytes;
  return bytes;
}

double speedup(const PlaceReport& report, const PlacementStage& stage) {
  return stage.makespan > 0
             ? static_cast<double>(report.graph->graph.total_time()) / static_cast<double>(stage.makespan)
             : 1;
}

struct DeviceRow {
  int device;
  std::size_t nodes;
  Ticks busy;
  MemoryPeak peak;
  double variables;
  std::string largest;
};

std::vector<DeviceRow> device_rows(const PlaceReport& report, const PlacementStage& stage) {
  const PlacementGraph& graph = report.graph->graph;
  const ReplayResult result = replay(graph, report.machine, stage.placement, report.options);
  const std::vector<Residence> all = residences(graph, stage.placement, result);
  const std::vector<MemoryPeak> peaks = memory_peaks(all, report.machine.devices);
  std::vector<DeviceRow> out;
  for (int d = 0; d < report.machine.devices; ++d)
    out.push_back({d, 0, result.busy[static_cast<std::size_t>(d)], peaks[static_cast<std::size_t>(d)], 0, ""});
  for (std::size_t n = 0; n < graph.size(); ++n) {
    DeviceRow& row = out[static_cast<std::size_t>(stage.placement[n])];
    ++row.nodes;
    if (graph.lifetime[n] == Lifetime::residual) row.variables += graph.memory[n];
  }
  std::vector<double> most(out.size(), 0);
  for (const Residence& r : all) {
    const auto d = static_cast<std::size_t>(r.device);
    const Ticks t = out[d].peak.time;
    if (r.begin > t || r.end < t || (r.end == t && r.begin < r.end) || r.bytes <= most[d]) continue;
    most[d] = r.bytes;
    out[d].largest =
        fmt::format("{}{} ({})", r.is_copy ? "copy of " : "", report.graph->nodes[r.node], to_string(Bytes(r.bytes)));
  }
  return out;
}

/// The fastest of what fits and is no placement, if no placement is as fast.
const Alternative* faster_alternative(const PlaceReport& report) {
  const PlacementStage& best = report.outcomes[report.best].result();
  const Alternative* out = nullptr;
  for (const Alternative& other : report.alternatives)
    if (other.fits && (!best.fits || other.seconds < to_seconds(best.makespan)) &&
        (out == nullptr || other.seconds < out->seconds))
      out = &other;
  return out;
}

}  // namespace

void write_place_table(std::ostream& out, const PlaceReport& report) {
  const PlacementGraph& graph = report.graph->graph;
  out << fmt::format("{}: {}, {}; work {}\n", report.graph->name, counted(graph.size(), "node"),
                     counted(graph.edges(), "edge"), to_string(Seconds(to_seconds(graph.total_time()))));
  out << fmt::format("  degree of parallelism {:.2f}; communication to computation {:.2f}\n",
                     degree_of_parallelism(graph), communication_to_computation(graph, report.machine));
  std::vector<std::vector<std::string>> rows{
      {"method", "makespan", "speedup", "transferred", "peak memory", "fits", "moved nodes", "made in"}};
  for (const MethodOutcome& outcome : report.outcomes) {
    const PlacementStage& s = outcome.result();
    rows.push_back({outcome.method, to_string(Seconds(to_seconds(s.makespan))),
                    fmt::format("{:.2f}", speedup(report, s)), to_string(Bytes(transferred(report, s))),
                    to_string(Bytes(s.peak_bytes)), s.fits ? "yes" : "no",
                    s.moved_nodes == 0 ? "" : std::to_string(s.moved_nodes), to_string(Seconds(outcome.seconds))});
  }
  const double work = to_seconds(graph.total_time());
  for (const Alternative& other : report.alternatives)
    rows.push_back({other.name, to_string(Seconds(other.seconds)), fmt::format("{:.2f}", work / other.seconds), "",
                    to_string(Bytes(other.peak_bytes)), other.fits ? "yes" : "no", "", ""});
  const double ideal = to_seconds(graph.total_time()) / report.machine.devices;
  rows.push_back({"ideal data parallelism", to_string(Seconds(ideal)), fmt::format("{}.00", report.machine.devices), "",
                  "", "", "", ""});
  out << align_columns(rows);
  for (const MethodOutcome& outcome : report.outcomes) {
    if (outcome.stages.size() < 2) continue;
    out << fmt::format("  {}:", outcome.method);
    for (const PlacementStage& s : outcome.stages)
      out << fmt::format("{} {} {}", &s == outcome.stages.data() ? "" : ",", s.name,
                         to_string(Seconds(to_seconds(s.makespan))));
    out << '\n';
  }
  const MethodOutcome& best = report.outcomes[report.best];
  out << fmt::format("  recommended placement: {}", best.method);
  if (report.simulated) out << fmt::format("; simulated on the platform: {}", to_string(Seconds(*report.simulated)));
  out << '\n';
  if (const Alternative* other = faster_alternative(report))
    out << fmt::format("  faster than any placement that fits: {}, {}\n", other->name,
                       to_string(Seconds(other->seconds)));
  rows = {{"device", "nodes", "busy", "variables", "peak memory", "at", "largest then"}};
  for (const DeviceRow& row : device_rows(report, best.result()))
    rows.push_back({std::to_string(row.device), std::to_string(row.nodes), to_string(Seconds(to_seconds(row.busy))),
                    to_string(Bytes(row.variables)), to_string(Bytes(row.peak.bytes)),
                    to_string(Seconds(to_seconds(row.peak.time))), row.largest});
  out << align_columns(rows);
}

void write_place_csv(std::ostream& out, const PlaceReport& report) {
  out << "method,stage,makespan_s,speedup,transferred_bytes,peak_memory_bytes,fits_memory,moved_nodes,seconds\n";
  for (const MethodOutcome& outcome : report.outcomes)
    for (const PlacementStage& s : outcome.stages)
      out << fmt::format("{},\"{}\",{},{},{},{},{},{},{}\n", outcome.method, s.name, to_seconds(s.makespan),
                         speedup(report, s), transferred(report, s), s.peak_bytes, s.fits ? 1 : 0, s.moved_nodes,
                         s.seconds);
  for (const Alternative& other : report.alternatives)
    out << fmt::format("\"{}\",,{},{},,{},{},,\n", other.name, other.seconds,
                       to_seconds(report.graph->graph.total_time()) / other.seconds, other.peak_bytes,
                       other.fits ? 1 : 0);
}

void write_place_json(std::ostream& out, const PlaceReport& report) {
  using nlohmann::ordered_json;
  const PlacementGraph& graph = report.graph->graph;
  ordered_json methods = ordered_json::array();
  for (const MethodOutcome& outcome : report.outcomes) {
    ordered_json stages = ordered_json::array();
    for (const PlacementStage& s : outcome.stages)
      stages.push_back({{"stage", s.name},
                        {"makespan_s", to_seconds(s.makespan)},
                        {"speedup", speedup(report, s)},
                        {"transferred_bytes", transferred(report, s)},
                        {"peak_memory_bytes", s.peak_bytes},
                        {"fits_memory", s.fits},
                        {"moved_nodes", s.moved_nodes},
                        {"seconds", s.seconds}});
    methods.push_back({{"method", outcome.method}, {"stages", std::move(stages)}, {"seconds", outcome.seconds}});
  }
  ordered_json devices = ordered_json::array();
  for (const DeviceRow& row : device_rows(report, report.outcomes[report.best].result()))
    devices.push_back({{"device", row.device},
                       {"nodes", row.nodes},
                       {"busy_s", to_seconds(row.busy)},
                       {"variable_bytes", row.variables},
                       {"peak_memory_bytes", row.peak.bytes},
                       {"peak_s", to_seconds(row.peak.time)},
                       {"largest", row.largest}});
  ordered_json root{{"graph", report.graph->name},
                    {"nodes", graph.size()},
                    {"edges", graph.edges()},
                    {"work_s", to_seconds(graph.total_time())},
                    {"degree_of_parallelism", degree_of_parallelism(graph)},
                    {"communication_to_computation", communication_to_computation(graph, report.machine)},
                    {"methods", std::move(methods)},
                    {"recommended", report.outcomes[report.best].method},
                    {"devices", std::move(devices)}};
  for (const Alternative& other : report.alternatives)
    root["alternatives"].push_back({{"name", other.name},
                                    {"makespan_s", other.seconds},
                                    {"peak_memory_bytes", other.peak_bytes},
                                    {"fits_memory", other.fits}});
  if (report.simulated) root["simulated_s"] = *report.simulated;
  out << root.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

}  // namespace epocast
