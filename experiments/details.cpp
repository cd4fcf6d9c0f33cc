#include "experiments/details.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "experiments/collective_report.hpp"
#include "experiments/seeds.hpp"

namespace epocast {
namespace {

using nlohmann::ordered_json;

ordered_json device_names(const std::vector<DeviceId>& devices, const Cluster& cluster) {
  ordered_json names = ordered_json::array();
  for (const DeviceId device : devices) names.push_back(cluster.devices[static_cast<std::size_t>(device)].name);
  return names;
}

ordered_json memory_section(const std::vector<DeviceMemory>& memory, const Cluster& cluster) {
  ordered_json section = ordered_json::array();
  for (const DeviceMemory& m : memory) {
    section.push_back({{"holder", m.holder},
                       {"devices", device_names(m.devices, cluster)},
                       {"total", m.use.total().value},
                       {"parameters", m.use.parameters.value},
                       {"gradients", m.use.gradients.value},
                       {"optimizer_state", m.use.optimizer_state.value},
                       {"activations", m.use.activations.value},
                       {"activation_gradients", m.use.activation_gradients.value},
                       {"workspace", m.use.workspace.value},
                       {"reserve", m.use.reserve.value},
                       {"moment", m.use.moment}});
    if (m.use.on_host.value > 0) section.back()["on_host"] = m.use.on_host.value;
  }
  return section;
}

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json workers_section(const ExecutionResult& result, const Cluster& cluster) {
  ordered_json section = ordered_json::array();
  for (std::size_t w = 0; w < result.workers.size(); ++w) {
    const WorkerReport& report = result.workers[w];
    section.push_back({{"worker", w},
                       {"device", cluster.devices[static_cast<std::size_t>(report.device)].name},
                       {"iterations", report.steps},
                       {"iterations_per_s", report.steps_per_s()},
                       {"skipped", report.skipped},
                       {"dropped", report.dropped},
                       {"stopped_s", or_null(report.stopped)},
                       {"mean_staleness", or_null(report.mean_staleness)},
                       {"max_staleness", or_null(report.max_staleness)},
                       {"waited_for_others_s", report.lost},
                       {"others_waited_s", report.cost_to_others},
                       {"came_last", report.came_last}});
  }
  return section;
}

ordered_json servers_section(const ExecutionResult& result) {
  ordered_json section = ordered_json::array();
  for (const ServerReport& server : result.servers)
    section.push_back({{"queue", server.queue}, {"utilization", server.utilization}, {"served", server.served}});
  return section;
}

ordered_json staleness_section(const StalenessReport& staleness) {
  return {{"writes", staleness.writes},
          {"mean", or_null(staleness.mean())},
          {"max", staleness.max},
          {"histogram", staleness.histogram}};
}

ordered_json collectives_section(const PhaseRun& run) {
  ordered_json section = ordered_json::array();
  for (const AlgorithmUse& use : algorithm_uses(run.step.graph, run.result))
    section.push_back({{"operation", to_string(use.op)},
                       {"algorithm", use.name()},
                       {"count", use.count},
                       {"smallest_bytes", use.smallest.value},
                       {"largest_bytes", use.largest.value}});
  return section;
}

/// Times per step of the first worker.
ordered_json overlap_section(const PhaseRun& run) {
  if (!run.overlap) return nullptr;
  const OverlapReport& overlap = *run.overlap;
  ordered_json compute = ordered_json::object(), communications = ordered_json::array();
  for (const auto& [operation, time] : overlap.compute) compute[operation] = run.per_step(time);
  for (const CommunicationTime& c : overlap.communications)
    communications.push_back({{"operation", c.operation},
                              {"layer", c.layer},
                              {"time", run.per_step(c.time)},
                              {"blocked", run.per_step(c.blocked)}});
  const std::optional<double> ratio = overlap.ratio();
  return {{"ratio", ratio ? ordered_json(*ratio) : ordered_json(nullptr)},
          {"compute", std::move(compute)},
          {"communication", run.per_step(overlap.communication())},
          {"blocked", run.per_step(overlap.blocked())},
          {"waiting", run.per_step(overlap.waiting)},
          {"communications", std::move(communications)}};
}

/// Who sends how much to whom in a step: devices, or nodes where devices are many; of very many nodes some together.
ordered_json traffic_section(const PhaseRun& run, const Cluster& cluster) {
  constexpr std::size_t kMostRows = 64;  // rows that a picture can show
  std::set<DeviceId> devices;
  for (const DeviceTraffic& traffic : run.result.traffic) devices.insert({traffic.from, traffic.to});
  const bool by_node = devices.size() > kMostRows;
  std::vector<std::string> names;
  std::map<std::string, std::size_t> number;
  const auto name_of = [&](DeviceId d) {
    const Device& device = cluster.devices[static_cast<std::size_t>(d)];
    return by_node ? device.node.text() : device.name;
  };
  for (const DeviceId device : devices)
    if (number.emplace(name_of(device), names.size()).second) names.push_back(name_of(device));
  const std::size_t together = (names.size() + kMostRows - 1) / kMostRows;
  std::vector<std::string> shown;
  for (std::size_t n = 0; n < names.size(); n += together)
    shown.push_back(together == 1 ? names[n] : names[n] + " .. " + names[std::min(n + together, names.size()) - 1]);
  std::vector<std::vector<double>> bytes(shown.size(), std::vector<double>(shown.size()));
  for (const DeviceTraffic& traffic : run.result.traffic)
    bytes[number.at(name_of(traffic.from)) / together][number.at(name_of(traffic.to)) / together] +=
        run.per_step(traffic.bytes);
  return {{"of", by_node ? "nodes" : "devices"}, {"names", shown}, {"bytes", bytes}};
}

}  // namespace

std::string details(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs,
                    const std::vector<ScenarioResult>& by_seed) {
  ordered_json phases = ordered_json::array();
  for (std::size_t p = 0; p < runs.size(); ++p) {
    const StepMetrics& metrics = runs[p].result.metrics;
    const double computing = metrics.compute * static_cast<double>(setup.phases[p].workers.size());
    ordered_json phase;
    const Joining& joining = runs[p].joining;
    phase["total_s"] = joining.seconds + runs[p].result.total;
    phase["bytes"] = joining.bytes + runs[p].per_step(metrics.bytes) * static_cast<double>(runs[p].iterations);
    phase["joining_s"] = joining.seconds;
    phase["joining_bytes"] = joining.bytes;
    phase["idle_share"] = 1 - computing / (runs[p].result.iteration * static_cast<double>(setup.booked));
    phase["workers"] = setup.phases[p].workers.size();
    phase["global_batch"] = std::llround(runs[p].batch);
    phase["steps"] = runs[p].step.steps;
    phase["memory"] = memory_section(runs[p].step.memory, setup.cluster);
    phase["by_worker"] = workers_section(runs[p].result, setup.cluster);
    phase["servers"] = servers_section(runs[p].result);
    if (runs[p].result.staleness.writes > 0) phase["staleness"] = staleness_section(runs[p].result.staleness);
    phase["collectives"] = collectives_section(runs[p]);
    phase["overlap"] = overlap_section(runs[p]);
    if (!runs[p].result.traffic.empty()) phase["traffic"] = traffic_section(runs[p], setup.cluster);
    phases.push_back(std::move(phase));
  }
  ordered_json all{{"phases", std::move(phases)}};
  if (by_seed.size() > 1) all["seeds"] = seeds_section(by_seed, setup.irregularity.seeds);
  return all.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace epocast
