#include "sim/flow_symmetry.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>
#include <utility>

#include "sim/mix_bits.hpp"

namespace epocast {
namespace {

std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }
std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return mix_bits(mix_bits(a) + b); }

/// Counts how many different colours there are, again and again.
class ColourCount {
 public:
  std::size_t operator()(const std::vector<std::uint64_t>& colours) {
    // An open hash table; colours are hashes, and one that is 0 is at home nowhere.
    places_.assign(std::bit_ceil(2 * colours.size() + 1), 0);
    std::size_t count = 0;
    bool zero = false;
    for (const std::uint64_t colour : colours) {
      if (colour == 0) {
        zero = true;
        continue;
      }
      std::size_t at = colour & (places_.size() - 1);
      while (places_[at] != 0 && places_[at] != colour) at = (at + 1) & (places_.size() - 1);
      if (std::exchange(places_[at], colour) == 0) ++count;
    }
    return count + (zero ? 1 : 0);
  }

 private:
  std::vector<std::uint64_t> places_;
};

}  // namespace

std::uint32_t FlowSymmetry::add(std::vector<SetFlow> flows, Waits waits) {
  const auto number = static_cast<std::uint32_t>(sets_.size());
  const std::size_t first = routes_.size();
  if (waits != Waits::nobody)
    for (const SetFlow& flow : flows) {
      const Route* route = flow.from == flow.to ? nullptr : &engine_.route(flow.from, flow.to);
      routes_.push_back(route);
      std::uint64_t colour = mix(number, bits(flow.bytes));
      if (pace_ == Pace::own)  // ranks pay their latency by themselves
        colour =
            mix(mix(colour, route == nullptr ? 0 : bits(route->latency)), static_cast<std::uint64_t>(flow.within_node));
      flow_.push_back(colour);
    }
  sets_.push_back({std::move(flows), waits, first, {}});
  return number;
}

bool FlowSymmetry::refine() {
  link_.resize(static_cast<std::size_t>(engine_.link_count()));
  for (std::size_t l = 0; l < link_.size(); ++l)
    link_[l] = mix(bits(engine_.link_bandwidth(static_cast<int>(l))),
                   static_cast<std::uint64_t>(engine_.link_sharing(static_cast<int>(l))));
  if (pace_ == Pace::slowest)
    colour_links();
  else if (!colour())
    return false;
  for (const Route* route : routes_)
    if (route != nullptr)
      for (const int l : route->bottlenecks())
        if (engine_.link_sharing(l) == LinkSharing::kOther) return false;
  number_classes();
  return true;
}

/// By the flows that cross them.
void FlowSymmetry::colour_links() {
  std::vector<std::uint64_t> around(link_.size(), 0);
  for (std::size_t f = 0; f < flow_.size(); ++f)
    if (routes_[f] != nullptr)
      for (const int l : routes_[f]->bottlenecks()) around[static_cast<std::size_t>(l)] += mix_bits(flow_[f]);
  for (std::size_t l = 0; l < link_.size(); ++l) link_[l] = mix(link_[l], around[l]);
}

bool FlowSymmetry::colour() {
  ColourCount colours;
  for (std::size_t known = 0, now = 1; now > known;) {
    known = colours(flow_) + colours(link_);
    colour_links();
    for (std::size_t f = 0; f < flow_.size(); ++f) {
      std::uint64_t way = 0;
      if (routes_[f] != nullptr)
        for (const int l : routes_[f]->bottlenecks()) way += mix_bits(link_[static_cast<std::size_t>(l)]);
      flow_[f] = mix(flow_[f], way);
    }
    // What has two colours keeps two.
    if (!std::ranges::all_of(sets_, [&](const Set& set) { return set.waits == Waits::team || teams_are_alike(set); }))
      return false;
    now = colours(flow_) + colours(link_);
  }
  return std::ranges::all_of(sets_, [&](const Set& set) { return teams_are_alike(set); });
}

bool FlowSymmetry::teams_are_alike(const Set& set) const {
  if (set.waits == Waits::nobody) return true;
  const std::uint64_t* colour = flow_.data() + set.first;
  if (set.waits == Waits::rank)
    return std::all_of(colour, colour + set.flows.size(), [&](std::uint64_t c) { return c == *colour; });
  // The sum of a team's colours tells which it has, and how many of each.
  std::unordered_map<std::uint32_t, std::uint64_t> of_team;
  for (std::size_t f = 0; f < set.flows.size(); ++f) of_team[set.flows[f].team] += mix_bits(colour[f]);
  return std::all_of(of_team.begin(), of_team.end(),
                     [&](const auto& entry) { return entry.second == of_team.begin()->second; });
}

/// Numbers the orbits of links that flows share.
FlowSymmetry::Orbits FlowSymmetry::number_orbits() {
  Orbits orbits{std::vector<std::uint32_t>(link_.size(), kNoOrbit), {}};
  std::unordered_map<std::uint64_t, std::uint32_t> by_colour;
  for (const Route* route : routes_) {
    if (route == nullptr) continue;
    for (const int link : route->bottlenecks()) {
      const auto l = static_cast<std::size_t>(link);
      if (orbits.of_link[l] != kNoOrbit || engine_.link_sharing(link) == LinkSharing::kFatpipe) continue;
      const auto [orbit, is_new] =
          by_colour.try_emplace(link_[l], static_cast<std::uint32_t>(classes_.bandwidth.size()));
      if (is_new) {
        classes_.bandwidth.push_back(engine_.link_bandwidth(link));
        orbits.links.push_back(0);
      }
      orbits.of_link[l] = orbit->second;
      orbits.links[orbit->second] += 1;
    }
  }
  return orbits;
}

void FlowSymmetry::number_classes() {
  const Orbits orbits = number_orbits();
  std::unordered_map<std::uint64_t, std::uint32_t> class_of;
  for (Set& set : sets_) {
    if (set.waits == Waits::nobody) continue;
    for (std::size_t f = set.first; f < set.first + set.flows.size(); ++f) {
      const Route* route = routes_[f];
      if (route == nullptr) continue;  // no time, no link
      const auto [place, is_new] = class_of.try_emplace(flow_[f], static_cast<std::uint32_t>(classes_.classes.size()));
      if (is_new) {
        set.parts.push_back({place->second, set.flows[f - set.first].bytes});
        classes_.classes.emplace_back().most = std::numeric_limits<double>::infinity();
      }
      FlowClass& own = classes_.classes[place->second];
      for (const int l : route->bottlenecks()) {
        const std::uint32_t orbit = orbits.of_link[static_cast<std::size_t>(l)];
        if (orbit == kNoOrbit) {
          own.most = std::min(own.most, engine_.link_bandwidth(l));
          continue;
        }
        const auto known = std::ranges::find(own.crossings, orbit, &FlowClass::Crossing::orbit);
        if (known == own.crossings.end())
          own.crossings.push_back({orbit, 1});
        else
          known->flows += 1;
      }
    }
  }
  // All that cross an orbit, by the number of its links.
  for (FlowClass& own : classes_.classes)
    for (FlowClass::Crossing& crossing : own.crossings) crossing.flows /= orbits.links[crossing.orbit];
}

}  // namespace epocast
