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

void ShortestRoutes::begin(Side& side, std::uint32_t point) {
  side.search.resize(out_.size(), 0);
  side.search[point] = searches_;
  side.steps = {{point}};
}

std::size_t ShortestRoutes::ways_on(const Side& side, const Ways& ways) {
  std::size_t sum = 0;
  for (const std::uint32_t from : side.steps.back()) sum += ways[from].size();
  return sum;
}

std::vector<std::uint32_t> ShortestRoutes::expand(Side& side, const Side& other, const Ways& ways) {
  std::vector<std::uint32_t> reached, meeting;
  for (const std::uint32_t from : side.steps.back())
    for (const Connection& way : ways[from]) {
      if (knows(side, way.point)) continue;
      side.search[way.point] = searches_;
      reached.push_back(way.point);
      if (knows(other, way.point)) meeting.push_back(way.point);
    }
  side.steps.push_back(std::move(reached));
  return meeting;
}

std::optional<std::vector<int>> ShortestRoutes::find(std::uint32_t from, std::uint32_t to) {
  const auto source = number_of(from), target = number_of(to);
  if (!source || !target) return std::nullopt;
  ++searches_;
  begin(ahead_, *source);
  begin(back_, *target);
  std::vector<std::uint32_t> meeting;
  while (meeting.empty()) {
    if (ahead_.steps.back().empty() || back_.steps.back().empty()) return std::nullopt;
    meeting = ways_on(ahead_, out_) <= ways_on(back_, in_) ? expand(ahead_, back_, out_) : expand(back_, ahead_, in_);
  }

  // On the target's side, only what is reached from a meeting point is on a way.
  std::vector<std::vector<std::uint32_t>> level(back_.depth() + 1);  // by distance to the target
  level[back_.depth()] = meeting;
  std::ranges::sort(level[back_.depth()]);
  for (std::uint32_t left = back_.depth(); left-- > 0;) {
    for (const std::uint32_t here : back_.steps[left])
      if (std::ranges::any_of(
              in_[here], [&](const Connection& way) { return std::ranges::binary_search(level[left + 1], way.point); }))
        level[left].push_back(here);
    std::ranges::sort(level[left]);
  }

  std::vector<int> links;
  std::uint32_t at = *target;
  const auto step_back = [&](const std::vector<std::uint32_t>& closer) {
    std::uint32_t best = at;
    int link = -1;
    for (const std::uint32_t p : closer) {
      if (link >= 0 && p > best) continue;
      const auto way = std::ranges::find(out_[p], at, &Connection::point);
      if (way == out_[p].end()) continue;
      best = p;
      link = way->link;
    }
    links.push_back(link);
    at = best;
  };
  for (std::uint32_t left = 1; left <= back_.depth(); ++left) step_back(level[left]);
  for (std::uint32_t gone = ahead_.depth(); gone-- > 0;) step_back(ahead_.steps[gone]);
  std::ranges::reverse(links);
  return links;
}

}  // namespace epocast
