#include "experiments/calibrate/traced_kernels.hpp"

#include <algorithm>
#include <initializer_list>
#include <tuple>

namespace epocast {
namespace {

/// The operator within which a launch lies on its thread; of several the one that started last. Null if there is none.
TracedCall* innermost(const std::vector<TracedCall*>& operators, const TracedCall& launch) {
  const auto after =
      std::upper_bound(operators.begin(), operators.end(), &launch, [](const TracedCall* a, const TracedCall* b) {
        return std::tie(a->thread, a->start) < std::tie(b->thread, b->start);
      });
  for (auto at = after; at != operators.begin();) {
    --at;
    if ((*at)->thread != launch.thread) return nullptr;
    if ((*at)->end() >= launch.end()) return *at;
  }
  return nullptr;
}

}  // namespace

TraceEvent trace_event(const std::string& category) {
  const auto is_one_of = [&](std::initializer_list<const char*> names) {
    return std::ranges::find(names, category) != names.end();
  };
  if (is_one_of({"cpu_op", "Operator"})) return TraceEvent::operation;
  if (is_one_of({"cuda_runtime", "cuda_driver", "Runtime"})) return TraceEvent::launch;
  if (is_one_of({"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset"})) return TraceEvent::kernel;
  return TraceEvent::other;
}

bool comes_before(const TracedCall& a, const TracedCall& b) {
  return std::tie(a.thread, a.start, b.duration) < std::tie(b.thread, b.start, a.duration);
}

void TracedKernels::add_launch(std::int64_t correlation, TracedCall call) {
  if (correlation >= 0) launches_[correlation] = std::move(call);
}

void TracedKernels::add_kernel(std::int64_t id, std::int64_t correlation, double duration) {
  kernels_.push_back({id, correlation, duration});
}

double TracedKernels::assign(const std::vector<TracedCall*>& operators) const {
  std::map<std::int64_t, TracedCall*> by_id;  // the innermost of an id: the last to start
  for (TracedCall* op : operators)
    if (op->id > 0) by_id[op->id] = op;
  const auto named = [&](std::int64_t id) {
    const auto found = by_id.find(id);
    return found == by_id.end() ? nullptr : found->second;
  };
  double unclaimed = 0;
  for (const Kernel& kernel : kernels_) {
    TracedCall* owner = named(kernel.id);
    const auto launch = launches_.find(kernel.correlation);
    if (owner == nullptr && launch != launches_.end()) owner = named(launch->second.id);
    if (owner == nullptr && launch != launches_.end()) owner = innermost(operators, launch->second);
    (owner == nullptr ? unclaimed : owner->launched) += kernel.duration;
  }
  return unclaimed;
}

}  // namespace epocast
