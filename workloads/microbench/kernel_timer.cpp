#include "workloads/microbench/kernel_timer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/error.hpp"

namespace epocast {
namespace {

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const double place = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  std::ranges::sort(values);
  const double above = values[std::min(low + 1, values.size() - 1)];
  return values[low] + (place - static_cast<double>(low)) * (above - values[low]);
}

class StepTimer {
 public:
  StepTimer(ExecutedStep& step, std::size_t cache) : step_(step), cache_(step, cache), stream_(cpu_engine()) {
    const std::size_t n = step.kernels().size();
    out_.in_step.resize(n);
    std::map<std::string, int> known;
    for (std::size_t i = 0; i < n; ++i) {
      const auto [found, is_new] = known.emplace(step.kernels()[i].key() + cache_.history(i), known.size());
      if (is_new) first_.push_back(i);
      out_.distinct.push_back(found->second);
    }
    out_.kernels.resize(first_.size());
    kernel_costs_.resize(first_.size());
  }

  TimedStep run(const TimingRule& rule, bool whole_steps, const Progress& progress) {
    if (whole_steps) {
      step_.allocate();
      execute_step(false);
    }
    for (int round = 0; round < rule.most; ++round) {
      std::vector<std::size_t> open;
      // What is to be compared must be measured at the same times.
      const bool step_open = whole_steps && !done(out_.step, rule);
      for (std::size_t k = 0; k < first_.size(); ++k)
        if (step_open || !done(out_.kernels[k], rule)) open.push_back(k);
      if (open.empty() || (whole_steps && !step_open)) break;
      for (std::size_t i = 0; i < open.size(); ++i) {
        if (is_time_up(rule, round, kernel_costs_[open[i]])) return finish(progress);
        const double begin = rule.clock();
        time_kernel(open[i], !whole_steps, rule);
        kernel_costs_[open[i]] = rule.clock() - begin;
        // Most are done after the least number of rounds.
        const double share = static_cast<double>(i + 1) / static_cast<double>(open.size());
        progress(std::min(0.99, (round + share) / std::max(rule.least, round + 1)));
      }
      if (whole_steps) {
        if (is_time_up(rule, round, step_cost_)) return finish(progress);
        const double begin = rule.clock();
        execute_step(false);  // the caches are as in the middle of training from here on
        execute_step(true);
        step_cost_ = rule.clock() - begin;
      }
    }
    return finish(progress);
  }

 private:
  /// Whether to stop before something that took `cost` [s] in the round before.
  static bool is_time_up(const TimingRule& rule, int round, double cost) {
    const double end = rule.clock() + cost;
    return end > rule.stop_at || (round > 0 && end > rule.enough_at);
  }

  TimedStep finish(const Progress& progress) {
    progress(1);
    const auto missing = std::ranges::count_if(out_.kernels, [](const Sample& s) { return s.times.empty(); });
    if (missing > 0)
      throw ConfigError(fmt::format(
          "--budget: time is up, and {} of {} kernels of {}, batch {}, have not been timed; give more time, "
          "a smaller batch, or fewer models",
          missing, out_.kernels.size(), step_.model().name, step_.batch()));
    return std::move(out_);
  }

  static bool done(const Sample& sample, const TimingRule& rule) {
    const int n = static_cast<int>(sample.times.size());
    return n >= rule.most || (n >= rule.least && sample.uncertainty() <= rule.uncertainty);
  }

  void time_kernel(std::size_t distinct, bool release, const TimingRule& rule) {
    const std::size_t index = first_[distinct];
    const Kernel& kernel = step_.kernels()[index];
    Sample& sample = out_.kernels[distinct];
    cache_.allocate(index);
    if (sample.times.empty()) kernel.run(stream_);  // code and scratch memory come into being
    for (bool good = false; !good && rule.clock() < rule.stop_at;) {
      cache_.prepare(index, stream_);
      stopwatch_.start();
      kernel.run(stream_);
      const std::optional<double> time = stopwatch_.stop();
      good = time.has_value();
      if (good) sample.times.push_back(*time);
    }
    if (release) step_.release();
  }

  void execute_step(bool timed) {
    const std::vector<Kernel>& kernels = step_.kernels();
    stopwatch_.start();
    double last = Stopwatch::now();
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      kernels[i].run(stream_);
      const double end = Stopwatch::now();
      if (timed) out_.in_step[i].times.push_back(end - last);
      last = end;
    }
    const std::optional<double> time = stopwatch_.stop();
    if (!timed || !time) return;
    out_.step.times.push_back(*time);
    out_.step_waited += stopwatch_.waited() / (*time + stopwatch_.waited());
  }

  ExecutedStep& step_;
  CacheState cache_;
  dnnl::stream stream_;
  Stopwatch stopwatch_;
  std::vector<std::size_t> first_;    // a kernel of the step for each distinct one
  std::vector<double> kernel_costs_;  // [s] of each distinct one's last round, with the preparation of the caches
  double step_cost_ = 0;              // likewise
  TimedStep out_;
};

}  // namespace

double Sample::median() const { return quantile(times, 0.5); }
double Sample::fastest() const { return times.empty() ? 0 : *std::ranges::min_element(times); }
double Sample::spread() const { return (quantile(times, 0.75) - quantile(times, 0.25)) / median(); }
double Sample::uncertainty() const { return 0.93 * spread() / std::sqrt(static_cast<double>(times.size())); }

TimedStep time_step(ExecutedStep& step, std::size_t cache, const TimingRule& rule, bool whole_steps,
                    const Progress& progress) {
  return StepTimer(step, cache).run(rule, whole_steps, progress);
}

}  // namespace epocast
