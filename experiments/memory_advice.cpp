#include "experiments/memory_advice.hpp"
#include "sim/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

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

std::string remedies(const ScenarioSetup& setup, const PhaseSettings& phase) {
  MemorySettings recompute = setup.memory;
  recompute.recompute = {Recompute::Segments::sqrt};
  const bool keeps_all = setup.memory.recompute.segments == Recompute::Segments::none;
  const std::int64_t batch = largest_batch(setup, phase, setup.memory);
  const bool enough = keeps_all && fits(setup, phase, recompute);
  if (batch > 0 && enough)
    return fmt::format("batch.per_worker: {} would fit, or memory.recompute: sqrt with this batch", batch);
  if (batch > 0) return fmt::format("batch.per_worker: {} would fit", batch);
  if (enough) return "memory.recompute: sqrt would fit";
  if (keeps_all)
    if (const std::int64_t smaller = largest_batch(setup, phase, recompute); smaller > 0)
      return fmt::format("memory.recompute: sqrt with batch.per_worker: {} would fit", smaller);
  return "no smaller batch would fit; use devices with more memory or a strategy that divides the network";
}

}  // namespace

Bytes memory_excess(const TrainingStep& step, const Cluster& cluster) { return find_shortage(step, cluster).excess; }

std::string memory_advice(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs) {
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
                     remedies(setup, setup.phases[phase]));
}

}  // namespace epocast
