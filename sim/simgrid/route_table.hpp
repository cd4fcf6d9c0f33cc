#pragma once
// Routes by their ends, of which a large run asks for millions.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "sim/mix_bits.hpp"
#include "sim/simgrid/engine.hpp"

namespace epocast {

/// A hash table with open addressing: half of the time of std::unordered_map, whose buckets are lists. What it holds
/// stays where it is.
class RouteTable {
 public:
  /// Null if there is none.
  const Route* find(std::uint64_t key) const {
    if (routes_.empty()) return nullptr;
    for (std::size_t at = place(key);; at = (at + 1) & (places_.size() - 1)) {
      const Place& here = places_[at];
      if (here.number == kFree) return nullptr;
      if (here.key == key) return &routes_[here.number];
    }
  }

  /// REQUIRES: find(key) is null.
  const Route& add(std::uint64_t key, Route route) {
    if (2 * (routes_.size() + 1) > places_.size()) grow();
    put({key, static_cast<std::uint32_t>(routes_.size())});
    return routes_.emplace_back(std::move(route));
  }

 private:
  static constexpr std::uint32_t kFree = ~std::uint32_t{0};
  static constexpr std::size_t kFirstPlaces = 64;  // a power of two, as all sizes
  struct Place {
    std::uint64_t key = 0;
    std::uint32_t number = kFree;
  };

  std::size_t place(std::uint64_t key) const { return mix_bits(key) & (places_.size() - 1); }
  void put(const Place& place_of) {
    std::size_t at = place(place_of.key);
    while (places_[at].number != kFree) at = (at + 1) & (places_.size() - 1);
    places_[at] = place_of;
  }
  void grow() {
    const std::vector<Place> before =
        std::exchange(places_, std::vector<Place>(places_.empty() ? kFirstPlaces : 2 * places_.size()));
    for (const Place& one : before)
      if (one.number != kFree) put(one);
  }

  std::vector<Place> places_;
  std::deque<Route> routes_;
};

}  // namespace epocast
