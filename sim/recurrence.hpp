#pragma once
// Where in time a step of many micro-batches does the same again and again.

#include <optional>

#include "sim/step_ends.hpp"

namespace epocast {

/// So many shifts in a row have to be seen: one would be the difference of two steps itself.
constexpr std::size_t kRepetitions = 3;

/// Between two dates a step does the same again and again, after each so many micro-batches.
struct Recurrence {
  int after = 0;
  double since = 0, until = 0;  ///< s from the start of the step
  double shift = 0;             ///< s that it takes to do so once
};

/// The fewest micro-batches, a multiple of `repeat`, after which a step of so many does the same again before the first
/// of its tasks has been done for the last of them: three times in a row. Nothing if it does not, or has no time to.
/// `iteration` [s] is how long the step takes.
std::optional<Recurrence> recurrence_of(const EndsByName& ends, int micro_batches, int repeat, double iteration);

}  // namespace epocast
