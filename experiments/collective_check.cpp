#include "experiments/collective_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace epocast {
namespace {

/// The hierarchical algorithm pairs the ranks of different nodes, so it needs as many of every team on each.
void check_nodes_equal(const Cluster& cluster, const Group& group, const Axis& axis, std::size_t workers,
                       const ConfigNode& algorithm) {
  const auto ranks = static_cast<std::uint32_t>(group.devices.size());
  for (std::uint32_t team = 0; team < axis.teams(ranks); ++team) {
    std::map<std::string, int> on_node;
    axis.for_each_rank(team, [&](std::uint32_t rank) {
      ++on_node[cluster.devices[static_cast<std::size_t>(group.devices[rank])].node];
    });
    const auto [least, most] = std::minmax_element(on_node.begin(), on_node.end(),
                                                   [](const auto& a, const auto& b) { return a.second < b.second; });
    if (least->second != most->second)
      throw algorithm.error(fmt::format(
          "hierarchical needs equally many workers on every node, but {}{} has {} and {} has {}; change workers or "
          "use multi_ring",
          axis.extent == workers ? "" : fmt::format("of {} that work together ", axis.extent), least->first,
          least->second, most->first, most->second));
  }
}

void check_supported(const Collective& work, const std::string& strategy, const ConfigNode& algorithm) {
  if (supports(work.algorithm, work.op)) return;
  std::vector<std::string> able;
  for (const std::string& name : collective_algorithm_names())
    if (supports(parse_collective_algorithm(name), work.op)) able.push_back(name);
  throw algorithm.error(fmt::format("{} cannot do {}, which strategy {} needs; use one of {}",
                                    to_string(work.algorithm), to_string(work.op), strategy, fmt::join(able, ", ")));
}

}  // namespace

void check_collectives(const ScenarioSetup& setup, const ConfigNode& collective) {
  if (!collective.has("algorithm")) return;
  const ConfigNode algorithm = collective.at("algorithm");
  for (const PhaseSettings& phase : setup.phases) {
    const TrainingStep step = setup.compile(setup.context(phase));
    std::set<std::tuple<GroupId, std::uint32_t, std::uint32_t>> checked;  // with the axis
    for (const Task& task : step.graph.tasks()) {
      const auto* work = std::get_if<Collective>(&task.work);
      if (work == nullptr) continue;
      check_supported(*work, setup.strategy_name, algorithm);
      if (work->algorithm == CollectiveAlgorithm::hierarchical &&
          checked.emplace(work->group, task.axis.stride, task.axis.extent).second)
        check_nodes_equal(setup.cluster, step.graph.group(work->group), task.axis, phase.workers.size(), algorithm);
    }
  }
}

}  // namespace epocast
