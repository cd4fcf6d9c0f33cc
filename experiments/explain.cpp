#include "experiments/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "sim/quantity.hpp"

namespace epocast {
namespace {

/// Consecutive tasks of a cycle that do the same to different layers.
struct Stretch {
  std::string operation;
  std::string first, last;  ///< layers
  int tasks = 0;
  double seconds = 0;
  int lag = 0;  ///< of the edge that leaves it
};

std::string text(const Stretch& s) {
  if (s.tasks == 1 || s.first == s.last) return s.first.empty() ? s.operation : s.operation + " " + s.first;
  return s.operation + " " + s.first + ".." + s.last;
}

/// The cycle from the task that follows its longest-reaching edge, i.e. from the start of an iteration.
std::vector<Stretch> stretches(const CyclicTaskGraph& graph, const CycleBound& bound) {
  const std::size_t n = bound.tasks.size();
  std::size_t start = 0;
  for (std::size_t k = 0; k < n; ++k)
    if (bound.lags[k] > 0) start = (k + 1) % n;
  std::vector<Stretch> out;
  for (std::size_t j = 0; j < n; ++j) {
    const std::size_t k = (start + j) % n;
    const Label& label = graph.tasks()[bound.tasks[k]].label;
    if (out.empty() || out.back().operation != label.operation || out.back().lag != 0)
      out.push_back({label.operation, label.layer, label.layer, 0, 0, 0});
    Stretch& s = out.back();
    s.last = label.layer;
    ++s.tasks;
    s.seconds += bound.durations[k];
    s.lag = bound.lags[k];
  }
  return out;
}

std::string lag_text(int lag) {
  if (lag == 0) return "";
  return lag == 1 ? " of the next iteration" : fmt::format(" of the iteration {} later", lag);
}

double compute_seconds(const CyclicTaskGraph& graph, const CycleBound& bound) {
  double sum = 0;
  for (std::size_t k = 0; k < bound.tasks.size(); ++k)
    if (std::holds_alternative<Compute>(graph.tasks()[bound.tasks[k]].work)) sum += bound.durations[k];
  return sum;
}

}  // namespace

std::string limited_by(const CyclicTaskGraph& graph, const ExecutionResult& result) {
  if (!result.bound || result.bound->tasks.empty()) {
    const StepMetrics& m = result.metrics;
    return m.exposed_communication > m.compute ? "communication" : "computation";
  }
  const std::vector<Stretch> cycle = stretches(graph, *result.bound);
  if (cycle.size() == 1) return fmt::format("{} ({:.0f} % of the time)", text(cycle.front()), 100 * result.bound->seconds / result.iteration);

  constexpr std::size_t kMost = 6;  // keep the line readable: the longest stretches, in order
  std::vector<double> seconds;
  for (const Stretch& s : cycle) seconds.push_back(s.seconds);
  std::sort(seconds.rbegin(), seconds.rend());
  const double least = seconds.size() > kMost ? seconds[kMost - 1] : -1;
  std::string out;
  int lag = 0;
  bool skipped = false;
  for (const Stretch& s : cycle) {
    if (s.seconds >= least) {
      if (!out.empty()) out += skipped ? " -> .. -> " : " -> ";
      out += text(s) + lag_text(lag);
      lag = 0;
      skipped = false;
    } else {
      skipped = true;
    }
    lag += s.lag;
  }
  return out + " -> " + text(cycle.front()) + lag_text(lag);
}

std::string explain(const CyclicTaskGraph& graph, const ExecutionResult& result) {
  const StepMetrics& m = result.metrics;
  std::string out;
  if (result.bound && !result.bound->tasks.empty()) {
    const CycleBound& bound = *result.bound;
    int lag = 0;
    for (const int l : bound.lags) lag += l;
    out += fmt::format("The longest cycle of dependencies takes {} per iteration; the run takes {}.\n", to_string(Seconds(bound.seconds)),
                       to_string(Seconds(result.iteration)));
    for (const Stretch& s : stretches(graph, bound))
      out += fmt::format("  {:>10}  {}{}\n", to_string(Seconds(s.seconds)), text(s), s.lag > 0 ? "   (then the next iteration)" : "");
    const double computing = compute_seconds(graph, bound);
    out += fmt::format("  computation {}, communication {}{}\n", to_string(Seconds(computing)),
                       to_string(Seconds(bound.seconds * std::max(lag, 1) - computing)),
                       lag > 1 ? fmt::format(", over {} iterations", lag) : "");
    const double gap = result.iteration - bound.seconds;
    if (gap > 1e-6 * result.iteration)
      out += fmt::format("Sharing links and queues costs the other {} ({:.1f} %).\n", to_string(Seconds(gap)), 100 * gap / result.iteration);
  }
  out += fmt::format("Per iteration a worker computes {}, communicates {}, of which {} exposed.\n", to_string(Seconds(m.compute)),
                     to_string(Seconds(m.communication)), to_string(Seconds(m.exposed_communication)));
  if (m.compute > 0)
    out += fmt::format("Perfect overlap would give {}.\n", to_string(Seconds(std::max(m.compute, m.communication))));
  if (!m.busiest_link.empty())
    out += fmt::format("The busiest link is {}, used {:.1f} % of the time.\n", m.busiest_link, 100 * m.max_link_utilization);
  return out;
}

}  // namespace epocast
