#include "experiments/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "experiments/collective_report.hpp"
#include "experiments/rounding_noise.hpp"
#include "experiments/time_scale.hpp"
#include "sim/quantity.hpp"

namespace epocast {
namespace {

/// Consecutive tasks of a cycle that do the same to different layers.
struct Stretch {
  std::string operation;
  std::string first, last;  ///< layers
  int from = -1, to = -1;   ///< micro-batches, if any
  int tasks = 0;
  double seconds = 0;
  int lag = 0;  ///< of the edge that leaves it
};

/// Layers of a task that covers several ("fc8..fc7") run from the first of its first to the last of its last.
std::string first_layer(const std::string& layers) { return layers.substr(0, layers.find("..")); }
std::string last_layer(const std::string& layers) {
  const std::size_t dots = layers.rfind("..");
  return dots == std::string::npos ? layers : layers.substr(dots + 2);
}

std::string text(const Stretch& s) {
  std::string out = s.operation;
  if (s.first != s.last)
    out += " " + first_layer(s.first) + ".." + last_layer(s.last);
  else if (!s.first.empty())
    out += " " + s.first;
  if (s.from >= 0) out += fmt::format(" #{}", s.from);
  if (s.to != s.from) out += fmt::format("..#{}", s.to);
  return out;
}

constexpr std::size_t kMostStretches = 6;  // that a line holds

bool joins(const std::string& operations, const std::string& operation) {
  return operations == operation || operations.starts_with(operation + " and ") ||
         operations.ends_with(" and " + operation);
}

void append(Stretch& to, const Stretch& next) {
  to.last = next.last;
  to.to = next.to;
  to.tasks += next.tasks;
  to.seconds += next.seconds;
  to.lag = next.lag;
}

/// Where a cycle goes back and forth between two operations, as when each layer's update precedes its forward pass,
/// takes them as one: "update and forward".
std::vector<Stretch> condensed(const std::vector<Stretch>& cycle) {
  if (cycle.size() <= kMostStretches) return cycle;
  std::vector<Stretch> out;
  for (std::size_t k = 0; k < cycle.size(); ++k) {
    const Stretch& s = cycle[k];
    if (!out.empty() && out.back().lag == 0) {
      if (joins(out.back().operation, s.operation)) {
        append(out.back(), s);
        continue;
      }
      if (s.lag == 0 && k + 1 < cycle.size() && cycle[k + 1].operation == out.back().operation) {
        out.back().operation += " and " + s.operation;
        append(out.back(), s);
        continue;
      }
    }
    out.push_back(s);
  }
  return out;
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
      out.push_back({label.operation, label.layer, label.layer, label.micro_batch, label.micro_batch, 0, 0, 0});
    Stretch& s = out.back();
    s.last = label.layer;
    s.to = label.micro_batch;
    ++s.tasks;
    s.seconds += bound.durations[k];
    s.lag = bound.lags[k];
  }
  return out;
}

std::string lag_text(int lag) {
  if (lag == 0) return "";
  if (lag < 0) return lag == -1 ? " of the iteration before" : fmt::format(" of the iteration {} before", -lag);
  return lag == 1 ? " of the next iteration" : fmt::format(" of the iteration {} later", lag);
}

/// Without what takes time on behalf of communication, such as copies and waiting for the end of a cycle.
double compute_seconds(const CyclicTaskGraph& graph, const CycleBound& bound) {
  double sum = 0;
  for (std::size_t k = 0; k < bound.tasks.size(); ++k) {
    const Task& task = graph.tasks()[bound.tasks[k]];
    const bool communicates = task.queue != QueueId::none && graph.queue(task.queue).role == QueueRole::communication;
    if (std::holds_alternative<Compute>(task.work) && !communicates) sum += bound.durations[k];
  }
  return sum;
}

/// The cycle on one line: its longest stretches in order, the others as "..".
std::string cycle_text(const std::vector<Stretch>& cycle) {
  std::vector<std::size_t> by_length(cycle.size());
  std::iota(by_length.begin(), by_length.end(), std::size_t{0});
  std::stable_sort(by_length.begin(), by_length.end(),
                   [&](std::size_t a, std::size_t b) { return cycle[a].seconds > cycle[b].seconds; });
  by_length.resize(std::min(by_length.size(), kMostStretches));

  std::string out;
  int lag = 0;
  bool skipped = false;
  for (std::size_t k = 0; k < cycle.size(); ++k) {
    if (std::find(by_length.begin(), by_length.end(), k) != by_length.end()) {
      if (!out.empty()) out += skipped ? " -> .. -> " : " -> ";
      out += text(cycle[k]) + lag_text(lag);
      lag = 0;
      skipped = false;
    } else {
      skipped = true;
    }
    lag += cycle[k].lag;
  }
  return out + (skipped ? " -> .." : "") + " -> " + text(cycle.front()) + lag_text(lag);
}

/// Whether the busiest link, rather than any chain of dependencies, sets the pace.
bool link_bound(const ExecutionResult& result) {
  const double link = result.metrics.max_link_utilization * result.iteration;
  return result.bound ? link > result.bound->seconds : result.metrics.max_link_utilization > 0.9;
}

std::string link_text(const StepMetrics& m) {
  return fmt::format("link {}, busy {:.0f} % of the time", m.busiest_link, 100 * m.max_link_utilization);
}

}  // namespace

double lower_bound(const ExecutionResult& result) {
  return std::max(result.bound ? result.bound->seconds : 0, result.metrics.max_link_utilization * result.iteration);
}

std::string limited_by(const CyclicTaskGraph& graph, const ExecutionResult& result) {
  const StepMetrics& m = result.metrics;
  if (link_bound(result)) return link_text(m);
  if (!result.bound || result.bound->tasks.empty()) {
    if (m.exposed_communication <= m.compute) return "computation";
    return m.busiest_link.empty() ? "communication" : "communication; the busiest is " + link_text(m);
  }
  const std::vector<Stretch> cycle = condensed(stretches(graph, *result.bound));
  if (cycle.size() == 1) return text(cycle.front());
  return cycle_text(cycle);
}

std::string explain(const CyclicTaskGraph& graph, const ExecutionResult& result) {
  const StepMetrics& m = result.metrics;
  const TimeScale scale(std::max(result.iteration, result.bound ? result.bound->seconds : 0));
  std::string out;
  if (result.bound && !result.bound->tasks.empty()) {
    const CycleBound& bound = *result.bound;
    int lag = 0;
    for (const int l : bound.lags) lag += l;
    out += fmt::format("The longest cycle of dependencies takes {} per iteration; the run takes {}.\n",
                       scale.text(bound.seconds), scale.text(result.iteration));
    for (const Stretch& s : condensed(stretches(graph, bound)))
      out += fmt::format("  {:>10}  {}{}\n", scale.text(s.seconds), text(s),
                         s.lag > 0 ? "   (then the next iteration)" : "");
    const double computing = compute_seconds(graph, bound), cycle = bound.seconds * std::max(lag, 1);
    out += fmt::format("  computation {}, communication {}{}\n", scale.text(computing),
                       scale.text(without_rounding_noise(cycle - computing, cycle)),
                       lag > 1 ? fmt::format(", over {} iterations", lag) : "");
    if (const double gap = result.iteration - bound.seconds; gap > 1e-6 * result.iteration)
      out += fmt::format("Sharing links, queues and devices costs the other {} ({:.1f} %).\n", scale.text(gap),
                         100 * gap / result.iteration);
    if (link_bound(result))
      out +=
          fmt::format("What it must carry keeps the busiest link busy for {} per iteration, longer than that cycle.\n",
                      scale.text(m.max_link_utilization * result.iteration));
  }
  out += fmt::format("Per iteration a worker computes {}, communicates {}, of which {} exposed.\n",
                     scale.text(m.compute), scale.text(m.communication),
                     scale.text(without_rounding_noise(m.exposed_communication, result.iteration)));
  if (m.compute > 0)
    out += fmt::format("Perfect overlap, and no waiting for others, would give {}.\n",
                       scale.text(std::max(m.compute, m.communication)));
  if (!m.busiest_link.empty())
    out += fmt::format("The busiest link is {}, used {:.1f} % of the time.\n", m.busiest_link,
                       100 * m.max_link_utilization);
  for (const AlgorithmUse& use : algorithm_uses(graph, result))
    out += fmt::format("{} {} of {} by {}.\n", use.count, to_string(use.op),
                       use.smallest == use.largest
                           ? to_string(use.largest)
                           : fmt::format("{} to {}", to_string(use.smallest), to_string(use.largest)),
                       use.name());
  return out;
}

}  // namespace epocast
