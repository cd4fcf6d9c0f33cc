#pragma once
// Tells when a simulated training loop has become periodic.

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace epocast {

/// A loop that repeats: iteration i + length ends `shift` seconds after iteration i, in every task.
struct Period {
  std::int64_t length = 1;  ///< iterations
  double shift = 0;         ///< s per `length` iterations

  double iteration() const { return shift / static_cast<double>(length); }
};

/// Keeps the end times of the last iterations of every task instance and compares them.
///
/// The loop is periodic once, for as many iterations in a row as the longest lag reaches back, every instance ends
/// exactly one shift later than `length` iterations before: from then on all events repeat, since nothing they depend
/// on differs. Instances may run ahead of others (the first stage of a pipeline, workers of an asynchronous server). So
/// the comparison must also cover all iterations that any instance had ended at some moment since when all of this
/// holds; or else the rows could be from before the leaders met the rest in a queue or on a link. Leaders that are
/// ahead by one iteration only may as well have done, when the others end theirs, exactly what they had done one shift
/// before: all that has happened since then is a copy of what happened before. "Exactly" is 1e-11 of the shift, far
/// above rounding and far below the 1e-9 that extrapolation promises.
///
/// A period of several iterations comes from instances that do not wait for each other and meet in turn. Which of two
/// that meet is first may then rest on rounding alone, and such a loop repeats to the last bit until the clock passes a
/// power of two, from where on it rounds to twice as much. So the loop must also have repeated across such a date.
class SteadyStateDetector {
 public:
  /// `max_lag`: longest lag of the graph's edges. Memory is limited to about `memory_limit` bytes, which limits the
  /// longest period found (at least 1, at most 64 iterations).
  SteadyStateDetector(std::uint64_t instances, std::uint32_t max_lag,
                      std::size_t memory_limit = std::size_t{128} << 20);

  /// Records that an instance ended its `iteration`-th firing (from 0) at `time` [s], of the clock whose resolution
  /// matters. Returns true if this was the last instance to end that iteration.
  bool record(std::uint64_t instance, std::int64_t iteration, double time);

  /// The period, looked for whenever record() returned true.
  std::optional<Period> find_period();

  /// Compares nothing with iterations before this one from now on.
  void forget_before(std::int64_t iteration) { oldest_ = iteration; }

  /// Iterations that all instances have ended.
  std::int64_t completed() const { return completed_; }

 private:
  struct Row {
    std::int64_t iteration = -1;
    std::uint64_t ended = 0;
    std::int64_t frontier = 0;  ///< iterations that the leading instance had ended when the last one ended this
    std::vector<double> end;    ///< [s]; NaN: not yet
  };
  const Row* row(std::int64_t iteration) const;
  /// The shift between two complete rows if it is the same for all instances.
  std::optional<double> common_shift(const Row& earlier, const Row& later) const;
  /// Whether the last `streak` rows say all that the future depends on, `needed` of them being what one moment
  /// remembers.
  bool covers_leaders(std::int64_t streak, std::int64_t needed) const;
  /// Whether leaders have done in the next iteration what they had done `shift` s before, when the one before was
  /// complete; then the period is one iteration.
  bool leaders_repeat(double shift) const;
  /// Whether the clock has rounded otherwise since the streak that began at date `since` [s] than in all of its last
  /// `needed` rows.
  bool outlives_rounding(double since, std::int64_t needed) const;
  std::int64_t oldest_kept() const;  ///< the first iteration of which a row can be left

  std::uint64_t instances_;
  std::int64_t repeats_needed_;
  std::vector<Row> rows_;            ///< ring buffer by iteration; a leader far ahead of the others takes rows away
  std::deque<std::uint64_t> ended_;  ///< instances that have ended iteration completed_ + i
  std::int64_t completed_ = 0;
  std::int64_t oldest_ = 0;
  std::int64_t frontier_ = 0;         ///< iterations that the leading instance has ended
  std::vector<std::int64_t> streak_;  ///< by length: iterations in a row with one common shift
  std::vector<double> shift_;         ///< by length: that shift [s]
  std::vector<double> since_;         ///< by length: when the first of them ended [s]
};

}  // namespace epocast
