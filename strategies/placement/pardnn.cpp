#include "strategies/placement/pardnn.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "strategies/placement/list_placement.hpp"
#include "strategies/placement/literal_overflow.hpp"
#include "strategies/placement/refinement.hpp"

namespace epocast {
namespace {

class Watch {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(begin_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

class ParDnn {
 public:
  ParDnn(const PlacementGraph& graph, const PlacementMachine& machine, const ParDnnOptions& options)
      : graph_(graph), machine_(machine), options_(options), transfer_(transfer_times(graph, machine)) {}

  std::vector<PlacementStage> run() {
    const Levels levels = compute_levels(graph_, transfer_);
    const Clusters clusters = slice(graph_, transfer_, machine_.devices);
    Placement placement = map_clusters(graph_, transfer_, clusters, levels.top, machine_.devices);
    unite_groups(graph_, transfer_, machine_.devices, placement);
    add("mapping", placement);

    Placement swapped = placement;
    swap_clusters(graph_, transfer_, clusters, levels.top, machine_.devices, swapped);
    unite_groups(graph_, transfer_, machine_.devices, swapped);
    take("swaps", std::move(swapped));
    for (int k = 0; k < machine_.devices; ++k) {
      Placement switched = stages_.back().placement;
      if (switch_nodes(graph_, transfer_, switched) == 0 || !take("switches", std::move(switched))) break;
    }
    if (!options_.literal) {
      Placement improved = stages_.back().placement;
      if (improve_by_replay(graph_, machine_, options_.replay, options_.search_nodes, improved) > 0)
        take("search", std::move(improved));
    }
    if (machine_.memory > 0 && stages_.back().peak_bytes > machine_.memory) fit();
    return std::move(stages_);
  }

 private:
  void add(const char* name, Placement placement) {
    stages_.push_back(judge(graph_, machine_, options_.replay, name, std::move(placement)));
    stages_.back().seconds = watch_.lap();
  }

  /// Keeps a step unless it makes the replay longer; the literal rule keeps it anyway. Rounds of one name are one
  /// stage.
  bool take(const char* name, Placement placement) {
    PlacementStage next = judge(graph_, machine_, options_.replay, name, std::move(placement));
    next.seconds = watch_.lap();
    if (!options_.literal && next.makespan > stages_.back().makespan) {
      stages_.back().seconds += next.seconds;
      return false;
    }
    if (stages_.back().name == name) {
      next.seconds += stages_.back().seconds;
      stages_.back() = std::move(next);
    } else {
      stages_.push_back(std::move(next));
    }
    return true;
  }

  /// Step 2.
  void fit() {
    std::vector<PlacementStage> tries{resolved("memory", stages_.back().placement)};
    if (!options_.literal) {
      if (!tries.front().fits) {
        tries.push_back(resolved("memory, from the mapping", stages_.front().placement));
        for (const double share : {1.0, 1.02, 1.05})
          tries.push_back(resolved("memory, filled in turn", fill_in_turn(graph_, transfer_, machine_.devices, share)));
        tries.push_back(resolved("memory, round robin", round_robin(graph_, transfer_, machine_.devices)));
      }
      // An earlier step may fit as it is.
      for (const PlacementStage& stage : stages_)
        if (stage.fits) tries.push_back(resolved("memory, as before", stage.placement));
    }
    stages_.push_back(best_of(tries));
    stages_.back().seconds = watch_.lap();
  }

  PlacementStage resolved(const char* name, Placement placement) {
    const OverflowResult result = options_.literal
                                      ? resolve_overflow_as_written(graph_, machine_, options_.replay, placement)
                                      : resolve_overflow(graph_, machine_, options_.replay, placement);
    PlacementStage out = judge(graph_, machine_, options_.replay, name, std::move(placement));
    out.moved_nodes = result.moved_nodes;
    return out;
  }

  const PlacementGraph& graph_;
  const PlacementMachine& machine_;
  const ParDnnOptions& options_;
  std::vector<Ticks> transfer_;
  std::vector<PlacementStage> stages_;
  Watch watch_;
};

}  // namespace

std::vector<PlacementStage> pardnn(const PlacementGraph& graph, const PlacementMachine& machine,
                                   const ParDnnOptions& options) {
  return ParDnn(graph, machine, options).run();
}

PlacementStage judge(const PlacementGraph& graph, const PlacementMachine& machine, const ReplayOptions& options,
                     std::string name, Placement placement) {
  PlacementStage out;
  const ReplayResult result = replay(graph, machine, placement, options);
  out.name = std::move(name);
  out.makespan = result.makespan;
  for (const MemoryPeak& peak : memory_peaks(residences(graph, placement, result), machine.devices))
    out.peak_bytes = std::max(out.peak_bytes, peak.bytes);
  out.fits = machine.memory <= 0 || out.peak_bytes <= machine.memory;
  out.placement = std::move(placement);
  return out;
}

const PlacementStage& best_of(const std::vector<PlacementStage>& stages) {
  return *std::min_element(stages.begin(), stages.end(), [](const PlacementStage& a, const PlacementStage& b) {
    if (a.fits != b.fits) return a.fits;
    return a.fits ? a.makespan < b.makespan : a.peak_bytes < b.peak_bytes;
  });
}

double degree_of_parallelism(const PlacementGraph& graph) {
  const Ticks path = critical_path_length(compute_levels(graph, std::vector<Ticks>(graph.edges(), 0)));
  return path > 0 ? static_cast<double>(graph.total_time()) / static_cast<double>(path) : 1;
}

double communication_to_computation(const PlacementGraph& graph, const PlacementMachine& machine) {
  const std::vector<Ticks> transfer = transfer_times(graph, machine);
  const double all = std::accumulate(transfer.begin(), transfer.end(), 0.0);
  const auto work = static_cast<double>(graph.total_time());
  return work > 0 ? all / work : 0;
}

}  // namespace epocast
