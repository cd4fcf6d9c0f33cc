#include "strategies/operators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "strategies/placement/placed_step.hpp"
#include "strategies/placement/replay.hpp"
#include "strategies/step/composition_text.hpp"
#include "strategies/step/options.hpp"

namespace epocast {
namespace {

constexpr std::size_t kMostDevices = 32767;  // that a placement tells apart

const PlacementMethod* method_of(const ConfigNode& options) {
  std::vector<std::pair<std::string, const PlacementMethod*>> methods{{"best", nullptr}};
  for (const PlacementMethod& method : placement_methods()) methods.emplace_back(method.name, &method);
  return choose(options, "method", methods, methods.front().second);
}

/// The least that any worker has for training; 0 if a device's memory is not known.
Bytes memory_of(const StrategyContext& context) {
  Bytes least = context.device(context.workers.front()).memory;
  for (const DeviceId worker : context.workers) least = std::min(least, context.device(worker).memory);
  if (least.value <= 0) return Bytes(0);
  return std::max(Bytes(1), least * (1 - context.memory_reserve_share) - context.memory_reserve);
}

/// What each device holds when it holds most.
std::vector<MemoryUse> memory_uses(const StepNodes& nodes, const Placement& placement, const ReplayResult& result,
                                   int devices) {
  const std::vector<Residence> all = residences(nodes.graph, placement, result);
  const std::vector<MemoryPeak> peaks = memory_peaks(all, devices);
  std::vector<MemoryUse> uses(static_cast<std::size_t>(devices));
  for (const Residence& r : all)
    if (!r.is_copy && nodes.graph.lifetime[r.node] == Lifetime::residual)
      uses[static_cast<std::size_t>(r.device)].parameters += Bytes(r.bytes);
  for (std::size_t d = 0; d < uses.size(); ++d) uses[d].activations = Bytes(peaks[d].bytes) - uses[d].parameters;
  for (std::size_t n = 0; n < placement.size(); ++n)
    uses[static_cast<std::size_t>(placement[n])].parameters += Bytes(nodes.beside[n]);
  return uses;
}

}  // namespace

EntryInfo Operators::info() {
  return {"operators",
          "single operations, or passes of layers, placed on the devices of each replica (ParDNN)",
          {{"devices", "count", "divides the workers", "all workers", "of a replica; the others are further replicas"},
           {"method", "", "best, or as epocast place has them", "best", "how nodes are given devices"},
           {"nodes", "", "operations, passes", "operations", "what is placed: single operations, or passes of layers"},
           {"bandwidth", "bytes/s", "> 0", "required", "of a link between two devices, as a placement sees it"},
           {"latency", "s", ">= 0", "0 s", "of such a link"},
           {"search", "nodes", "0 .. 1e9", "2e6", "how many nodes ParDNN's search on replays may replay"}}};
}

Operators::Operators(const ConfigNode& options)
    : Operators(options, options.has("devices") ? ReplicaTeams::of(options.at("devices")) : ReplicaTeams()) {}

Operators::Operators(const ConfigNode& options, const AroundBody& around) : Operators(options, around.teams) {
  if (options.has("devices"))
    throw options.at("devices").error(
        "the mesh says how many devices share a replica, by its axis tensor; leave this out");
  around.check_synchronisation("operators");
  around.refuse_schedule("placed operations of a batch run when what they read is there");
}

Operators::Operators(const ConfigNode& options, ReplicaTeams teams)
    : options_(options),
      teams_(std::move(teams)),
      method_(method_of(options)),
      by_pass_(choose(options, "nodes", {{"operations", false}, {"passes", true}}, false)) {
  links_.bytes_per_second = options.at("bandwidth").as_bytes_per_second(Range{1, 1e18}).value;
  links_.latency = to_ticks(options.get("latency", Seconds(0), Range{0, 1000}).value);
  pardnn_.search_nodes = options.get("search", pardnn_.search_nodes, Range{0, 1e9});
  pardnn_.replay.links = Links::copy_engines;
  if (options.has("search") && method_ != nullptr && method_->place != nullptr)
    throw options.at("search").error(
        fmt::format("only ParDNN searches, and method is {}; leave it out", method_->name));
}

StepNodes Operators::nodes_of(const StrategyContext& context, std::int64_t batch) const {
  const WorkloadTrace trace = context.trace(batch);
  if (std::ranges::any_of(trace.layers, [](const LayerTrace& layer) { return layer.times.recompute.any(); }))
    throw options_.error("placed operations run once, and nothing is computed again; leave memory.recompute out");
  if (by_pass_) return pass_nodes(trace, context.optimizer);
  if (!context.operations) throw options_.error("the network's operations are not known; set nodes: passes");
  try {
    return operation_nodes(context.operations(batch), trace, context.device(context.workers.front()));
  } catch (const ConfigError& problem) {
    throw options_.error(std::string(problem.what()) + "; set nodes: passes");
  }
}

TrainingStep Operators::compile(const StrategyContext& context) const {
  const std::vector<std::vector<DeviceId>> ranks = teams_.on(context.workers);
  const auto replicas = static_cast<std::int64_t>(ranks.front().size());
  if (ranks.size() > kMostDevices)
    throw options_.error(
        fmt::format("at most {} devices share a replica, not {}; make replicas of fewer", kMostDevices, ranks.size()));
  const StepNodes nodes = nodes_of(context, std::max<std::int64_t>(1, context.global_batch / replicas));
  PlacementMachine machine = links_;
  machine.devices = static_cast<int>(ranks.size());
  machine.memory = memory_of(context).value;
  const PlacementStage placed = method_ == nullptr ? place_best(nodes.graph, machine, pardnn_)
                                                   : place_by(*method_, nodes.graph, machine, pardnn_).back();
  const Placement& placement = placed.placement;

  TrainingStep step;
  step.composition = text_of({.mesh = teams_.axes(static_cast<std::int64_t>(context.workers.size())),
                              .bodies = {"operators"},
                              .synchronisation = replicas > 1 ? "all_reduce" : "none"});
  step.graph = placed_step(
      nodes.graph, placement, ranks,
      {.names = nodes.names, .times = nodes.times, .phases = nodes.phases, .collective = context.collective});
  const ReplayResult result = replay(nodes.graph, machine, placement, pardnn_.replay);
  const std::vector<MemoryUse> uses = memory_uses(nodes, placement, result, machine.devices);
  for (std::size_t d = 0; d < uses.size(); ++d)
    if (uses[d].total().value > 0) step.memory.push_back({fmt::format("device {}", d), ranks[d], uses[d]});
  return step;
}

}  // namespace epocast
