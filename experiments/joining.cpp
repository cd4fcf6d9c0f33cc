#include "experiments/joining.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/executor.hpp"

namespace epocast {
namespace {

constexpr double kLeast = 0.5;  // bytes: less is rounding

/// B by layer; all under one number where layers are not known.
using Holding = std::map<std::size_t, double>;
constexpr std::size_t kAllLayers = ~std::size_t{0};

/// What each device holds that training goes on with. `needed`: without what its steps begin with reading.
std::map<DeviceId, Holding> holdings(const TrainingStep& step, bool needed) {
  std::map<DeviceId, Holding> out;
  for (const DeviceMemory& memory : step.memory)
    for (const DeviceId device : memory.devices) {
      Holding& own = out[device];
      if (memory.layers.empty()) own[kAllLayers] += memory.use.lasting().value;
      for (const auto& [layer, held] : memory.layers) own[layer] += held.lasting.value - (needed ? held.read.value : 0);
    }
  return out;
}

double held(const Holding& holding, std::size_t layer) {
  const auto found = holding.find(layer);
  return found == holding.end() ? 0 : found->second;
}

/// The devices that lack something, by what that is.
std::map<Holding, std::vector<DeviceId>> joiners(const std::map<DeviceId, Holding>& had, const TrainingStep& step) {
  std::map<Holding, std::vector<DeviceId>> out;
  for (const auto& [device, needed] : holdings(step, true)) {
    const auto before = had.find(device);
    Holding missing;
    for (const auto& [layer, bytes] : needed) {
      const double lacks = bytes - (before == had.end() ? 0 : held(before->second, layer));
      if (lacks >= kLeast) missing[layer] = lacks;
    }
    if (!missing.empty()) out[missing].push_back(device);
  }
  return out;
}

/// Of what is missing, what a source has at least as much of.
Holding part_from(const Holding& source, const Holding& missing) {
  Holding out;
  for (const auto& [layer, bytes] : missing)
    if (held(source, layer) > bytes - kLeast) out.emplace(layer, bytes);
  return out;
}

/// Who has just what is missing of its layers, and is none of those that lack it.
std::optional<DeviceId> whole_copy(const std::map<DeviceId, Holding>& had, const Holding& missing,
                                   const std::vector<DeviceId>& lacking) {
  for (const auto& [device, holding] : had) {
    if (std::ranges::find(lacking, device) != lacking.end()) continue;
    const bool same = std::ranges::all_of(missing, [&, &own = holding](const auto& layer) {
      return std::abs(held(own, layer.first) - layer.second) < kLeast;
    });
    if (same) return device;
  }
  return std::nullopt;
}

/// What copies the parameters to those that join: what the study names. But a sender and they need not be equally many
/// on each node, as hierarchical wants: then the fastest that they can run.
CollectiveAlgorithm algorithm_for_copies(CollectiveAlgorithm named) {
  if (!supports(named, CollectiveOp::broadcast)) return default_algorithm(CollectiveOp::broadcast);
  return named == CollectiveAlgorithm::hierarchical ? CollectiveAlgorithm::automatic : named;
}

/// The messages in which devices are sent what they lack.
class JoiningMessages {
 public:
  JoiningMessages(const std::map<DeviceId, Holding>& had, const CollectiveSettings& collective)
      : had_(had), collective_(collective) {
    for (const auto& [device, holding] : had) sources_.push_back(device);
  }

  /// All get the same of one that has it.
  void copy(DeviceId source, const std::vector<DeviceId>& devices, const Holding& missing) {
    std::vector<DeviceId> ranks{source};
    ranks.insert(ranks.end(), devices.begin(), devices.end());
    const GroupId group = graph.add_group("joining", ranks);
    graph.collective(graph.add_queue("communication", group, QueueRole::communication, Discipline::fifo),
                     {CollectiveOp::broadcast, algorithm_for_copies(collective_.algorithm), collective_.level, group,
                      Bytes(sum(missing)), 0},
                     {"join", "parameters"});
  }

  /// From the sources in turn, as few as there can be. Where none has so much of a layer, shares have grown: then each
  /// that has some of it will do.
  void send(DeviceId device, Holding missing) {
    while (!missing.empty()) {
      std::optional<DeviceId> best;
      Holding most;
      for (std::size_t k = 0; k < sources_.size() && most.size() < missing.size(); ++k) {
        const DeviceId source = sources_[(next_ + k) % sources_.size()];
        Holding part = source == device ? Holding() : part_from(had_.at(source), missing);
        if (part.size() > most.size()) best = source, most = std::move(part);
      }
      if (!best) {
        best = any_source(device, missing.begin()->first);
        if (!best) return;  // alone, it has all there is
        most = missing;
      }
      send(*best, device, sum(most));
      for (const auto& [layer, bytes] : most) missing.erase(layer);
      ++next_;
    }
  }

  CyclicTaskGraph graph;

 private:
  static double sum(const Holding& holding) {
    double bytes = 0;
    for (const auto& layer : holding) bytes += layer.second;
    return bytes;
  }

  std::optional<DeviceId> any_source(DeviceId device, std::size_t layer) const {
    for (std::size_t k = 0; k < sources_.size(); ++k) {
      const DeviceId source = sources_[(next_ + k) % sources_.size()];
      if (source != device && held(had_.at(source), layer) > 0) return source;
    }
    return std::nullopt;
  }

  void send(DeviceId source, DeviceId device, double bytes) {
    const GroupId from = graph.add_group("sender", {source}), to = graph.add_group("joining", {device});
    if (!queues_.contains(source))
      queues_[source] = graph.add_queue("sender", from, QueueRole::communication, Discipline::fifo);
    graph.transfer(from, queues_[source], {from, to, Bytes(bytes)}, {"join", "parameters"});
  }

  const std::map<DeviceId, Holding>& had_;
  CollectiveSettings collective_;
  std::vector<DeviceId> sources_;
  std::size_t next_ = 0;  ///< source
  std::map<DeviceId, QueueId> queues_;
};

}  // namespace

Joining joining_of(const ScenarioSetup& setup, SimEngine& engine, const TrainingStep& before, const TrainingStep& step,
                   const PhaseSettings& phase, const ExecutionOptions& how) {
  if (!setup.strategy->needs_model()) return {};
  const std::map<DeviceId, Holding> had = holdings(before, false);
  JoiningMessages messages(had, setup.context(phase).collective);
  for (const auto& [missing, devices] : joiners(had, step)) {
    if (const std::optional<DeviceId> source = whole_copy(had, missing, devices))
      messages.copy(*source, devices, missing);
    else
      for (const DeviceId device : devices) messages.send(device, missing);
  }
  CyclicTaskGraph& graph = messages.graph;
  if (graph.tasks().empty()) return {};
  // What was measured of the strategy's collectives need not tell of these copies: then the platform's links do.
  const bool all_known = std::ranges::all_of(setup.measured_collectives, [](const MeasuredCollectives& measured) {
    return measured.was_measured(CollectiveOp::broadcast);
  });
  if (all_known) graph.tune_collectives([&](Collective& work, const Group& group) { setup.tune(work, group); });
  ExecutionOptions once = how;
  once.iterations = 1;
  once.shards = Shards::fixed;  // no samples are read
  const ExecutionResult result = execute(graph, setup.cluster, engine, once);
  return {result.total, result.metrics.bytes};
}

}  // namespace epocast
