#include "sim/simgrid/shortest_routes.hpp"

#include <algorithm>

namespace epocast {

std::optional<std::uint32_t> ShortestRoutes::number_of(std::uint32_t id) const {
  if (id >= number_.size() || number_[id] == kUnknown) return std::nullopt;
  return number_[id];
}

std::uint32_t ShortestRoutes::point(std::uint32_t id) {
  if (id >= number_.size()) number_.resize(id + std::size_t{1}, kUnknown);
  if (number_[id] == kUnknown) {
    number_[id] = static_cast<std::uint32_t>(out_.size());
    out_.emplace_back();
    in_.emplace_back();
    is_end_.push_back(false);
  }
  return number_[id];
}

void ShortestRoutes::connect(std::uint32_t from, std::uint32_t to, int link) {
  const std::uint32_t a = point(from), b = point(to);
  out_[a].push_back({b, link});
  in_[b].push_back({a, link});
}

void ShortestRoutes::mark_end(std::uint32_t id) {
  if (const auto known = number_of(id)) is_end_[*known] = true;
}

std::span<const std::uint32_t> ShortestRoutes::Side::step(std::uint32_t distance) const {
  const std::size_t end = distance == depth() ? points.size() : first[distance + 1];
  return std::span(points).subspan(first[distance], end - first[distance]);
}

void ShortestRoutes::begin(Side& side, std::uint32_t point) {
  side.reached.resize(out_.size(), 0);
  side.reached[point] = stamp(0);
  side.points = {point};
  side.first = {0};
}

std::size_t ShortestRoutes::ways_on(std::span<const std::uint32_t> points, const Ways& ways) {
  std::size_t sum = 0;
  for (const std::uint32_t from : points) sum += ways[from].size();
  return sum;
}

void ShortestRoutes::expand(Side& side, const Side& other, const Ways& ways) {
  const std::size_t begin = side.first.back(), end = side.points.size();
  side.first.push_back(static_cast<std::uint32_t>(end));
  for (std::size_t k = begin; k < end; ++k)
    for (const Connection& way : ways[side.points[k]]) {
      if (knows(side, way.point)) continue;
      side.reached[way.point] = stamp(side.depth());
      side.points.push_back(way.point);
      if (knows(other, way.point)) meeting_.push_back(way.point);
    }
}

ShortestRoutes::Connection ShortestRoutes::step_back(std::uint32_t to, std::span<const std::uint32_t> step,
                                                     const std::vector<Stamp>& stamps, Stamp stamp) const {
  Connection best{kUnknown, -1};
  if (in_[to].size() <= ways_on(step, out_)) {
    for (const Connection& way : in_[to])
      if (stamps[way.point] == stamp && way.point < best.point) best = way;
    return best;
  }
  for (const std::uint32_t from : step) {
    if (stamps[from] != stamp || from > best.point) continue;
    const auto way = std::ranges::find(out_[from], to, &Connection::point);
    if (way != out_[from].end()) best = {from, way->link};
  }
  return best;
}

std::optional<std::vector<int>> ShortestRoutes::find(std::uint32_t from, std::uint32_t to) {
  const auto source = number_of(from), target = number_of(to);
  if (!source || !target) return std::nullopt;
  ++searches_;
  begin(ahead_, *source);
  begin(back_, *target);
  meeting_.clear();
  while (meeting_.empty()) {
    const auto here = ahead_.step(ahead_.depth()), there = back_.step(back_.depth());
    if (here.empty() || there.empty()) return std::nullopt;
    if (ways_on(here, out_) <= ways_on(there, in_))
      expand(ahead_, back_, out_);
    else
      expand(back_, ahead_, in_);
  }

  // On the target's side, only what is reached from a meeting point is on a way.
  on_way_.resize(out_.size(), 0);
  for (const std::uint32_t met : meeting_) on_way_[met] = stamp(back_.depth());
  for (std::uint32_t left = back_.depth(); left-- > 0;)
    for (const std::uint32_t here : back_.step(left))
      if (std::ranges::any_of(in_[here], [&](const Connection& way) { return on_way_[way.point] == stamp(left + 1); }))
        on_way_[here] = stamp(left);

  std::vector<int> links(ahead_.depth() + back_.depth());
  auto link = links.end();
  std::uint32_t at = *target;
  const auto go_back = [&](const Connection& way) {
    at = way.point;
    *--link = way.link;
  };
  for (std::uint32_t left = 1; left <= back_.depth(); ++left)
    go_back(step_back(at, back_.step(left), on_way_, stamp(left)));
  for (std::uint32_t gone = ahead_.depth(); gone-- > 0;)
    go_back(step_back(at, ahead_.step(gone), ahead_.reached, stamp(gone)));
  return links;
}

}  // namespace epocast
