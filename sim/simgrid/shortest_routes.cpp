#include "sim/simgrid/shortest_routes.hpp"

#include <algorithm>

namespace epocast {

std::uint32_t ShortestRoutes::point(std::uint64_t id) {
  const auto [place, is_new] = number_.try_emplace(id, static_cast<std::uint32_t>(out_.size()));
  if (is_new) {
    out_.emplace_back();
    in_.emplace_back();
  }
  return place->second;
}

void ShortestRoutes::connect(std::uint64_t from, std::uint64_t to, std::vector<int> links) {
  single_links_ &= links.size() == 1;
  if (!single_links_) return;
  const std::uint32_t a = point(from), b = point(to);
  out_[a].push_back({b, links.front()});
  in_[b].push_back({a, links.front()});
}

void ShortestRoutes::begin(Side& side, std::uint32_t point) {
  side.search.resize(out_.size(), 0);
  side.distance.resize(out_.size(), 0);
  side.search[point] = searches_;
  side.distance[point] = side.depth = 0;
  side.frontier = {point};
}

std::vector<std::uint32_t> ShortestRoutes::expand(Side& side, const Side& other,
                                                  const std::vector<std::vector<Connection>>& ways) {
  std::vector<std::uint32_t> reached, meeting;
  ++side.depth;
  for (const std::uint32_t from : side.frontier)
    for (const Connection& way : ways[from]) {
      if (knows(side, way.point)) continue;
      side.search[way.point] = searches_;
      side.distance[way.point] = side.depth;
      reached.push_back(way.point);
      if (knows(other, way.point)) meeting.push_back(way.point);
    }
  side.frontier = std::move(reached);
  return meeting;
}

std::optional<std::vector<int>> ShortestRoutes::find(std::uint64_t from, std::uint64_t to) {
  const auto source = number_.find(from), target = number_.find(to);
  if (source == number_.end() || target == number_.end()) return std::nullopt;
  ++searches_;
  begin(ahead_, source->second);
  begin(back_, target->second);
  std::vector<std::uint32_t> meeting;
  while (meeting.empty()) {
    const bool forwards = ahead_.frontier.size() <= back_.frontier.size();
    Side& side = forwards ? ahead_ : back_;
    if (side.frontier.empty()) return std::nullopt;
    meeting = forwards ? expand(ahead_, back_, out_) : expand(back_, ahead_, in_);
  }

  // On the target's side, only what is reached from a meeting point is on a way.
  std::vector<std::vector<std::uint32_t>> level(back_.depth + 1);  // by distance to the target
  level[back_.depth] = meeting;
  for (std::uint32_t left = back_.depth; left-- > 0;) {
    for (const std::uint32_t from_here : level[left + 1])
      for (const Connection& way : out_[from_here])
        if (knows(back_, way.point) && back_.distance[way.point] == left) level[left].push_back(way.point);
    std::ranges::sort(level[left]);
    level[left].erase(std::unique(level[left].begin(), level[left].end()), level[left].end());
  }

  std::vector<int> links;
  std::uint32_t at = target->second;
  const auto step_back = [&](auto is_closer) {
    const Connection* best = nullptr;
    for (const Connection& way : in_[at])
      if (is_closer(way.point) && (best == nullptr || way.point < best->point)) best = &way;
    links.push_back(best->link);
    at = best->point;
  };
  std::ranges::sort(level[back_.depth]);
  for (std::uint32_t left = 1; left <= back_.depth; ++left)
    step_back([&](std::uint32_t p) { return std::ranges::binary_search(level[left], p); });
  for (std::uint32_t gone = ahead_.distance[at]; gone-- > 0;)
    step_back([&](std::uint32_t p) { return knows(ahead_, p) && ahead_.distance[p] == gone; });
  std::ranges::reverse(links);
  return links;
}

}  // namespace epocast
