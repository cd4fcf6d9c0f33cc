#include "strategies/partitioners/unequal_split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "strategies/partitioners/stage_times.hpp"

namespace epocast {
namespace {

constexpr double kNoSplit = std::numeric_limits<double>::infinity();

/// Dynamic programme over (stages so far, layers so far).
class UnequalSplitter {
 public:
  UnequalSplitter(const WorkloadTrace& trace, const SplitOptions& options,
                  const std::vector<const WorkloadTrace*>& of_stage)
      : options_(options), stages_(of_stage.size()), layers_(trace.layers.size()), timed_(count_timed(trace)) {
    for (const Bytes bytes : cut_bytes(trace)) cut_.push_back(bytes.value);
    for (std::size_t s = 0; s < stages_; ++s) {
      SplitOptions own = options;
      own.devices = options.replicas[s];
      own.trace_of = [&, s](int replicas) { return replicas == options.replicas[s] ? of_stage[s] : nullptr; };
      times_.emplace_back(*of_stage[s], own);
    }
  }

  ContiguousSplit split() {
    const auto slowest_of = [](double so_far, double stage, double /*sent*/) { return std::max(so_far, stage); };
    const double pace = solve(kNoSplit, slowest_of);
    if (pace == kNoSplit) throw SplitError(problem());
    // Slower ones by rounding only are as good.
    solve(pace * (1 + 1e-12), [](double so_far, double /*stage*/, double sent) { return so_far + sent; });
    ContiguousSplit out{{}, Seconds(pace), Bytes(0)};
    std::size_t last = layers_;
    for (std::size_t s = stages_; s-- > 0; last = from_[s][last]) {
      const std::size_t first = from_[s][last];
      out.stages.push_back({first, last, options_.replicas[s], Seconds(times_[s](first, last, options_.replicas[s])),
                            Bytes(cut_[last - 1])});
      out.sent += out.stages.back().sent;
    }
    std::ranges::reverse(out.stages);
    return out;
  }

 private:
  /// Of stage s and its link to the next one.
  double time(std::size_t s, std::size_t first, std::size_t last) const {
    const double stage = times_[s](first, last, options_.replicas[s]);
    if (s + 1 == stages_) return stage;
    const int links = std::min(options_.replicas[s], options_.replicas[s + 1]);
    return std::max(stage, 2 * cut_[last - 1] / options_.bandwidth.value / links);
  }

  bool fits(std::size_t s, std::size_t first, std::size_t last) const {
    if (!options_.memory) return true;
    const int from_here =
        std::accumulate(options_.replicas.begin() + static_cast<std::ptrdiff_t>(s), options_.replicas.end(), 0);
    return options_.memory_of({first, last, options_.replicas[s], static_cast<int>(stages_ - s), from_here}) <=
           *options_.memory;
  }

  /// The least cost of all splits in which nothing is slower than `limit`; from_ then has the way there.
  template <class Cost>
  double solve(double limit, Cost cost) {
    std::vector<double> before(layers_ + 1, kNoSplit);
    before[0] = 0;
    from_.assign(stages_, std::vector<std::size_t>(layers_ + 1, 0));
    for (std::size_t s = 0; s < stages_; ++s) {
      std::vector<double> after(layers_ + 1, kNoSplit);
      for (std::size_t first = 0; first < layers_; ++first) {
        if (before[first] == kNoSplit) continue;
        for (std::size_t last = first + 1; last <= layers_; ++last) {
          if (timed_[last] == timed_[first]) continue;
          const double own = time(s, first, last);
          const double all = cost(before[first], own, cut_[last - 1]);
          if (own > limit || all >= after[last] || !fits(s, first, last)) continue;
          after[last] = all;
          from_[s][last] = first;
        }
      }
      before = std::move(after);
    }
    return before[layers_];
  }

  std::string problem() const {
    if (timed_.back() < stages_) return fmt::format("{} stages, but only {} layers take time", stages_, timed_.back());
    return fmt::format("no split keeps every one of {} stages within {} of memory", stages_,
                       to_string(options_.memory.value_or(Bytes(0))));
  }

  const SplitOptions& options_;
  std::size_t stages_, layers_;
  std::vector<std::size_t> timed_;
  std::vector<double> cut_;                     ///< bytes across the boundary after each layer
  std::vector<StageTimes> times_;               ///< by stage
  std::vector<std::vector<std::size_t>> from_;  ///< by stage and its end: where it begins
};

}  // namespace

ContiguousSplit split_unequal(const WorkloadTrace& trace, const SplitOptions& options,
                              const std::vector<const WorkloadTrace*>& of_stage) {
  return UnequalSplitter(trace, options, of_stage).split();
}

}  // namespace epocast
