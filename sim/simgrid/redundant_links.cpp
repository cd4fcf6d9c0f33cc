#include "sim/simgrid/redundant_links.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>

namespace epocast {
namespace {

constexpr double kRounding = 1e-9;  // of sums of bandwidths, relative

/// A connection by its ends.
struct Crossing {
  std::uint32_t from = 0, to = 0;
};

class LinkSearch {
 public:
  LinkSearch(const ShortestRoutes& routes, const std::vector<LinkCapacity>& links, bool turning)
      : routes_(routes), links_(links), turning_(turning), crossings_(links.size()), counted_(links.size(), 0) {
    const ShortestRoutes::Ways& out = routes.out();
    for (std::uint32_t from = 0; from < out.size(); ++from)
      for (const auto& [to, link] : out[from]) crossings_[static_cast<std::size_t>(link)].push_back({from, to});
    substitutes_.resize(links.size());
  }

  std::vector<bool> find() {
    std::vector<int> order(links_.size());
    std::iota(order.begin(), order.end(), 0);
    // What is wide gives way to what is narrow; so of a chain of equally fast links the narrow end's neighbour is left.
    std::ranges::stable_sort(order, [&](int a, int b) { return of(a).bandwidth > of(b).bandwidth; });
    std::vector<bool> redundant(links_.size(), false);
    for (const int link : order) {
      if (!of(link).shared || crossings_[index(link)].empty()) continue;
      auto found = neighbours(link, true);
      if (!found) found = neighbours(link, false);
      if (!found) continue;
      substitutes_[index(link)] = std::move(*found);
      redundant[index(link)] = true;
    }
    return redundant;
  }

 private:
  static std::size_t index(int link) { return static_cast<std::size_t>(link); }
  const LinkCapacity& of(int link) const { return links_[index(link)]; }

  /// The links by which all of its flows come, or else go on, with others in the place of redundant ones; none if those
  /// carry more than it does, if it would stand in for itself, or if some flow begins or ends there.
  std::optional<std::vector<int>> neighbours(int link, bool near) {
    ++search_;
    std::vector<int> found;
    double sum = 0;
    const auto count = [&](auto& self, int other) {
      if (counted_[index(other)] == search_) return true;
      counted_[index(other)] = search_;
      const std::vector<int>& instead = substitutes_[index(other)];  // links that were not redundant when it became so
      if (!instead.empty())
        return std::ranges::all_of(instead, [&](int one) { return one != link && self(self, one); });
      if (!of(other).shared || (sum += of(other).bandwidth) > of(link).bandwidth * (1 + kRounding)) return false;
      found.push_back(other);
      return true;
    };
    for (const Crossing& crossing : crossings_[index(link)]) {
      const std::uint32_t here = near ? crossing.from : crossing.to, there = near ? crossing.to : crossing.from;
      if (routes_.is_end(here)) return std::nullopt;
      for (const auto& [point, other] : (near ? routes_.in() : routes_.out())[here]) {
        // Few routes turn back; and what a link hands to itself has come to it before.
        if ((point != there || turning_) && other != link && !count(count, other)) return std::nullopt;
      }
    }
    if (found.empty()) return std::nullopt;  // nothing goes on from here
    return found;
  }

  const ShortestRoutes& routes_;
  const std::vector<LinkCapacity>& links_;
  bool turning_;
  std::vector<std::vector<Crossing>> crossings_;  ///< by link
  std::vector<std::vector<int>> substitutes_;     ///< by redundant link
  std::vector<std::uint32_t> counted_;            ///< by link: the search that has counted it
  std::uint32_t search_ = 0;
};

}  // namespace

std::vector<bool> find_redundant_links(const ShortestRoutes& routes, const std::vector<LinkCapacity>& links,
                                       bool turning) {
  return LinkSearch(routes, links, turning).find();
}

}  // namespace epocast
