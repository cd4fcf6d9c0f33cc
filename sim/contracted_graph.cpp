#include "sim/contracted_graph.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

namespace epocast {
namespace {

constexpr double kWorthwhile = 0.9;  // of its arcs; a graph that loses fewer is not gone through once more
constexpr std::size_t kFew = 8;      // ways that leave a vertex; of more, e.g. a server's, shortcuts are not looked for

bool is_loop(const RatioArc& arc) { return arc.from == arc.to; }
double ratio(const RatioArc& loop) { return loop.weight / loop.lag; }

}  // namespace

ContractedGraph::ContractedGraph(std::size_t vertices, const std::vector<RatioArc>& arcs)
    : vertices_(vertices), originals_(arcs) {
  ways_.reserve(arcs.size() - static_cast<std::size_t>(std::ranges::count_if(arcs, is_loop)));
  for (Way way = 0; way < arcs.size(); ++way) add(way, ways_);
  keep_heaviest(ways_);
  for (bool again = true; again;) {
    leave_out_shortcuts(ways_);
    again = pass_by(Direction::forwards, ways_);
    again = pass_by(Direction::backwards, ways_) || again;
  }

  constexpr std::uint32_t kGone = static_cast<std::uint32_t>(-1);
  std::vector<std::uint32_t> number(vertices, kGone);
  for (const Way way : ways_) number[arc(way).from] = number[arc(way).to] = 0;
  vertices_ = 0;
  for (std::uint32_t& v : number)
    if (v != kGone) v = static_cast<std::uint32_t>(vertices_++);
  std::vector<bool> leads_on(vertices_, false);
  for (const Way way : ways_) {
    const RatioArc& old = arc(way);
    arcs_.push_back({number[old.from], number[old.to], old.weight, old.lag});
    leads_on[number[old.from]] = true;
  }
  for (std::uint32_t v = 0; v < vertices_; ++v) {
    if (leads_on[v]) continue;
    arcs_.push_back({v, v, 0, 1});
    ways_.push_back(kNoWay);
  }
}

void ContractedGraph::add(Way way, std::vector<Way>& ways) {
  if (!is_loop(arc(way)))
    ways.push_back(way);
  else if (loop_ == kNoWay || ratio(arc(way)) > ratio(arc(loop_)))
    loop_ = way;
}

bool ContractedGraph::pass_by(Direction direction, std::vector<Way>& ways) {
  const bool forwards = direction == Direction::forwards;
  const auto tail = [&](Way way) { return forwards ? arc(way).from : arc(way).to; };
  const auto head = [&](Way way) { return forwards ? arc(way).to : arc(way).from; };
  const auto followed_by = [&](Way way, Way next) { return forwards ? join(way, next) : join(next, way); };
  constexpr Way kSeveral = kNoWay - 1;
  std::vector<Way> only(vertices_, kNoWay);  // by vertex: the way that leaves it, if it is one
  for (const Way way : ways) only[tail(way)] = only[tail(way)] == kNoWay ? way : kSeveral;
  const auto is_passed = [&](std::uint32_t v) { return only[v] < kSeveral; };

  // The way of a vertex that is passed by becomes the whole way to the next that is not.
  enum class Mark : char { none, on_path, done };
  std::vector<Mark> mark(vertices_, Mark::none);
  std::vector<std::uint32_t> path;
  for (std::uint32_t start = 0; start < vertices_; ++start) {
    std::uint32_t v = start;
    for (path.clear(); is_passed(v) && mark[v] == Mark::none; v = head(only[v])) {
      mark[v] = Mark::on_path;
      path.push_back(v);
    }
    if (is_passed(v) && mark[v] == Mark::on_path) only[v] = kSeveral;  // a cycle of such vertices needs one that stays
    for (; !path.empty(); path.pop_back()) {
      const std::uint32_t u = path.back();
      mark[u] = Mark::done;
      if (!is_passed(u)) continue;
      if (const std::uint32_t next = head(only[u]); is_passed(next)) only[u] = followed_by(only[u], only[next]);
    }
  }

  std::vector<Way> left;
  for (const Way way : ways) {
    if (is_passed(tail(way))) continue;
    const std::uint32_t next = head(way);
    const Way whole = is_passed(next) ? followed_by(way, only[next]) : way;
    if (only[head(whole)] != kNoWay) add(whole, left);  // else it leads nowhere
  }
  keep_heaviest(left);
  const bool worthwhile = static_cast<double>(left.size()) < kWorthwhile * static_cast<double>(ways.size());
  ways = std::move(left);
  return worthwhile;
}

ContractedGraph::Leaving ContractedGraph::by_vertex(std::vector<Way>& ways) const {
  Leaving first(vertices_ + 1, 0);
  for (const Way way : ways) ++first[arc(way).from + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<Way> sorted(ways.size());
  Leaving next(first.begin(), first.end() - 1);
  for (const Way way : ways) sorted[next[arc(way).from]++] = way;
  ways = std::move(sorted);
  return first;
}

void ContractedGraph::keep_heaviest(std::vector<Way>& ways) const {
  const Leaving first = by_vertex(ways);
  const auto ends = [&](Way way) { return std::pair(arc(way).to, arc(way).lag); };
  std::size_t kept = 0;
  for (std::size_t v = 0; v < vertices_; ++v) {
    const auto leaving = std::span(ways).subspan(first[v], first[v + 1] - first[v]);
    std::ranges::sort(leaving, [&](Way a, Way b) {
      return std::tuple(ends(a), -arc(a).weight, a) < std::tuple(ends(b), -arc(b).weight, b);
    });
    for (std::size_t k = 0; k < leaving.size(); ++k)
      if (k == 0 || ends(leaving[k]) != ends(leaving[k - 1])) ways[kept++] = leaving[k];
  }
  ways.resize(kept);
}

void ContractedGraph::leave_out_shortcuts(std::vector<Way>& ways) const {
  const Leaving first = by_vertex(ways);
  const auto few = [&](std::uint32_t v) {
    const std::size_t leaving = first[v + 1] - first[v];
    return std::span(ways).subspan(first[v], leaving <= kFew ? leaving : 0);
  };
  const auto is_shortcut = [&](const RatioArc& one) {
    return std::ranges::any_of(few(one.from), [&](Way way) {
      const RatioArc& by = arc(way);
      if (by.to == one.to || by.lag > one.lag) return false;
      return std::ranges::any_of(few(by.to), [&](Way other) {
        const RatioArc& on = arc(other);
        return on.to == one.to && by.lag + on.lag <= one.lag && by.weight + on.weight >= one.weight;
      });
    });
  };
  std::vector<bool> shortcut(ways.size());
  for (std::size_t k = 0; k < ways.size(); ++k) shortcut[k] = is_shortcut(arc(ways[k]));
  std::size_t kept = 0;
  for (std::size_t k = 0; k < ways.size(); ++k)
    if (!shortcut[k]) ways[kept++] = ways[k];
  ways.resize(kept);
}

ContractedGraph::Way ContractedGraph::join(Way first, Way second) {
  const RatioArc &a = arc(first), &b = arc(second);
  joined_.push_back({{a.from, b.to, a.weight + b.weight, a.lag + b.lag}, first, second});
  return static_cast<Way>(originals_.size() + joined_.size() - 1);
}

std::vector<std::size_t> ContractedGraph::expand(Way way) const {
  std::vector<std::size_t> out;
  if (way == kNoWay) return out;
  for (std::vector<Way> waiting{way}; !waiting.empty();) {
    const Way next = waiting.back();
    waiting.pop_back();
    if (next < originals_.size()) {
      out.push_back(next);
      continue;
    }
    const Joined& joined = joined_[next - originals_.size()];
    waiting.push_back(joined.second);
    waiting.push_back(joined.first);
  }
  return out;
}

}  // namespace epocast
