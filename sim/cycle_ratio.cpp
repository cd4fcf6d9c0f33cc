#include "sim/cycle_ratio.hpp"

#include <algorithm>
#include <utility>

namespace epocast {
namespace {

/// A policy is one arc out of each vertex. Following it leads from anywhere to one of its cycles. The policy changes
/// where another arc leads to a better cycle, or, for the same cycle, by a longer way.
class PolicyIteration {
 public:
  PolicyIteration(std::size_t vertices, const std::vector<RatioArc>& arcs)
      : arcs_(arcs),
        first_(vertices + 1, 0),
        leaving_(arcs.size()),
        policy_(vertices),
        ratio_(vertices),
        way_(vertices) {
    for (const RatioArc& arc : arcs) {
      ++first_[arc.from + 1];
      tolerance_ += kTolerance * arc.weight;
    }
    for (std::size_t v = 0; v < vertices; ++v) first_[v + 1] += first_[v];
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (std::uint32_t a = 0; a < arcs.size(); ++a) leaving_[next[arcs[a].from]++] = a;
    // A start near the end: on with the same iteration, to another vertex if there is one.
    for (std::size_t v = 0; v < vertices; ++v)
      policy_[v] =
          *std::min_element(begin(v), end(v), [&](std::uint32_t a, std::uint32_t b) { return haste(a) < haste(b); });
    sort_vertices();
  }

  /// The arcs of the best cycle.
  std::vector<std::size_t> run() {
    evaluate();
    for (int k = 0; k < kMaxIterations && (choose_better_cycles() || choose_longer_ways()); ++k) evaluate();
    auto v = static_cast<std::size_t>(std::max_element(ratio_.begin(), ratio_.end()) - ratio_.begin());
    for (std::size_t k = 0; k < policy_.size(); ++k) v = follow(v);  // leads to its cycle within so many steps
    std::vector<std::size_t> cycle;
    for (const std::size_t start = v; cycle.empty() || v != start; v = follow(v)) cycle.push_back(policy_[v]);
    return cycle;
  }

 private:
  static constexpr double kTolerance = 1e-13;  ///< of all weights: what counts as longer and not as rounding
  /// Far more than needed. Whatever the policy, its cycles are cycles: to stop early weakens the result, no more.
  static constexpr int kMaxIterations = 10000;

  std::pair<double, bool> haste(std::size_t a) const { return {arcs_[a].lag, arcs_[a].from == arcs_[a].to}; }
  std::vector<std::uint32_t>::const_iterator begin(std::size_t v) const {
    return leaving_.begin() + static_cast<std::ptrdiff_t>(first_[v]);
  }
  std::vector<std::uint32_t>::const_iterator end(std::size_t v) const {
    return leaving_.begin() + static_cast<std::ptrdiff_t>(first_[v + 1]);
  }
  std::size_t follow(std::size_t v) const { return arcs_[policy_[v]].to; }
  /// From v by arc a, as far as the cycle's root, where each lag takes off the cycle's ratio.
  double way_by(std::size_t v, std::size_t a) const {
    return arcs_[a].weight - ratio_[v] * arcs_[a].lag + way_[arcs_[a].to];
  }

  /// Vertices in an order in which arcs without lag lead backwards: a change spreads along all of them in one pass.
  void sort_vertices() {
    std::vector<std::uint32_t> waits(policy_.size(), 0);
    for (const RatioArc& arc : arcs_)
      if (arc.lag == 0) ++waits[arc.to];
    order_.reserve(policy_.size());
    for (std::uint32_t v = 0; v < policy_.size(); ++v)
      if (waits[v] == 0) order_.push_back(v);
    for (std::size_t next = 0; next < order_.size(); ++next)
      for (auto a = begin(order_[next]); a != end(order_[next]); ++a)
        if (arcs_[*a].lag == 0 && --waits[arcs_[*a].to] == 0) order_.push_back(arcs_[*a].to);
    std::reverse(order_.begin(), order_.end());
  }

  /// For each vertex the ratio of the cycle that it leads to, and the way there.
  void evaluate() {
    enum class Mark : char { none, on_path, done };
    std::vector<Mark> mark(policy_.size(), Mark::none);
    std::vector<std::size_t> path;
    for (std::size_t start = 0; start < policy_.size(); ++start) {
      std::size_t v = start;
      for (path.clear(); mark[v] == Mark::none; v = follow(v)) {
        mark[v] = Mark::on_path;
        path.push_back(v);
      }
      if (mark[v] == Mark::on_path) {
        const auto entry = std::find(path.begin(), path.end(), v);
        evaluate_cycle({entry, path.end()});
        for (auto on_cycle = entry; on_cycle != path.end(); ++on_cycle) mark[*on_cycle] = Mark::done;
        path.erase(entry, path.end());
      }
      for (; !path.empty(); path.pop_back()) {
        const std::size_t u = path.back();
        ratio_[u] = ratio_[follow(u)];
        way_[u] = way_by(u, policy_[u]);
        mark[u] = Mark::done;
      }
    }
  }

  /// The root is the smallest vertex, so that the same cycle has the same values, to the last bit, whenever it is met.
  void evaluate_cycle(std::vector<std::size_t> cycle) {
    std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
    double weight = 0, lag = 0;
    for (const std::size_t v : cycle) {
      weight += arcs_[policy_[v]].weight;
      lag += arcs_[policy_[v]].lag;
    }
    for (const std::size_t v : cycle) ratio_[v] = weight / lag;
    for (std::size_t k = cycle.size(); k-- > 1;) way_[cycle[k]] = way_by(cycle[k], policy_[cycle[k]]);
  }

  /// Each change is used at once by the vertices before, which spreads a better cycle along a chain in one pass.
  bool choose_better_cycles() {
    bool any = false;
    for (bool again = true; again; any = any || again) {
      again = false;
      for (const std::uint32_t v : order_)
        for (auto a = begin(v); a != end(v); ++a)
          if (ratio_[arcs_[*a].to] > ratio_[v]) {
            ratio_[v] = ratio_[arcs_[*a].to];
            policy_[v] = *a;
            again = true;
          }
    }
    return any;
  }

  bool choose_longer_ways() {
    bool any = false;
    for (const std::uint32_t v : order_)
      for (auto a = begin(v); a != end(v); ++a)
        if (ratio_[arcs_[*a].to] == ratio_[v] && way_by(v, *a) > way_[v] + tolerance_) {
          way_[v] = way_by(v, *a);
          policy_[v] = *a;
          any = true;
        }
    return any;
  }

  const std::vector<RatioArc>& arcs_;
  std::vector<std::uint32_t> first_, leaving_;  ///< arcs by the vertex that they leave
  std::vector<std::uint32_t> order_;            ///< vertices
  std::vector<std::uint32_t> policy_;           ///< by vertex: an arc
  std::vector<double> ratio_, way_;             ///< by vertex
  double tolerance_ = 0;
};

/// Weight per lag; summed from the smallest vertex on, so that the same cycle has the same ratio, to the last bit.
CriticalCycle measured(std::vector<std::size_t> cycle, const std::vector<RatioArc>& arcs) {
  if (cycle.empty()) return {};
  const auto first = std::ranges::min_element(cycle, {}, [&](std::size_t a) { return arcs[a].from; });
  std::rotate(cycle.begin(), first, cycle.end());
  double weight = 0, lag = 0;
  for (const std::size_t a : cycle) {
    weight += arcs[a].weight;
    lag += arcs[a].lag;
  }
  return {weight / lag, std::move(cycle)};
}

/// The graph without vertices that only one other follows: no cycle passes through them but by that way. What a vertex
/// has of its own, an arc back to itself, is a cycle by itself; of two arcs between the same vertices the better
/// counts.
class ShortenedGraph {
 public:
  ShortenedGraph(std::size_t vertices, const std::vector<RatioArc>& arcs)
      : arcs_(arcs), only_way_(vertices, kNone), place_(vertices, kKept), beyond_(vertices) {
    for (std::uint32_t a = 0; a < arcs.size(); ++a) {
      if (arcs[a].from == arcs[a].to) continue;
      std::uint32_t& way = only_way_[arcs[a].from];
      way = way == kNone ? a : kSeveral;
    }
    for (std::uint32_t v = 0; v < vertices; ++v)
      if (only_way_[v] < kSeveral) place_[v] = kUnknown;
    for (std::uint32_t v = 0; v < vertices; ++v) find_end(v);
    for (std::uint32_t v = 0; v < vertices; ++v)
      if (place_[v] == kKept) place_[v] = kept_++;
    first_.assign(kept_, kNone);
    short_.reserve(arcs.size());  // of what is never written, nothing is in memory
    origin_.reserve(arcs.size());
    for (std::uint32_t a = 0; a < arcs.size(); ++a)
      if (arcs[a].from == arcs[a].to)
        add_own(a);
      else if (place_[arcs[a].from] != kPassed)
        add(a);
  }

  /// Whether by so much that another round is worth its time.
  bool is_much_shorter() const { return kept_ < place_.size() * 9 / 10; }
  std::size_t vertices() const { return kept_; }
  const std::vector<RatioArc>& arcs() const { return short_; }

  /// The original arcs of a cycle of this graph, or of the best one that it lacks.
  std::vector<std::size_t> original(const std::vector<std::size_t>& cycle) const {
    std::vector<std::size_t> out;
    for (const std::size_t a : cycle) {
      out.push_back(origin_[a]);
      for (std::uint32_t v = arcs_[origin_[a]].to; place_[v] == kPassed; v = way_on(v).to) out.push_back(only_way_[v]);
    }
    if (best_own_ != kNone && (out.empty() || measured(out, arcs_).ratio < ratio(best_own_))) return {best_own_};
    return out;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0}, kSeveral = kNone - 1;
  enum : std::uint32_t { kPassed = kNone, kKept = kNone - 1, kUnknown = kNone - 2, kOnPath = kNone - 3 };
  /// From a vertex that is passed over to the kept one where its way ends.
  struct Way {
    std::uint32_t end = 0;
    double weight = 0, lag = 0;
  };

  double ratio(std::size_t a) const { return arcs_[a].weight / arcs_[a].lag; }
  const RatioArc& way_on(std::uint32_t v) const { return arcs_[only_way_[v]]; }

  /// Of v and all on its way. Where that leads back to itself, one vertex is kept.
  void find_end(std::uint32_t v) {
    path_.clear();
    for (; place_[v] == kUnknown; v = way_on(v).to) {
      place_[v] = kOnPath;
      path_.push_back(v);
    }
    if (place_[v] == kOnPath) place_[v] = kKept;
    for (; !path_.empty(); path_.pop_back()) {
      const std::uint32_t u = path_.back();
      if (place_[u] == kKept) continue;
      beyond_[u] = extended(way_on(u));
      place_[u] = kPassed;
    }
  }

  Way extended(const RatioArc& arc) const {
    if (place_[arc.to] != kPassed) return {arc.to, arc.weight, arc.lag};
    const Way& more = beyond_[arc.to];
    return {more.end, arc.weight + more.weight, arc.lag + more.lag};
  }

  void add(std::uint32_t a) {
    const Way way = extended(arcs_[a]);
    const RatioArc arc{place_[arcs_[a].from], place_[way.end], way.weight, way.lag};
    const std::uint32_t first = first_[arc.from];
    if (first != kNone && short_[first].to == arc.to) {
      RatioArc& other = short_[first];
      if (other.weight >= arc.weight && other.lag <= arc.lag) return;
      if (arc.weight >= other.weight && arc.lag <= other.lag) {
        other = arc;
        origin_[first] = a;
        return;
      }
    }
    if (first == kNone) first_[arc.from] = static_cast<std::uint32_t>(short_.size());
    short_.push_back(arc);
    origin_.push_back(a);
  }

  /// A vertex that no other follows keeps its own arc: it is on no other cycle.
  void add_own(std::uint32_t a) {
    const std::uint32_t v = arcs_[a].from;
    if (best_own_ == kNone || ratio(a) > ratio(best_own_)) best_own_ = a;
    if (only_way_[v] == kNone) add(a);
  }

  const std::vector<RatioArc>& arcs_;
  std::vector<std::uint32_t> only_way_;  ///< by vertex: the arc to another, if there is one only
  std::vector<std::uint32_t> place_;     ///< by vertex: its number among those that are kept
  std::vector<Way> beyond_;              ///< by vertex that is passed over
  std::vector<std::uint32_t> path_;
  std::uint32_t kept_ = 0;
  std::vector<std::uint32_t> first_;  ///< by kept vertex: its first arc
  std::vector<RatioArc> short_;
  std::vector<std::uint32_t> origin_;  ///< by arc of short_: its first original one
  std::uint32_t best_own_ = kNone;
};

std::vector<std::size_t> best_cycle(std::size_t vertices, const std::vector<RatioArc>& arcs) {
  const ShortenedGraph graph(vertices, arcs);
  if (graph.vertices() == 0) return graph.original({});
  return graph.original(graph.is_much_shorter() ? best_cycle(graph.vertices(), graph.arcs())
                                                : PolicyIteration(graph.vertices(), graph.arcs()).run());
}

}  // namespace

CriticalCycle critical_cycle(std::size_t vertices, const std::vector<RatioArc>& arcs) {
  if (vertices == 0) return {};
  return measured(best_cycle(vertices, arcs), arcs);
}

}  // namespace epocast
