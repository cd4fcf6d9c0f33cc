#pragma once
// Teams of ranks: what a collective, a barrier or an edge along one axis of a grid of ranks is about.

#include <cstdint>

namespace epocast {

/// An axis of the grid that the ranks of a group form. The ranks that differ along it only are a team, and each has a
/// place in its team: rank = (outer * extent + place) * stride + inner, where `inner` < stride numbers the ranks of the
/// axes that vary faster and `outer` those that vary more slowly; team = outer * stride + inner. Extent 1 makes every
/// rank a team of its own; stride 1 and the extent of all ranks make one team.
struct Axis {
  std::uint32_t stride = 1;
  std::uint32_t extent = 1;

  constexpr bool divides(std::uint32_t ranks) const {
    return stride > 0 && extent > 0 && ranks % (std::uint64_t{stride} * extent) == 0;
  }
  constexpr std::uint32_t teams(std::uint32_t ranks) const { return ranks / extent; }
  /// The team of a rank. The usual axes, of lone ranks and of all, need no division.
  constexpr std::uint32_t team_of(std::uint32_t rank) const {
    if (extent == 1) return rank;
    if (stride == 1) return rank < extent ? 0 : rank / extent;
    return rank / (stride * extent) * stride + rank % stride;
  }
  constexpr std::uint32_t place_of(std::uint32_t rank) const { return rank / stride % extent; }
  /// The rank at place 0 of a team.
  constexpr std::uint32_t first_rank(std::uint32_t team) const {
    if (extent == 1) return team;
    return team / stride * stride * extent + team % stride;
  }
  constexpr std::uint32_t rank_at(std::uint32_t team, std::uint32_t place) const {
    return first_rank(team) + place * stride;
  }
  /// Calls visit(rank) for the ranks of a team, in order of place.
  template <class Visit>
  constexpr void for_each_rank(std::uint32_t team, Visit visit) const {
    std::uint32_t rank = first_rank(team);
    for (std::uint32_t place = 0; place < extent; ++place, rank += stride) visit(rank);
  }

  friend constexpr bool operator==(const Axis&, const Axis&) = default;
};

}  // namespace epocast
