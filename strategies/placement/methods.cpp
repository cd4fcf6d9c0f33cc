#include "strategies/placement/methods.hpp"

#include <string_view>
#include <utility>

#include "strategies/placement/levels.hpp"
#include "strategies/placement/list_placement.hpp"
#include "strategies/placement/mapping.hpp"
#include "strategies/placement/overflow.hpp"
#include "strategies/placement/slicing.hpp"

namespace epocast {
namespace {

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

constexpr std::string_view kLiteral = "pardnn_literal";

constexpr PlacementMethod kMethods[] = {
    {"pardnn", "ParDNN, steps kept only if they help, and a search on replays", nullptr},
    {kLiteral.data(), "ParDNN as it is written", nullptr},
    {"round_robin", "nodes in topological order to devices in turn", round_robin},
    {"linear_clustering", "linear clustering and guided load balancing", linear},
    {"heft", "heterogeneous earliest finish time", heft},
    {"in_turn", "one device after the other, with equal shares of memory", in_turn},
    {"single", "everything on the first device", single},
};

}  // namespace

std::span<const PlacementMethod> placement_methods() { return kMethods; }

std::vector<PlacementStage> place_by(const PlacementMethod& method, const PlacementGraph& graph,
                                     const PlacementMachine& machine, const ParDnnOptions& options) {
  if (method.place == nullptr) {
    ParDnnOptions all = options;
    all.literal = method.name == kLiteral;
    return pardnn(graph, machine, all);
  }
  std::vector<PlacementStage> stages;
  const std::vector<Ticks> transfer = transfer_times(graph, machine);
  stages.push_back(judge(graph, machine, options.replay, method.name, method.place(graph, transfer, machine.devices)));
  if (!stages.back().fits && machine.devices > 1) {
    Placement moved = stages.back().placement;
    const OverflowResult result = resolve_overflow(graph, machine, options.replay, moved);
    stages.push_back(judge(graph, machine, options.replay, "memory", std::move(moved)));
    stages.back().moved_nodes = result.moved_nodes;
  }
  return stages;
}

PlacementStage place_best(const PlacementGraph& graph, const PlacementMachine& machine, const ParDnnOptions& options) {
  std::vector<PlacementStage> results;
  for (const PlacementMethod& method : kMethods) results.push_back(place_by(method, graph, machine, options).back());
  return best_of(results);
}

}  // namespace epocast
