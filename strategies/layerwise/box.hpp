#pragma once
// Boxes of tensors: ranges of images, channels, rows and columns.

#include <algorithm>
#include <array>
#include <cstdint>

namespace epocast {

/// Indices from `begin` up to, not including, `end`.
struct IndexRange {
  std::int64_t begin = 0, end = 0;

  std::int64_t size() const { return std::max<std::int64_t>(0, end - begin); }
  bool contains(std::int64_t index) const { return begin <= index && index < end; }
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

inline IndexRange intersection(IndexRange a, IndexRange b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

/// Part `index` of `extent` values divided into `parts` that differ by one value at most. REQUIRES: 0 <= index < parts.
inline IndexRange part_of(std::int64_t extent, std::int64_t parts, std::int64_t index) {
  return {extent * index / parts, extent * (index + 1) / parts};
}

/// A box of a tensor of images x channels x rows x columns.
struct Box {
  IndexRange n, c, h, w;

  std::int64_t values() const { return n.size() * c.size() * h.size() * w.size(); }
  friend bool operator==(const Box&, const Box&) = default;
};

inline Box intersection(const Box& a, const Box& b) {
  return {intersection(a.n, b.n), intersection(a.c, b.c), intersection(a.h, b.h), intersection(a.w, b.w)};
}

}  // namespace epocast
