#include "sim/simgrid/single_bottleneck.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace epocast {
namespace {

/// Links joined by flows (union-find with path halving).
class Components {
 public:
  explicit Components(int links) : parent_(static_cast<std::size_t>(links)) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  int of(int link) {
    while (parent(link) != link) link = parent(link) = parent(parent(link));
    return link;
  }
  void join(int a, int b) { parent(of(a)) = of(b); }

 private:
  int& parent(int link) { return parent_[static_cast<std::size_t>(link)]; }
  std::vector<int> parent_;
};

/// The link that all routes of the group cross and than which no other on them is slower; -1 if there is none.
int common_bottleneck(SimEngine& engine, const std::vector<std::pair<int, int>>& pairs) {
  std::map<int, std::size_t> crossed;  // by how many routes
  for (const auto& [src, dst] : pairs) {
    std::vector<int> links = engine.route(src, dst).links;
    std::sort(links.begin(), links.end());
    if (std::adjacent_find(links.begin(), links.end()) != links.end()) return -1;  // counts twice
    for (const int link : links) {
      if (engine.link_sharing(link) == LinkSharing::kOther) return -1;
      ++crossed[link];
    }
  }
  int common = -1;
  for (const auto& [link, count] : crossed)
    if (count == pairs.size() && engine.link_sharing(link) == LinkSharing::kShared &&
        (common < 0 || engine.link_bandwidth(link) < engine.link_bandwidth(common)))
      common = link;
  if (common < 0) return -1;
  const bool slowest = std::all_of(crossed.begin(), crossed.end(), [&](const auto& entry) {
    return engine.link_bandwidth(entry.first) >= engine.link_bandwidth(common);
  });
  return slowest ? common : -1;
}

}  // namespace

std::vector<BottleneckGroup> find_single_bottlenecks(SimEngine& engine, const std::vector<std::pair<int, int>>& pairs) {
  Components components(engine.link_count());
  const auto first_shared = [&](const std::pair<int, int>& pair) {
    int first = -1;
    for (const int link : engine.route(pair.first, pair.second).links) {
      if (engine.link_sharing(link) == LinkSharing::kFatpipe) continue;  // flows on it do not meet
      if (first >= 0) components.join(first, link);
      first = link;
    }
    return first;
  };
  for (const auto& pair : pairs) first_shared(pair);
  std::map<int, std::vector<std::pair<int, int>>> members;
  for (const auto& pair : pairs)
    if (const int link = first_shared(pair); link >= 0) members[components.of(link)].push_back(pair);

  std::vector<BottleneckGroup> groups;
  for (auto& [component, group] : members)
    if (const int link = common_bottleneck(engine, group); link >= 0) groups.push_back({link, std::move(group)});
  return groups;
}

}  // namespace epocast
