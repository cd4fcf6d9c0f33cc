#include "sim/step_clock.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace epocast {
namespace {

constexpr double kDateRounding = 1e-9;

bool near(double a, double b, double scale) { return std::abs(a - b) <= kDateRounding * scale; }

bool near(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(a, b, [](double x, double y) { return near(x, y, std::max(std::abs(x), std::abs(y))); });
}

bool near(const ActivityTimes& a, const ActivityTimes& b, double scale) {
  return near(a.idle, b.idle, scale) && near(a.compute_only, b.compute_only, scale) &&
         near(a.communication_only, b.communication_only, scale) && near(a.both, b.both, scale);
}

bool near(const StepGrowth& a, const StepGrowth& b) {
  return near(a.seconds, b.seconds, b.seconds) && near(a.on_links, b.on_links) && near(a.off_links, b.off_links) &&
         std::ranges::equal(a.activity, b.activity,
                            [&](const ActivityTimes& x, const ActivityTimes& y) { return near(x, y, b.seconds); });
}

/// Sets that had not been heard of have carried nothing.
std::vector<double> added(const std::vector<double>& before, std::vector<double> after) {
  for (std::size_t i = 0; i < before.size(); ++i) after[i] -= before[i];
  return after;
}

}  // namespace

StepGrowth StepGrowth::operator*(double times) const {
  StepGrowth out = *this;
  out.seconds *= times;
  for (ActivityTimes& t : out.activity) t = times * t;
  for (double& bytes : out.on_links) bytes *= times;
  for (double& bytes : out.off_links) bytes *= times;
  return out;
}

StepClock::StepClock(const CompiledGraph& graph, std::vector<CountedDevice> workers, double start)
    : workers_(std::move(workers)), start_(start) {
  const std::span<const Task> tasks = graph.graph->tasks();
  const auto first = std::ranges::find_if(tasks, [](const Task& task) { return task.label.micro_batch >= 0; });
  if (first == tasks.end()) return;
  for (const Task& task : tasks)
    strikes_at_.push_back(task.label.micro_batch >= 0 && task.label.operation == first->label.operation &&
                          task.label.layer == first->label.layer);
}

void StepClock::strike(double now, const ActivityAccounts& accounts, const TrafficCounter& traffic) {
  Strike strike{now - start_, {}, traffic.on_links_by_set(), traffic.off_links_by_set()};
  strike.activity.reserve(workers_.size());
  for (const CountedDevice& worker : workers_) strike.activity.push_back(accounts.times(worker.device, now));
  strikes_.push_back(std::move(strike));
}

StepGrowth StepClock::between(const Strike& earlier, const Strike& later) {
  StepGrowth out{later.date - earlier.date, later.activity, added(earlier.on_links, later.on_links),
                 added(earlier.off_links, later.off_links)};
  for (std::size_t w = 0; w < out.activity.size(); ++w) out.activity[w] = later.activity[w] - earlier.activity[w];
  return out;
}

std::optional<StepGrowth> StepClock::growth(const Recurrence& recurrence, int micro_batches) const {
  const auto each = static_cast<std::size_t>(micro_batches);
  if (strikes_.empty() || strikes_.size() % each != 0) return std::nullopt;
  const auto turn = static_cast<std::size_t>(recurrence.after);
  const auto last_iteration = strikes_.end() - static_cast<std::ptrdiff_t>(each);
  const auto end =
      std::find_if(last_iteration, strikes_.end(), [&](const Strike& s) { return s.date > recurrence.until; });
  const auto struck = static_cast<std::size_t>(end - strikes_.begin());
  if (end - last_iteration <= static_cast<std::ptrdiff_t>(2 * turn)) return std::nullopt;
  const Strike &last = strikes_[struck - 1], &before = strikes_[struck - 1 - turn],
               &first = strikes_[struck - 1 - 2 * turn];
  // The last strike may have been up to one micro-batch earlier than the end of what recurs.
  if (first.date < recurrence.since - recurrence.shift / recurrence.after) return std::nullopt;
  StepGrowth out = between(before, last);
  if (out.seconds <= 0 || !near(between(first, before), out)) return std::nullopt;
  return out;
}

}  // namespace epocast
