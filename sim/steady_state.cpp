#include "sim/steady_state.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace epocast {
namespace {

constexpr double kRelativeTolerance = 1e-11;

std::int64_t rows_within(std::uint64_t instances, std::size_t memory_limit) {
  if (memory_limit == 0) return 0;
  const auto row_bytes = std::max<std::uint64_t>(instances, 1) * sizeof(double);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(memory_limit / row_bytes), 3, 66);
}

/// By how much two shifts may differ and still be the same, at date `now`. A clock of t seconds has a resolution of
/// about 2e-16 t; SimGrid's own arithmetic adds a few of these.
double tolerance(double shift, double now) { return kRelativeTolerance * shift + 1e-14 * std::abs(now); }

}  // namespace

SteadyStateDetector::SteadyStateDetector(std::uint64_t instances, std::uint32_t max_lag, std::size_t memory_limit)
    : instances_(instances),
      repeats_needed_(std::max<std::int64_t>(1, max_lag)),
      rows_(static_cast<std::size_t>(rows_within(instances, memory_limit))),
      // Fast instances run ahead of slow ones by an iteration or so: leave them a row.
      streak_(rows_.empty() ? 0 : rows_.size() - 1, 0),
      shift_(streak_.size(), 0),
      since_(streak_.size(), 0) {}

const SteadyStateDetector::Row* SteadyStateDetector::row(std::int64_t iteration) const {
  if (iteration < oldest_) return nullptr;
  const Row& row = rows_[static_cast<std::size_t>(iteration) % rows_.size()];
  return row.iteration == iteration && row.ended == instances_ ? &row : nullptr;
}

bool SteadyStateDetector::record(std::uint64_t instance, std::int64_t iteration, double time) {
  frontier_ = std::max(frontier_, iteration + 1);
  if (!rows_.empty()) {
    Row& row = rows_[static_cast<std::size_t>(iteration) % rows_.size()];
    if (row.iteration < iteration) {
      row.iteration = iteration;
      row.ended = 0;
      row.end.assign(instances_, std::numeric_limits<double>::quiet_NaN());
    }
    if (row.iteration == iteration) {
      row.end[instance] = time;
      ++row.ended;
      row.frontier = frontier_;
    }
  }
  // Each instance ends its iterations in order, so the first one in the line is the first to be complete.
  const auto place = static_cast<std::size_t>(iteration - completed_);
  if (place >= ended_.size()) ended_.resize(place + 1, 0);
  if (++ended_[place] < instances_) return false;
  ended_.pop_front();
  ++completed_;
  return true;
}

std::optional<double> SteadyStateDetector::common_shift(const Row& earlier, const Row& later) const {
  const double shift = later.end[0] - earlier.end[0];
  const double allowed = tolerance(shift, later.end[0]);
  for (std::uint64_t i = 1; i < instances_; ++i)
    if (std::abs(later.end[i] - earlier.end[i] - shift) > allowed) return std::nullopt;
  return shift;
}

std::int64_t SteadyStateDetector::oldest_kept() const {
  return std::max<std::int64_t>(oldest_, frontier_ - static_cast<std::int64_t>(rows_.size()));
}

bool SteadyStateDetector::covers_leaders(std::int64_t streak, std::int64_t needed) const {
  const Row* moment = row(std::max(completed_ - 1 - (streak - needed), oldest_kept()));
  return moment != nullptr && moment->frontier <= completed_;
}

bool SteadyStateDetector::leaders_repeat(double shift) const {
  const Row *last = row(completed_ - 1), *before = row(completed_ - 2);
  if (frontier_ > completed_ + 1 || last == nullptr || before == nullptr || before->frontier > completed_) return false;
  const Row& next = rows_[static_cast<std::size_t>(completed_) % rows_.size()];
  const bool begun = next.iteration == completed_;
  const double ended_before = std::ranges::max(before->end);
  const double allowed = tolerance(shift, ended_before + shift);
  for (std::uint64_t i = 0; i < instances_; ++i) {
    const double now = begun ? next.end[i] : std::numeric_limits<double>::quiet_NaN();
    const bool repeats =
        std::isnan(now) ? last->end[i] >= ended_before - allowed : std::abs(now - last->end[i] - shift) <= allowed;
    if (!repeats) return false;
  }
  return true;
}

bool SteadyStateDetector::outlives_rounding(double since, std::int64_t needed) const {
  const Row* first = row(std::max(completed_ - needed, oldest_kept()));
  return first != nullptr && std::ilogb(since) < std::ilogb(*std::min_element(first->end.begin(), first->end.end()));
}

std::optional<Period> SteadyStateDetector::find_period() {
  const Row* last = row(completed_ - 1);
  if (last == nullptr) {
    std::fill(streak_.begin(), streak_.end(), 0);
    return std::nullopt;
  }
  for (std::int64_t length = 1; length < static_cast<std::int64_t>(streak_.size()); ++length) {
    std::int64_t& streak = streak_[static_cast<std::size_t>(length)];
    const Row* earlier = row(completed_ - 1 - length);
    const std::optional<double> shift = earlier != nullptr ? common_shift(*earlier, *last) : std::nullopt;
    double& held = shift_[static_cast<std::size_t>(length)];
    const bool continues = shift && streak > 0 && std::abs(*shift - held) <= tolerance(*shift, last->end[0]);
    streak = continues ? streak + 1 : (shift ? 1 : 0);
    held = shift.value_or(0);
    if (streak == 1) since_[static_cast<std::size_t>(length)] = last->end[0];
    // A period of several iterations must hold for each of them.
    const std::int64_t needed = std::max(repeats_needed_, length);
    if (streak < needed) continue;
    // Where instances lead, one period more: the last one is then periodic in all that happens in it, not only in its
    // ends.
    const std::int64_t with_leaders = needed + (frontier_ > completed_ ? length : 0);
    if (!covers_leaders(streak, with_leaders) && !(length == 1 && leaders_repeat(*shift))) continue;
    if (length == 1 || outlives_rounding(since_[static_cast<std::size_t>(length)], with_leaders))
      return Period{length, *shift};
  }
  return std::nullopt;
}

}  // namespace epocast
