#pragma once
// The study's key `memory`: what is kept, what kernels and frameworks need beside the tensors.

#include <optional>

#include "costmodels/host_offload.hpp"
#include "sim/cluster.hpp"
#include "sim/config.hpp"
#include "sim/recompute.hpp"
#include "sim/strategy.hpp"

namespace epocast {

/// What Megatron-LM forgets (Korthikanti et al. 2022, section 5): the insides of attention, or all of a transformer
/// layer but its input.
enum class LayerRecompute { none, attention, layers };

struct MemorySettings {
  Recompute recompute;
  LayerRecompute of_layers = LayerRecompute::none;  ///< instead of `recompute`
  std::optional<Bytes> workspace;  ///< of every kernel that multiplies weights; none: as LayerTrace::workspace has it
  double reserve_share = 0;        ///< of a device's memory
  Bytes reserve;                   ///< on top of that
  HostOffload offload;

  /// Puts workspace and recomputation into a worker's trace.
  void apply(WorkloadTrace& trace) const;
  /// Adds the reserve to what each device holds, by the size of its memory.
  void apply(TrainingStep& step, const Cluster& cluster) const;
};

/// Reads `{recompute: sqrt, workspace: 32 MiB, reserve_share: 0.1}`; an empty map means the defaults. Throws
/// ConfigError.
MemorySettings read_memory_settings(const ConfigNode& node);

/// Throws ConfigError at `node` if a network has no segments of the kind that the settings ask for.
void check_recompute(const MemorySettings& settings, const WorkloadTrace& trace, const ConfigNode& node);

}  // namespace epocast
