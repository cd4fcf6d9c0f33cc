#pragma once
// What each worker has done, put together from what the parts of an execution know.

#include <optional>
#include <vector>

#include "sim/barrier_accounts.hpp"
#include "sim/compiled_graph.hpp"
#include "sim/deadlock.hpp"
#include "sim/execution.hpp"
#include "sim/obsolescence.hpp"
#include "sim/staleness.hpp"

namespace epocast {

/// Where an instance stands. What is void takes part in the token game only, and in its queue if its turn has come
/// there.
enum class Firing : std::uint8_t { none, real, void_outside_queue, void_in_queue };
struct InstanceState {
  double began = 0, ended = 0;  ///< when it last did [s]
  std::uint32_t started = 0;    ///< firings
  Firing firing = Firing::none;
};

struct WorkerSources {
  const CompiledGraph& graph;
  const std::vector<InstanceState>& states;  ///< by instance
  const VoidIterations& obsolete;
  const std::vector<std::int64_t>& dropped;  ///< by rank
  const VersionCounter& versions;
  const std::optional<BarrierAccounts>& barriers;
  const std::vector<StuckInstance>& stuck;
  double start = 0;  ///< of the phase [s]
};

/// By rank of the widest group.
std::vector<WorkerReport> report_workers(const WorkerSources& from);

}  // namespace epocast
