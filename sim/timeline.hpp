#pragma once
// Who did what when.

#include <cstdint>
#include <vector>

namespace epocast {

/// One execution of one task instance. Times in s from the start of the phase.
struct Interval {
  std::uint32_t task = 0;
  std::uint32_t rank = 0;
  std::int64_t iteration = 0;
  double start = 0;
  double end = 0;
};

struct Timeline {
  std::vector<Interval> intervals;  ///< in order of their ends
  bool truncated = false;           ///< there were more than asked for
};

/// Told of every execution while it happens, in the order of dates.
class IntervalSink {
 public:
  virtual ~IntervalSink() = default;
  virtual void begins(std::uint32_t task, double date) = 0;  ///< s from the start of the phase
  virtual void ends(const Interval& interval) = 0;
};

}  // namespace epocast
