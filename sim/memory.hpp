#pragma once
// What a device holds in its memory at the peak while it trains a network or a part of one. The way there:
// memory_timeline.hpp.

#include <string>
#include <vector>

#include "sim/workload_trace.hpp"

namespace epocast {

/// Lion: Chen et al. 2023 (arXiv 2302.06675), one moment. LAMB: You et al. 2020 (arXiv 1904.00962), Adam's moments and
/// the norms of every layer's weights and updates.
enum class Optimizer { sgd, momentum, adam, lion, lamb };

const char* to_string(Optimizer optimizer);
std::vector<std::string> optimizer_names();
/// Throws std::invalid_argument with the nearest name as a hint.
Optimizer parse_optimizer(const std::string& name);

/// Values of state per parameter that the optimizer keeps between steps: 0, 1 (velocity, Lion's moment) or 2 (two
/// moments).
int optimizer_state_values(Optimizer optimizer);

/// Bytes per parameter of the optimizer's state, which is fp32, and of its fp32 copy of parameters that are not.
double optimizer_bytes_per_value(Optimizer optimizer, Precision precision);

/// Bytes of that per byte of the trace's parameters.
double optimizer_share(Optimizer optimizer, const WorkloadTrace& trace);

/// Reads and writes of one value per parameter in one update: weight and gradient read, weight written, and each state
/// value read and written. 3 for SGD, 5 with momentum and for Lion, 7 for Adam, 13 for LAMB, whose norms must be known
/// before its step is: gradients once for their norm, Adam's accesses with the update written instead of the weight,
/// the norms of weights and updates 2, the step 3 (NVIDIA Apex, csrc/multi_tensor_lamb.cu). In fp32; mixed precision
/// moves as many bytes (its gradient and weight have half of them, but there is a second weight).
int optimizer_accesses(Optimizer optimizer);

/// The same where each operation of an update is a kernel of its own, which reads and writes its tensors: 6, 11 and 20
/// for SGD, momentum and Adam with decay of weights (torch.optim, foreach, the default on GPUs, and its loops before
/// 2.0), 19 for Lion (lucidrains/lion-pytorch), 34 for LAMB (timm).
int foreach_accesses(Optimizer optimizer);

struct StageRange;

/// Memory by purpose.
struct MemoryUse {
  Bytes parameters = {};
  Bytes gradients = {};
  Bytes optimizer_state = {};
  Bytes activations = {};           ///< outputs that a later pass reads, and what backward needs from inside layers
  Bytes activation_gradients = {};  ///< between the backward passes that make and that read them
  Bytes workspace = {};             ///< scratch memory of the running kernel
  Bytes reserve = {};               ///< what framework and driver keep for themselves
  Bytes on_host = {};               ///< offloaded to the host's memory: no part of the total
  Bytes passing = {};       ///< of parameters and on_host: copies, and activations, that the next step does without
  std::string moment = {};  ///< when it is so much: "backward conv1_2"; "" if always

  /// Where the optimizer's state is counted for a device that trains like this.
  Bytes& state_of(const WorkloadTrace& trace) { return trace.state_on_host ? on_host : optimizer_state; }
  /// What training goes on with: current parameters and the optimizer's state, wherever they are.
  Bytes lasting() const { return parameters + optimizer_state + on_host - passing; }
  Bytes total() const {
    return parameters + gradients + optimizer_state + activations + activation_gradients + workspace + reserve;
  }
};

/// A peak's bytes by purpose, with the pass in which it occurs. `stage` says how much of the network a device holds.
/// Reserve is left to whoever knows the device.
MemoryUse stage_memory(const WorkloadTrace& trace, Optimizer optimizer, const StageRange& stage);

/// Peak of a worker that holds the whole network and trains it at the trace's batch size.
MemoryUse replica_memory(const WorkloadTrace& trace, Optimizer optimizer);

}  // namespace epocast
