#pragma once
// A row of numbers to which ranges are added and of which maxima are asked, both in O(log n).

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace epocast {

/// A segment tree. Additions to whole subtrees stay where they are: a node's maximum does not count those above it.
class MaxTree {
 public:
  explicit MaxTree(std::size_t size) : leaves_(1) {
    while (leaves_ < size) leaves_ *= 2;
    max_.assign(2 * leaves_, 0);
    added_.assign(2 * leaves_, 0);
  }

  /// To all with begin <= index <= end.
  void add(std::size_t begin, std::size_t end, double value) { add(1, 0, leaves_ - 1, begin, end, value); }
  double max(std::size_t begin, std::size_t end) const { return max(1, 0, leaves_ - 1, begin, end); }
  double max() const { return max_[1]; }
  /// Where the maximum is first.
  std::size_t argmax() const {
    std::size_t n = 1;
    while (n < leaves_) n = max_[2 * n] >= max_[2 * n + 1] ? 2 * n : 2 * n + 1;
    return n - leaves_;
  }

 private:
  void add(std::size_t n, std::size_t low, std::size_t high, std::size_t begin, std::size_t end, double value) {
    if (begin <= low && high <= end) {
      max_[n] += value;
      added_[n] += value;
      return;
    }
    const std::size_t middle = (low + high) / 2;
    if (begin <= middle) add(2 * n, low, middle, begin, end, value);
    if (end > middle) add(2 * n + 1, middle + 1, high, begin, end, value);
    max_[n] = std::max(max_[2 * n], max_[2 * n + 1]) + added_[n];
  }
  double max(std::size_t n, std::size_t low, std::size_t high, std::size_t begin, std::size_t end) const {
    if (begin <= low && high <= end) return max_[n];
    const std::size_t middle = (low + high) / 2;
    if (end <= middle) return added_[n] + max(2 * n, low, middle, begin, end);
    if (begin > middle) return added_[n] + max(2 * n + 1, middle + 1, high, begin, end);
    return added_[n] + std::max(max(2 * n, low, middle, begin, end), max(2 * n + 1, middle + 1, high, begin, end));
  }

  std::size_t leaves_;
  std::vector<double> max_, added_;
};

}  // namespace epocast
