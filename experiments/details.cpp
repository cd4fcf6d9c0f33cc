#include "experiments/details.hpp"

#include <nlohmann/json.hpp>

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
  for (const DeviceMemory& m : memory)
    section.push_back({{"holder", m.holder},
                       {"devices", device_names(m.devices, cluster)},
                       {"total", m.use.total().value},
                       {"parameters", m.use.parameters.value},
                       {"gradients", m.use.gradients.value},
                       {"optimizer_state", m.use.optimizer_state.value},
                       {"activations", m.use.activations.value}});
  return section;
}

}  // namespace

std::string details(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs) {
  ordered_json phases = ordered_json::array();
  for (std::size_t p = 0; p < runs.size(); ++p) {
    ordered_json phase;
    phase["workers"] = setup.phases[p].workers.size();
    phase["global_batch"] = setup.phases[p].global_batch;
    phase["steps"] = runs[p].step.steps;
    phase["memory"] = memory_section(runs[p].step.memory, setup.cluster);
    phases.push_back(std::move(phase));
  }
  return ordered_json{{"phases", std::move(phases)}}.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace epocast
