#include "sim/step_pool.hpp"

#include <algorithm>
#include <numeric>

namespace epocast {

StepPool::StepPool(const CompiledGraph& graph, const ExecutionOptions& options)
    : limit_(options.iterations), tasks_(graph.tasks.size()) {
  if (options.shards == Shards::fixed) return;
  const std::size_t ranks = graph.tasks.front().width;
  left_ = options.iterations * static_cast<std::int64_t>(ranks);
  granted_.resize(ranks, 0);
  progress_.resize(ranks);
}

bool StepPool::may_start(Instance i, std::int64_t started) {
  if (!stealing()) return started < limit_;
  std::int64_t& granted = granted_[i.rank];
  if (started < granted) return true;
  if (left_ <= 0) return false;
  --left_;
  ++granted;
  return true;
}

bool StepPool::iteration_ended(Instance i, std::int64_t iteration) {
  Progress& progress = progress_[i.rank];
  const auto place = static_cast<std::size_t>(iteration - progress.first);
  if (place >= progress.ended.size()) progress.ended.resize(place + 1, 0);
  if (++progress.ended[place] < tasks_) return false;
  progress.ended.pop_front();  // each task ends its iterations in order
  ++progress.first;
  if (++steps_ < static_cast<std::int64_t>(progress_.size())) return false;
  steps_ = 0;
  ++rounds_;
  return true;
}

double StepPool::iterations() const {
  if (!stealing()) return static_cast<double>(limit_);
  const std::int64_t granted = std::accumulate(granted_.begin(), granted_.end(), left_);
  return static_cast<double>(granted) / static_cast<double>(granted_.size());
}

void StepPool::stop_at(std::int64_t iterations) {
  limit_ = std::min(limit_, iterations);
  if (!stealing()) return;
  const std::int64_t granted = std::accumulate(granted_.begin(), granted_.end(), std::int64_t{0});
  const auto ranks = static_cast<std::int64_t>(granted_.size());
  left_ = std::min(left_, std::max<std::int64_t>(0, iterations * ranks - granted));
}

}  // namespace epocast
