#include "sim/collectives/ring_search.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>
#include <utility>

#include "sim/collectives/packing_program.hpp"

namespace epocast {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kTolerance = 1e-9;  // of prices around 1 and of capacities in parts of the largest
constexpr int kMaxPivots = 1000;     // ends a simplex method that goes in circles; what it has then is used

struct Cycle {
  std::vector<int> order;
  double length = kNever;
};

/// The cycle through all ranks whose edges add up to the least, in the sense of `add`; edge (i, j) is edge(j, i) too.
/// Ways are built up by the set of ranks that they have visited and the last one of them.
template <class Edge, class Add>
Cycle shortest_cycle(int ranks, Edge edge, Add add) {
  const int others = ranks - 1;  // all but rank 0, where the cycle starts
  const std::size_t sets = std::size_t{1} << others;
  std::vector<double> length(sets * static_cast<std::size_t>(others), kNever);
  std::vector<signed char> before(length.size(), -1);
  const auto at = [others](std::size_t set, int last) { return set * static_cast<std::size_t>(others) + last; };
  for (int j = 0; j < others; ++j) length[at(std::size_t{1} << j, j)] = edge(0, j + 1);
  for (std::size_t set = 1; set < sets; ++set)
    for (int last = 0; last < others; ++last) {
      const double so_far = length[at(set, last)];
      if (so_far == kNever) continue;
      for (int next = 0; next < others; ++next) {
        if ((set >> next & 1) != 0) continue;
        const double total = add(so_far, edge(last + 1, next + 1));
        const std::size_t state = at(set | std::size_t{1} << next, next);
        if (total >= length[state]) continue;
        length[state] = total;
        before[state] = static_cast<signed char>(last);
      }
    }
  Cycle best;
  int last = -1;
  for (int j = 0; j < others; ++j) {
    const double total = add(length[at(sets - 1, j)], edge(j + 1, 0));
    if (total >= best.length) continue;
    best.length = total;
    last = j;
  }
  for (std::size_t set = sets - 1; last >= 0;) {
    best.order.push_back(last + 1);
    const int previous = before[at(set, last)];
    set &= ~(std::size_t{1} << last);
    last = previous;
  }
  if (!best.order.empty()) best.order.push_back(0);
  std::reverse(best.order.begin(), best.order.end());
  return best;
}

class Search {
 public:
  explicit Search(const PairNetwork& network)
      : network_(network),
        unit_(*std::max_element(network.capacity.begin(), network.capacity.end())),
        program_(scaled(network.capacity, 1 / unit_)) {
    const auto over_direct_links = [&](int i, int j) { return network.direct[network.index(i, j)] ? 0.0 : kNever; };
    direct_only_ = !shortest_cycle(network.ranks, over_direct_links, std::plus<>()).order.empty();
  }

  std::vector<Ring> run() {
    enter_widest();
    for (int pivots = 0; pivots < kMaxPivots; ++pivots) {
      const std::vector<double> price = program_.prices();
      const auto cheapest = std::min_element(price.begin(), price.end());
      if (*cheapest < -kTolerance) {
        program_.enter_slack(static_cast<int>(cheapest - price.begin()));
        continue;
      }
      const Cycle cycle = shortest_cycle(
          network_.ranks, [&](int i, int j) { return over(i, j, 0, [&](double p, int r) { return p + price[r]; }); },
          std::plus<>());
      if (cycle.length >= 1 - kTolerance || !enter(cycle.order)) break;
    }
    return rings();
  }

 private:
  static std::vector<double> scaled(std::vector<double> values, double factor) {
    for (double& value : values) value *= factor;
    return values;
  }

  /// Folds the resources between two ranks, in both directions; kNever if the search is not to use the pair.
  template <class Fold>
  double over(int i, int j, double value, Fold fold) const {
    if (direct_only_ && !network_.direct[network_.index(i, j)]) return kNever;
    for (const std::size_t pair : {network_.index(i, j), network_.index(j, i)})
      for (const int resource : network_.resources_of[pair]) value = fold(value, resource);
    return value;
  }

  void enter_widest() {
    while (true) {
      const std::vector<double> left = program_.slack();
      // The narrowest edge counts: the least of the largest of what is no width.
      const Cycle cycle = shortest_cycle(
          network_.ranks,
          [&](int i, int j) { return over(i, j, -1, [&](double w, int r) { return std::max(w, -left[r]); }); },
          [](double a, double b) { return std::max(a, b); });
      if (cycle.length >= -kTolerance || !enter(cycle.order)) return;
    }
  }

  bool enter(const std::vector<int>& order) {
    std::vector<double> column(network_.capacity.size(), 0);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const int from = order[i], to = order[(i + 1) % order.size()];
      for (const std::size_t pair : {network_.index(from, to), network_.index(to, from)})
        for (const int resource : network_.resources_of[pair]) ++column[resource];
    }
    if (program_.enter(column) < 0) return false;
    orders_.push_back(order);
    return true;
  }

  std::vector<Ring> rings() {
    const std::vector<double> rate = program_.values();
    std::vector<std::size_t> by_rate(rate.size());
    std::iota(by_rate.begin(), by_rate.end(), 0);
    std::erase_if(by_rate, [&](std::size_t c) { return rate[c] <= kTolerance; });
    std::stable_sort(by_rate.begin(), by_rate.end(),
                     [&](std::size_t a, std::size_t b) { return rate[a] > rate[b] * (1 + kTolerance); });
    double total = 0;
    for (const std::size_t c : by_rate) total += 2 * rate[c];
    std::vector<Ring> out;
    for (const std::size_t c : by_rate) {
      std::vector<int> order = orders_[c];
      out.push_back({order, rate[c] / total});
      std::reverse(order.begin() + 1, order.end());
      out.push_back({std::move(order), rate[c] / total});
    }
    return out;
  }

  const PairNetwork& network_;
  double unit_;  ///< B/s: capacities are in parts of it
  PackingProgram program_;
  bool direct_only_ = false;
  std::vector<std::vector<int>> orders_;  ///< by column of the program
};

}  // namespace

std::vector<Ring> find_rings(const PairNetwork& network) {
  assert(network.ranks >= 3 && network.ranks <= kMaxRingSearch);
  return Search(network).run();
}

}  // namespace epocast
