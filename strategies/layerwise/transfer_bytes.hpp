#pragma once
// Bytes between two operators for all pairs of their configurations at once.
//
// What a place holds and what another needs are boxes whose sides depend on few degrees each, so that overlaps are
// products of small tables: a pair of configurations costs O(places), not O(places^2).

#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "strategies/layerwise/cost_tables.hpp"
#include "strategies/layerwise/division.hpp"

namespace epocast {

class TransferCounter {
 public:
  /// REQUIRES: the edge's operators are those of the divisions.
  TransferCounter(const OperatorEdge& edge, std::span<const Division> from, std::span<const Division> to,
                  const std::vector<int>& node_of);

  /// Values, not bytes.
  TransferBytes count(std::size_t from, std::size_t to) const;
  /// What all places of `to` need, whatever they have.
  double needed(std::size_t to) const { return needed_[to]; }

 private:
  static constexpr std::size_t kSides = 4;
  using Ids = std::array<std::size_t, kSides>;
  /// Places of one configuration on one node.
  struct Block {
    std::size_t node = 0;
    std::vector<std::size_t> places;
    bool is_grid = false;  ///< then sums over the places are products of sums over their sides
    Ids profile{};         ///< of a grid
  };
  /// Sides of the boxes of one configuration's places.
  struct Sides {
    std::vector<Ids> places;
    std::vector<int> devices;
    std::vector<double> values;
    std::vector<Block> blocks;  ///< by node; none if all is on one
  };

  std::size_t id(std::size_t side, IndexRange range, bool needed);
  std::vector<Block> blocks_of(const Sides& sides) const;
  /// Which profile a grid of places that need something has, side by side.
  Ids profile_of(const Sides& sides, const std::vector<std::size_t>& places);
  /// What a held box and all boxes of a grid have in common.
  double common_with_grid(const Ids& held, const Ids& profile, std::size_t places) const {
    auto out = static_cast<double>(places);
    for (std::size_t side = 0; side < kSides; ++side) out *= sums_[side][profile[side]][held[side]];
    return out;
  }
  double overlap(std::size_t side, std::size_t held, std::size_t needed) const {
    return overlaps_[side][held * needs_[side].size() + needed];
  }
  double common(const Ids& held, const Ids& needed) const {
    double out = 1;
    for (std::size_t side = 0; side < kSides; ++side) out *= overlap(side, held[side], needed[side]);
    return out;
  }

  std::array<std::vector<IndexRange>, kSides> holds_, needs_;
  std::array<std::vector<double>, kSides> overlaps_;
  /// Of the overlaps, and of whether there is one, of a held range with those that the places of a configuration need:
  /// means over the places, by profile (which ranges are needed by how many) and by held range.
  std::array<std::map<std::vector<std::size_t>, std::size_t>, kSides> profile_ids_;
  std::array<std::vector<std::vector<double>>, kSides> sums_, counts_;
  std::vector<Ids> profiles_;  ///< by configuration of `to`
  std::vector<Sides> from_, to_;
  std::vector<double> needed_;
  std::vector<int> node_of_;
};

}  // namespace epocast
