#include "sim/long_step.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sim/result_check.hpp"

namespace epocast {
namespace {

constexpr double kTolerance = 1e-11;  ///< of an iteration: as two shifts of a period may differ
constexpr double kEver = std::numeric_limits<double>::infinity();

/// The ends of tasks that differ in nothing but the micro-batch, in order, of one rank.
using Ends = std::vector<double>;
using EndsByName = std::map<std::tuple<const std::string*, const std::string*, std::uint32_t>, Ends>;

EndsByName ends_by_name(const SimulatedStep& step) {
  EndsByName out;
  std::size_t instance = 0;
  for (std::uint32_t t = 0; t < step.graph.tasks().size(); ++t) {
    const Label& label = step.graph.tasks()[t].label;
    const int width = step.result.folded ? 1 : step.graph.width_of(TaskId(t));
    for (std::uint32_t r = 0; r < static_cast<std::uint32_t>(width); ++r)
      out[{&label.operation.text(), &label.layer.text(), r}].push_back(step.result.ends[instance++]);
  }
  return out;
}

/// Dates before which, and from which on, the next longer step can be cut and a copy of the last shift be put between.
struct Cut {
  double earliest = 0, latest = kEver;

  bool exists() const { return earliest <= latest; }
};

/// So many shifts in a row have to be seen: one would be the difference of the two steps itself.
constexpr std::size_t kRepetitions = 3;

/// Narrows the cut by tasks of one name. Returns false if they do something else than the same at first and the same by
/// one shift later at last, with several shifts' worth of both in the middle.
bool narrow(const Ends& shorter, const Ends& longer, double shift, double tolerance, Cut& cut) {
  if (longer.size() < shorter.size()) return false;
  const std::size_t added = longer.size() - shorter.size();
  std::size_t same = 0, later = shorter.size();  // how many are the same, and from which on all come later
  while (same < shorter.size() && std::abs(longer[same] - shorter[same]) <= tolerance) ++same;
  while (later > 0 && std::abs(longer[later - 1 + added] - shorter[later - 1] - shift) <= tolerance) --later;
  if (later > same) return false;
  if (added == 0) {  // once in an iteration
    for (std::size_t i = 0; i < same; ++i)
      if (i < later) cut.earliest = std::max(cut.earliest, longer[i]);
    for (std::size_t i = later; i < shorter.size(); ++i)
      if (i >= same) cut.latest = std::min(cut.latest, longer[i]);
    return true;
  }
  const std::size_t seen = later + kRepetitions * added;
  if (same < seen) return false;
  cut.earliest = std::max(cut.earliest, longer[seen - 1]);
  if (same < longer.size()) cut.latest = std::min(cut.latest, longer[same]);
  return true;
}

bool repeats(const SimulatedStep& shorter, const SimulatedStep& longer) {
  const double shift = longer.result.iteration - shorter.result.iteration;
  const double tolerance = kTolerance * longer.result.iteration;
  const EndsByName of_shorter = ends_by_name(shorter), of_longer = ends_by_name(longer);
  if (shift <= tolerance || of_shorter.size() != of_longer.size()) return false;
  Cut cut;
  for (auto a = of_shorter.begin(), b = of_longer.begin(); a != of_shorter.end(); ++a, ++b)
    if (a->first != b->first || !narrow(a->second, b->second, shift, tolerance, cut)) return false;
  return cut.exists();
}

/// Whether one iteration, which starts over, is all that a result consists of.
bool tells_of_one_iteration(const ExecutionResult& result) {
  return result.period && result.iterations_simulated == 1 && result.doubts.empty() && result.servers.empty() &&
         !result.ends.empty();
}

}  // namespace

std::optional<ExecutionResult> long_step(const SimulatedStep& shorter, const SimulatedStep& longer, double times,
                                         const SimEngine& engine) {
  const ExecutionResult &a = shorter.result, &b = longer.result;
  if (!tells_of_one_iteration(a) || !tells_of_one_iteration(b) || a.folded != b.folded || !repeats(shorter, longer))
    return std::nullopt;
  const auto extend = [times](double& value, double before) { value += times * (value - before); };
  const auto extend_all = [&](std::vector<double>& values, const std::vector<double>& before) {
    for (std::size_t i = 0; i < values.size(); ++i) extend(values[i], before[i]);
  };
  ExecutionResult out = b;
  out.timeline = {};
  out.ends.clear();
  extend(out.total, a.total);
  extend(out.iteration, a.iteration);
  extend(out.period->shift, a.period->shift);
  extend(out.metrics.compute, a.metrics.compute);
  extend(out.metrics.communication, a.metrics.communication);
  extend(out.metrics.exposed_communication, a.metrics.exposed_communication);
  extend(out.metrics.bytes, a.metrics.bytes);
  extend(out.totals.makespan, a.totals.makespan);
  extend_all(out.totals.sent, a.totals.sent);
  extend_all(out.totals.received, a.totals.received);
  extend_all(out.totals.on_link, a.totals.on_link);
  for (std::size_t d = 0; d < out.totals.activity.size(); ++d) {
    const ActivityTimes more = out.totals.activity[d] - a.totals.activity[d];
    ActivityTimes& all = out.totals.activity[d];
    all.idle += times * more.idle;
    all.compute_only += times * more.compute_only;
    all.communication_only += times * more.communication_only;
    all.both += times * more.both;
  }
  for (std::size_t w = 0; w < out.workers.size(); ++w) extend(out.workers[w].ended, a.workers[w].ended);
  for (std::size_t pair = 0; pair < out.traffic.size(); ++pair) extend(out.traffic[pair].bytes, a.traffic[pair].bytes);
  if (a.bound && out.bound) extend(out.bound->seconds, a.bound->seconds);
  out.metrics.max_link_utilization = 0;
  for (int link = 0; link < static_cast<int>(out.totals.on_link.size()); ++link) {
    const double busy =
        out.totals.on_link[static_cast<std::size_t>(link)] / engine.link_bandwidth(link) / out.iteration;
    if (busy <= out.metrics.max_link_utilization) continue;
    out.metrics.max_link_utilization = busy;
    out.metrics.busiest_link = engine.link_name(link);
  }
  out.doubts = doubts_about(out, false);
  out.exact = b.exact && out.doubts.empty();
  return out;
}

}  // namespace epocast
