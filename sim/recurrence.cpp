#include "sim/recurrence.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace epocast {
namespace {

constexpr int kLongShift = 8;  // micro-batches

/// Ends that are of so many micro-batches each.
struct Repeated {
  const Ends* ends = nullptr;
  std::size_t each = 1;  ///< of one micro-batch

  /// Whether, before the date `last`, what is `micro_batches` apart is `shift` apart for so long as `span`.
  bool by(int micro_batches, double shift, double span, double last, double tolerance) const {
    const std::size_t apart = each * static_cast<std::size_t>(micro_batches);
    auto i = static_cast<std::size_t>(std::ranges::upper_bound(*ends, last + tolerance) - ends->begin());
    while (i-- > apart && (*ends)[i - apart] >= last - span - tolerance)
      if (std::abs((*ends)[i] - (*ends)[i - apart] - shift) > tolerance) return false;
    return true;
  }
};

/// Ends of tasks that are done for each of so many micro-batches: the first or last may have more or none. As many for
/// each as on average.
std::size_t of_each(const Ends& ends, int micro_batches) {
  const auto count = static_cast<std::size_t>(micro_batches);
  return ends.size() > count / 2 ? std::max<std::size_t>(1, (ends.size() + count / 2) / count) : 0;
}

}  // namespace

std::optional<Recurrence> recurrence_of(const EndsByName& ends, int micro_batches, int repeat, double iteration) {
  std::vector<Repeated> repeated;
  double first = 0, last = std::numeric_limits<double>::infinity();  // dates between which there is something of all
  for (const auto& [name, own] : ends)
    if (const std::size_t each = of_each(own, micro_batches); each > 0) {
      repeated.push_back({&own, each});
      first = std::max(first, own.front());
      last = std::min(last, own.back());
    }
  if (repeated.empty() || first >= last) return std::nullopt;
  const double tolerance = kShiftTolerance * iteration;
  const Repeated any = repeated.front();
  const auto in_time =
      static_cast<std::size_t>(std::ranges::upper_bound(*any.ends, last + tolerance) - any.ends->begin());
  for (int after = repeat;; after += repeat) {
    const std::size_t apart = any.each * static_cast<std::size_t>(after);
    if (in_time <= apart) return std::nullopt;
    const double shift = (*any.ends)[in_time - 1] - (*any.ends)[in_time - 1 - apart];
    // Of long shifts, two say as much as three of short ones.
    const double span = static_cast<double>(after < kLongShift ? kRepetitions : kRepetitions - 1) * shift;
    if (last - span < first) return std::nullopt;
    const auto differs = std::ranges::find_if(
        repeated, [&](const Repeated& own) { return !own.by(after, shift, span, last, tolerance); });
    if (differs == repeated.end()) return Recurrence{after, last - span - tolerance, last + tolerance, shift};
    std::iter_swap(repeated.begin(), differs);  // it may well tell the next number, too
  }
}

}  // namespace epocast
