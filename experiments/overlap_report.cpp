#include "experiments/overlap_report.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace epocast {
namespace {

constexpr double kRounding = 1e-9;  // of the later date: two events at one date

bool is_communication(const Task& task) { return !std::holds_alternative<Compute>(task.work); }

bool is_compute(const CyclicTaskGraph& graph, const Task& task) {
  return !is_communication(task) && task.queue != QueueId::none && graph.queue(task.queue).role == QueueRole::compute;
}

/// The device whose work counts: the first that computes.
std::optional<DeviceId> first_worker(const CyclicTaskGraph& graph) {
  for (const Queue& queue : graph.queues())
    if (queue.role == QueueRole::compute) return graph.group(queue.group).devices.front();
  return std::nullopt;
}

/// The device's rank in each task; -1 where it has no part.
std::vector<std::int64_t> ranks_of(const CyclicTaskGraph& graph, DeviceId device) {
  std::vector<std::int64_t> ranks;
  for (const Task& task : graph.tasks()) {
    const auto& devices = graph.group(task.ranks).devices;
    const auto found = std::ranges::find(devices, device);
    const bool collective = std::holds_alternative<Collective>(task.work);  // has a single instance, of rank 0
    ranks.push_back(found == devices.end() ? -1 : collective ? 0 : found - devices.begin());
  }
  return ranks;
}

class Measurement {
 public:
  Measurement(const CyclicTaskGraph& graph, const ExecutionResult& result, DeviceId device)
      : graph_(graph), before_(graph.tasks().size()) {
    const std::vector<std::int64_t> ranks = ranks_of(graph, device);
    for (const Edge& edge : graph.edges())
      before_[CyclicTaskGraph::index(edge.after)].emplace_back(static_cast<std::uint32_t>(edge.before), edge.lag);
    for (const Interval& i : result.timeline.intervals) {
      if (ranks[i.task] != static_cast<std::int64_t>(i.rank)) continue;
      at_.emplace(std::pair(i.task, i.iteration), &i);
      if (is_compute(graph, graph.tasks()[i.task])) computed_.push_back(&i);
    }
    std::ranges::stable_sort(computed_, {}, [](const Interval* i) { return std::tuple(i->start, i->end); });
    // Computations of the last iterations have waited for what those before sent; what the last one itself sends may go
    // faster than usual, since no other follows.
    const std::int64_t iterations = result.iterations_simulated;
    const std::int64_t length = result.period ? result.period->length : (iterations + 1) / 2;
    waits_ = {std::max<std::int64_t>(0, iterations - length), iterations};
    works_ = {std::max<std::int64_t>(0, iterations - 1 - length), std::max<std::int64_t>(1, iterations - 1)};
  }

  OverlapReport report() const {
    OverlapReport out;
    std::map<std::uint32_t, std::size_t> index;
    for (std::uint32_t t = 0; t < graph_.tasks().size(); ++t) {
      const Task& task = graph_.tasks()[t];
      const double time = mean_time(t);
      if (is_communication(task)) {
        if (!at_.contains({t, works_.first})) continue;
        index[t] = out.communications.size();
        out.communications.push_back({task.label.operation, task.label.layer, time, 0});
      } else if (is_compute(graph_, task) && time > 0) {
        const auto known =
            std::ranges::find(out.compute, task.label.operation.text(), [](const auto& c) { return c.first; });
        if (known != out.compute.end())
          known->second += time;
        else
          out.compute.emplace_back(task.label.operation, time);
      }
    }
    for (std::size_t i = 1; i < computed_.size(); ++i) {
      const Interval& next = *computed_[i];
      const double gap = next.start - computed_[i - 1]->end;
      if (next.iteration < waits_.first || next.iteration >= waits_.end || gap <= kRounding * next.start) continue;
      const auto waited = index.find(awaited(next));
      (waited == index.end() ? out.waiting : out.communications[waited->second].blocked) += gap / waits_.length();
    }
    return out;
  }

 private:
  double mean_time(std::uint32_t task) const {
    double sum = 0;
    for (std::int64_t i = works_.first; i < works_.end; ++i)
      if (const auto found = at_.find({task, i}); found != at_.end()) sum += found->second->end - found->second->start;
    return sum / works_.length();
  }

  /// The task whose end let this computation start.
  std::uint32_t awaited(const Interval& computation) const {
    std::uint32_t last = computation.task;
    double latest = -1;
    for (const auto& [before, lag] : before_[computation.task]) {
      const auto found = at_.find({before, computation.iteration - lag});
      if (found == at_.end() || found->second->end <= latest) continue;
      latest = found->second->end;
      last = before;
    }
    const bool let_start = latest >= computation.start * (1 - kRounding);
    return let_start ? last : computation.task;
  }

  const CyclicTaskGraph& graph_;
  std::vector<std::vector<std::pair<std::uint32_t, int>>> before_;  ///< by task: predecessor and lag
  std::map<std::pair<std::uint32_t, std::int64_t>, const Interval*> at_;
  std::vector<const Interval*> computed_;
  struct Window {
    std::int64_t first = 0, end = 1;  ///< iterations
    double length() const { return static_cast<double>(end - first); }
  };
  Window waits_, works_;
};

}  // namespace

double OverlapReport::communication() const {
  double sum = 0;
  for (const CommunicationTime& c : communications) sum += c.time;
  return sum;
}

double OverlapReport::blocked() const {
  double sum = 0;
  for (const CommunicationTime& c : communications) sum += c.blocked;
  return sum;
}

std::optional<double> OverlapReport::ratio() const {
  const double all = communication();
  if (!(all > 0)) return std::nullopt;
  return 1 - blocked() / all;
}

std::optional<OverlapReport> measure_overlap(const CyclicTaskGraph& graph, const ExecutionResult& result) {
  const std::optional<DeviceId> device = first_worker(graph);
  if (!device || result.timeline.intervals.empty() || result.timeline.truncated) return std::nullopt;
  return Measurement(graph, result, *device).report();
}

}  // namespace epocast
