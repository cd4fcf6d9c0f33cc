#pragma once
// What the host needs to start kernels, and how long passes take because of that.
//
// The host starts kernels one after the other and goes on while the device works on those before. The device waits
// where it is faster than the host; the host does not wait. So over a forward pass, and over a backward pass, the
// longer of both times counts, and not, layer by layer, the sum of what is longer:
//
//     host(l) = host(l - 1) + kernels(l) launch
//     device(l) = max(device(l - 1) + time(l), host(l) + time(l) / kernels(l))
//
// Each pass begins with host and device in step: Megatron-LM's timers, and its messages between stages, wait for the
// device (megatron/timers.py, megatron/p2p_communication.py). Within the backward pass each segment's second forward
// pass comes before its gradients (sim/recompute.hpp). The framework's language runs forward passes, at `launch` for
// each kernel, its engine of automatic differentiation runs backward passes, at 0.3 of that (assumed). Beside the
// network's kernels, ten prepare each micro-batch (tokens, masks, positions), and ten work out its loss (assumed).
//
// Scope and limits: the kernels whose times the cost model gives (costmodels/layer_kernels.hpp); all of a pass take
// equally long to start. The device's queue has no end (CUDA's holds about a thousand kernels). Exchanges between
// devices count by their own time. The two assumptions were chosen with the runs of
// experiments/reproduce/measured_runs/a100_gpt.csv in view.
// Validation: tests/unit/host_launches_test.cpp (kernel by kernel), tests/published/transformer_steps_test.cpp.

#include <cstdint>
#include <optional>

#include "sim/cost_model.hpp"

namespace epocast {

/// What a study says of the host's launches of kernels.
struct LaunchSettings {
  bool count = false;           ///< `fitted` knows kernels
  std::optional<Seconds> each;  ///< of a kernel of a forward pass; none: as the software stack says
  /// The smallest batch of step_time, which contains launches: they count for smaller ones only, and no more than that
  /// makes a smaller batch as long as this one.
  std::optional<std::int64_t> below;
};

class HostLaunches {
 public:
  static constexpr double kBackwardShare = 0.3;
  static constexpr double kKernelsOfBatch = 10;
  static constexpr double kKernelsOfLoss = 10;

  /// `launch`: s for each kernel of a forward pass; 0: the host is never in the way.
  explicit HostLaunches(Seconds launch = Seconds(0)) : launch_(launch) {}

  /// Lengthens the passes of a trace of `model` on one device, whose times are the device's by this cost model, to what
  /// they take. Segments and their second forward passes are set already. REQUIRES: the trace has the model's layers.
  void apply(WorkloadTrace& trace, const Model& model, const CostModel& cost) const;

  /// The same, so that all takes no longer than `longest`, whose passes contain launches and whose updates are equal.
  void apply_within(WorkloadTrace& trace, const WorkloadTrace& longest, const Model& model,
                    const CostModel& cost) const;

 private:
  Seconds launch_;
};

}  // namespace epocast
