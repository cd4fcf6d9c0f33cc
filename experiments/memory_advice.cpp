#include "experiments/memory_advice.hpp"
#include "sim/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace epocast {
namespace {

/// The device that lacks most.
struct Shortage {
  const DeviceMemory* memory = nullptr;
  DeviceId device = 0;
  Bytes excess;
  int others = 0;  ///< holders that lack less
};

Shortage find_shortage(const TrainingStep& step, const Cluster& cluster) {
  Shortage worst;
  int short_of = 0;
  for (const DeviceMemory& memory : step.memory) {
    bool lacks = false;
    for (const DeviceId device : memory.devices) {
      const Bytes excess = memory.use.total() - cluster.devices[static_cast<std::size_t>(device)].memory;
      lacks |= excess.value > 0;
      if (excess > worst.excess) worst = {&memory, device, excess, 0};
    }
    short_of += lacks ? 1 : 0;
  }
  worst.others = short_of - 1;
  return worst;
}

/// Whether a phase would fit with another batch or other settings; a strategy may not be able to do it at all.
bool fits(const ScenarioSetup& setup, const PhaseSettings& phase, const MemorySettings& memory) {
  try {
    TrainingStep step = setup.compile(setup.context(phase, memory));
    memory.apply(step, setup.cluster);
    return find_shortage(step, setup.cluster).memory == nullptr;
  } catch (const std::runtime_error&) {
    return false;
  }
}

/// By bisection: memory grows with the batch.
std::int64_t largest_batch(const ScenarioSetup& setup, PhaseSettings phase, const MemorySettings& memory) {
  const auto workers = static_cast<std::int64_t>(phase.workers.size());
  std::int64_t good = 0, bad = phase.global_batch / workers;
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    phase.global_batch = middle * workers;
    (fits(setup, phase, memory) ? good : bad) = middle;
  }
  return good;
}

constexpr std::size_t kMostRemedies = 4;
constexpr const char* kUntried =
    "what would fit was not looked for, in a sweep or of so large a step; try memory.recompute, memory.offload, "
    "sharded "
    "synchronisation, a smaller batch or more stages, or let `epocast plan --fits` choose";

/// "batch.per_worker: 24 would fit; with this batch use one of memory.recompute: full (1.2 s an iteration), ..".
std::string advice(const ScenarioSetup& setup, const PhaseSettings& phase, const std::vector<Remedy>& remedies) {
  const std::int64_t batch = largest_batch(setup, phase, setup.memory);
  std::string smaller = batch > 0 ? fmt::format("batch.per_worker: {} would fit", batch) : "";
  if (remedies.empty()) {
    if (batch > 0) return smaller;
    MemorySettings recompute = setup.memory;
    recompute.recompute = {Recompute::Segments::sqrt};
    recompute.of_layers = LayerRecompute::none;
    const std::int64_t fewer = largest_batch(setup, phase, recompute);
    if (fewer > 0) return fmt::format("memory.recompute: sqrt with batch.per_worker: {} would fit", fewer);
    return "no smaller batch would fit; use devices with more memory or a strategy that divides the network";
  }
  std::string out = smaller + (batch > 0 ? "; with this batch use " : "use ");
  if (remedies.size() > 1) out += "one of ";
  for (std::size_t r = 0; r < std::min(remedies.size(), kMostRemedies); ++r)
    out += fmt::format("{}{} ({} an iteration)", r > 0 ? ", " : "", remedies[r].text,
                       to_string(Seconds(remedies[r].iteration_s)));
  return out;
}

}  // namespace

std::string host_memory_advice(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs) {
  const Bytes capacity = setup.memory.offload.capacity;
  if (!(capacity.value > 0)) return "";
  std::pair<Bytes, std::string> most;
  for (const PhaseRun& run : runs) {
    std::map<std::string, Bytes> by_node;
    for (const DeviceMemory& memory : run.step.memory)
      for (const DeviceId device : memory.devices)
        by_node[setup.cluster.devices[static_cast<std::size_t>(device)].node] += memory.use.on_host;
    for (const auto& [node, bytes] : by_node) most = std::max(most, {bytes, node});
  }
  if (most.first <= capacity) return "";
  return fmt::format(
      "the devices of {} offload {} to its memory, {} more than memory.offload.capacity; offload less, or use "
      "more nodes",
      most.second, to_string(most.first), to_string(most.first - capacity));
}

Bytes memory_excess(const TrainingStep& step, const Cluster& cluster) { return find_shortage(step, cluster).excess; }

std::vector<StudyChange> memory_changes(const ConfigNode& study) {
  std::vector<StudyChange> out;
  const auto add = [&](const std::string& key, const std::string& value, std::vector<std::size_t> milder = {}) {
    out.push_back({key + ": " + value, {{key, ConfigNode::load_text(value, study.where().file)}}, std::move(milder)});
    return out.size() - 1;
  };
  const bool recomputes =
      study.has("memory") && study.at("memory").is_map() && study.at("memory").get("recompute", "none") != "none";
  if (!recomputes) {
    const std::size_t selective = add("memory.recompute", "selective");
    for (const char* more : {"full", "sqrt"}) add("memory.recompute", more, {selective});
  }
  if (!study.has("memory") || !study.at("memory").is_map() || !study.at("memory").has("offload")) {
    const std::size_t optimizer = add("memory.offload", "optimizer");
    const std::size_t activations = add("memory.offload", "activations");
    add("memory.offload", "[optimizer, activations]", {optimizer, activations});
  }
  if (!study.has("strategy") || !study.at("strategy").is_map() || !study.at("strategy").has("mesh")) return out;
  const ConfigNode strategy = study.at("strategy");
  const ConfigNode mesh = strategy.at("mesh");
  const auto extent = [&](const char* axis) {
    return mesh.has(axis) && mesh.at(axis).is_scalar() && mesh.at(axis).as_string() != "rest"
               ? mesh.at(axis).as_int(Range{1, 1e6})
               : 1;
  };
  if (strategy.has("schedule") && strategy.at("schedule").is_map() && strategy.at("schedule").has("micro_batches"))
    add("strategy.schedule.micro_batches",
        std::to_string(2 * strategy.at("schedule").at("micro_batches").as_int(Range{1, 1e5})));
  if (extent("pipeline") > 1) {
    // Stages with as many layers as their memory takes, instead of equally many.
    const bool map = strategy.has("schedule") && strategy.at("schedule").is_map();
    const bool says = map && (strategy.at("schedule").has("split") || strategy.at("schedule").has("first_layers"));
    const std::string name = strategy.has("schedule") && !map ? strategy.at("schedule").as_string() : "1f1b";
    if (map && !says) add("strategy.schedule.split", "time");
    if (!map) add("strategy.schedule", "{name: " + name + ", split: time}");
  }
  const bool sharded = strategy.has("synchronisation") &&
                       (strategy.at("synchronisation").is_scalar()
                            ? strategy.at("synchronisation").as_string()
                            : strategy.at("synchronisation").get("name", "")) == std::string("sharded");
  if (!sharded) add("strategy.synchronisation", "{name: sharded, stage: 1}");
  if (extent("tensor") > 1) add("strategy.body", "{name: tensor, sequence_parallel: true}");
  // More devices for each replica; data takes what is left.
  for (const char* axis : {"tensor", "pipeline"}) {
    const std::string twice = std::to_string(2 * extent(axis));
    out.push_back({fmt::format("strategy.mesh.{}: {}", axis, twice),
                   {{std::string("strategy.mesh.") + axis, ConfigNode::load_text(twice, study.where().file)},
                    {"strategy.mesh.data", ConfigNode::load_text("rest", study.where().file)}}});
  }
  return out;
}

std::string memory_advice(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs,
                          const std::optional<std::vector<Remedy>>& remedies) {
  Shortage worst;
  std::size_t phase = 0;
  for (std::size_t p = 0; p < runs.size(); ++p)
    if (const Shortage found = find_shortage(runs[p].step, setup.cluster); found.excess > worst.excess) {
      worst = found;
      phase = p;
    }
  if (worst.memory == nullptr) return "";
  const Bytes need = worst.memory->use.total();
  return fmt::format("{} needs {} of memory, {} more than {} has{}; {}", worst.memory->holder, to_string(need),
                     to_string(worst.excess), setup.cluster.devices[static_cast<std::size_t>(worst.device)].name,
                     worst.others > 0 ? fmt::format(" ({} {} less)", counted(worst.others, "other"),
                                                    worst.others == 1 ? "lacks" : "lack")
                                      : "",
                     remedies ? advice(setup, setup.phases[phase], *remedies) : kUntried);
}

}  // namespace epocast
