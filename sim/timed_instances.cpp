#include "sim/timed_instances.hpp"

#include <variant>

namespace epocast {
namespace {

/// A quorum may leave out some of those before it, and who stands still may do so in a join. A lag behind a join would
/// add to those before it: between instances that take time no lag may be longer than the graph's longest.
bool takes_no_time(const CompiledGraph& graph, std::uint32_t t, const ExecutionOptions& options) {
  const Task& task = graph.task(t);
  const CompiledTask& compiled = graph.tasks[t];
  const auto* compute = std::get_if<Compute>(&task.work);
  if (compute == nullptr || compute->duration.any() || compiled.first_slot >= 0 || task.quorum > 0 ||
      !options.slow_devices.empty())
    return false;
  for (std::uint32_t k = 0; k < compiled.out_count; ++k)
    if (graph.edges[graph.out[compiled.first_out + k]].lag > 0) return false;
  return true;
}

}  // namespace

TimedInstances::TimedInstances(const CompiledGraph& graph, const ExecutionOptions& options) {
  first_.assign(graph.tasks.size(), -1);
  const auto add = [&](std::uint32_t t) {
    first_[t] = static_cast<std::int64_t>(count_);
    count_ += graph.tasks[t].width;
  };
  for (std::uint32_t t = 0; t < graph.tasks.size(); ++t)
    if (!takes_no_time(graph, t, options)) add(t);
  if (count_ > 0) return;
  for (std::uint32_t t = 0; t < graph.tasks.size(); ++t) add(t);
}

}  // namespace epocast
