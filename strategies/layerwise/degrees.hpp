#pragma once
// Into how many parts an operator's work is divided: DeePa's configuration of a node.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace epocast {

/// Images, channels of the output, rows, columns, and the reduction dimension: channels of the input, or rows of a
/// table. Parts of the reduction make sums that have to be added up. DeePa has the first four.
enum class Dimension : std::uint8_t { n, c, h, w, k };
inline constexpr std::size_t kDimensions = 5;
inline constexpr Dimension kAllDimensions[] = {Dimension::n, Dimension::c, Dimension::h, Dimension::w, Dimension::k};

const char* to_string(Dimension dimension);

/// Degrees of parallelism, 1 where nothing is divided.
struct Degrees {
  std::array<int, kDimensions> of{1, 1, 1, 1, 1};

  int& operator[](Dimension d) { return of[static_cast<std::size_t>(d)]; }
  int operator[](Dimension d) const { return of[static_cast<std::size_t>(d)]; }
  /// Devices that it takes.
  std::int64_t product() const;
  /// "{n: 4, c: 2}", "{n: 1}" if nothing is divided.
  std::string text() const;
  friend auto operator<=>(const Degrees&, const Degrees&) = default;
};

/// The longest that each dimension can be divided, by dimension; 1: not at all.
using DimensionLimits = std::array<std::int64_t, kDimensions>;

/// All degrees whose product divides `devices`, none above its limit, in lexicographic order of n, c, h, w, k. Of 16
/// devices in n, c, h and w there are 70.
std::vector<Degrees> all_degrees(std::int64_t devices, const DimensionLimits& limits);

}  // namespace epocast
