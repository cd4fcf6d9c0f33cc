#include "strategies/partitioners/class_annealing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "strategies/partitioners/simple_partitioners.hpp"
#include "strategies/partitioners/vertex_groups.hpp"

namespace epocast {
namespace {

constexpr double kStepsPerStart = 3e6;
constexpr int kManyClasses = 1000;

/// One vertices' move of a step, for taking it back.
struct Moved {
  int of_class, number, from, to;
};

class Annealing {
 public:
  Annealing(ClassCounts& counts, std::vector<double> limits, std::vector<bool> fixed_class, double slack,
            std::uint64_t seed)
      : counts_(counts), limits_(std::move(limits)), fixed_(std::move(fixed_class)), slack_(slack), random_(seed) {
    for (int part = 0; part < counts_.parts(); ++part)
      if (limits_[static_cast<std::size_t>(part)] > 0) open_.push_back(part);
  }

  /// Spreads all free classes from part 0 to the part with the most room, heaviest vertices first.
  void spread() {
    std::vector<int> order;
    for (int c = 0; c < counts_.classes(); ++c)
      if (!fixed_[static_cast<std::size_t>(c)]) order.push_back(c);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return counts_.weight(a) > counts_.weight(b); });
    Partition start = counts_.partition();
    std::vector<double> load(limits_.size());
    for (const int c : order) {
      for (int left = counts_.count(c, open_.front()), target = 0; left > 0; --left) {
        target = open_.front();
        for (const int part : open_)
          if (limits_[static_cast<std::size_t>(part)] - load[static_cast<std::size_t>(part)] >
              limits_[static_cast<std::size_t>(target)] - load[static_cast<std::size_t>(target)])
            target = part;
        load[static_cast<std::size_t>(target)] += counts_.weight(c);
        if (target != open_.front()) pending_.push_back({c, 1, open_.front(), target});
      }
    }
    for (const Moved& m : pending_) counts_.move(m.of_class, m.number, m.from, m.to);
    pending_.clear();
  }

  /// Best partition within the limits, if any was met.
  std::optional<Partition> run(double steps, double heat) {
    if (open_.size() < 2) return feasible() ? std::optional(counts_.partition()) : std::nullopt;
    const auto total = static_cast<long>(steps);
    set_scales();
    keep_best();
    for (long step = 0; step < total; ++step) {
      if (step % 64 == 0) {
        const double progress = static_cast<double>(step) / static_cast<double>(total);
        temperature_ = heat * hot_ * std::pow(1e-5, progress);
        penalty_ = base_penalty_ * std::pow(100.0, progress);
      }
      try_step();
    }
    temperature_ = 0;
    penalty_ = base_penalty_ * 1e4;
    for (long step = 0; step < total / 10; ++step) try_step();
    keep_best();
    return best_;
  }

 private:
  double over(int part) const {
    return std::max(0.0, counts_.load(part) - limits_[static_cast<std::size_t>(part)] - slack_);
  }

  bool feasible() const {
    return std::all_of(open_.begin(), open_.end(), [&](int part) { return over(part) <= 0; });
  }

  void keep_best() {
    if (counts_.cost() >= best_cost_ - 1e-12 || !feasible()) return;
    best_cost_ = counts_.cost();
    best_ = counts_.partition();
  }

  /// Temperature and price of overload from what random steps change.
  void set_scales() {
    double change = 0, weight = 0;
    constexpr int kSamples = 2000;
    temperature_ = 0;
    penalty_ = 0;
    for (int i = 0; i < kSamples; ++i) {
      propose();
      const double before = counts_.cost();
      double moved = 0;
      for (const Moved& m : pending_) {
        counts_.move(m.of_class, m.number, m.from, m.to);
        moved += m.number * counts_.weight(m.of_class);
      }
      change += std::abs(counts_.cost() - before);
      weight += moved;
      for (auto m = pending_.rbegin(); m != pending_.rend(); ++m) counts_.move(m->of_class, m->number, m->to, m->from);
    }
    hot_ = std::max(change / kSamples, 1e-12);
    base_penalty_ = weight > 0 ? change / weight : 1;
  }

  int some(const std::vector<int>& list) {
    return list[static_cast<std::size_t>(random_.below(static_cast<int>(list.size())))];
  }

  int amount(int of_class, int part) {
    const int all = counts_.count(of_class, part);
    const int kind = random_.below(8);
    if (kind < 3 || all == 1) return all;
    if (kind < 5) return 1;
    return 1 + random_.below(all);
  }

  /// A part that may suit vertices of a class: one that has some already, has a neighbour, or any.
  int target(int of_class) {
    const int kind = random_.below(16);
    if (kind < 7) return some(counts_.parts_with(of_class));
    if (kind < 12 && !counts_.neighbours(of_class).empty())
      return some(counts_.parts_with(some(counts_.neighbours(of_class))));
    return some(open_);
  }

  bool is_open(int part) const { return limits_[static_cast<std::size_t>(part)] > 0; }

  /// Fills pending_ with a move and perhaps one back that makes room for it.
  void propose() {
    pending_.clear();
    const int from = some(open_);
    if (counts_.classes_in(from).empty()) return;
    const int c = some(counts_.classes_in(from));
    const int to = target(c);
    if (to == from || !is_open(to) || fixed_[static_cast<std::size_t>(c)]) return;
    const int number = amount(c, from);
    pending_.push_back({c, number, from, to});
    const double load = counts_.load(to) + number * counts_.weight(c);
    const double excess = load - limits_[static_cast<std::size_t>(to)];
    if (excess <= slack_ || counts_.classes_in(to).empty() || random_.below(8) == 0) return;
    const int back = some(counts_.classes_in(to));
    if (back == c || fixed_[static_cast<std::size_t>(back)] || counts_.weight(back) <= 0) return;
    const int have = counts_.count(back, to);
    const int need = static_cast<int>(std::min<double>(have, std::ceil((excess - slack_) / counts_.weight(back))));
    pending_.push_back({back, random_.below(4) == 0 ? have : std::max(need, 1), to, from});
  }

  void try_step() {
    propose();
    if (pending_.empty()) return;
    const int a = pending_.front().from, b = pending_.front().to;
    const double before = counts_.cost() + penalty_ * (over(a) + over(b));
    for (const Moved& m : pending_) counts_.move(m.of_class, m.number, m.from, m.to);
    const double change = counts_.cost() + penalty_ * (over(a) + over(b)) - before;
    if (change <= 0 || (temperature_ > 0 && random_.unit() < std::exp(-change / temperature_))) {
      keep_best();
      return;
    }
    for (auto m = pending_.rbegin(); m != pending_.rend(); ++m) counts_.move(m->of_class, m->number, m->to, m->from);
  }

  ClassCounts& counts_;
  std::vector<double> limits_;  ///< by part; 0: closed, nothing moves in or out
  std::vector<bool> fixed_;     ///< by class
  double slack_;
  PartitionRandom random_;
  std::vector<int> open_;
  std::vector<Moved> pending_;
  double hot_ = 1, temperature_ = 0, base_penalty_ = 1, penalty_ = 1;
  std::optional<Partition> best_;
  double best_cost_ = std::numeric_limits<double>::infinity();
};

/// A start for vertices of which no two are alike: the best partition of groups, from whole layers to as many groups
/// as are searched well, or, if none keeps the limit, vertices in their order.
Partition start_from_groups(const Hypergraph& graph, const PartitionOptions& options) {
  const std::vector<std::uint64_t> colours = vertex_colours(graph);
  Partition best = fill_in_order(graph, options.parts);
  double best_cost = std::numeric_limits<double>::infinity();
  for (int pieces = 1;; pieces *= 2) {
    const VertexGroups groups = group_vertices(graph, colours, pieces);
    if (groups.graph.vertices() > kManyClasses) return best;
    try {
      const Partition found = partition_by_annealing(groups.graph, options);
      const double cost = cut_cost(groups.graph, found, options.objective);
      if (cost >= best_cost) continue;
      best_cost = cost;
      best = groups.expand(found);
    } catch (const PartitionError&) {  // too heavy or too few
    }
  }
}

}  // namespace

Partition partition_by_annealing(const Hypergraph& graph, const VertexClasses& classes, CountObjective objective,
                                 const std::vector<double>& gather, const PartitionOptions& options) {
  const std::vector<int> heavy = check_partition_options(graph, options);
  const double limit = weight_limit(graph.total_weight(), options.parts, options.imbalance);
  std::vector<double> limits(static_cast<std::size_t>(options.parts), limit);
  std::vector<bool> fixed(classes.classes.size());
  std::optional<Partition> best;
  double best_cost = std::numeric_limits<double>::infinity();
  // Vertices that are alike move together and soon forget where they began. Of others there are too many: they begin
  // with the groups of theirs, and are only shaken a little.
  const bool in_groups = heavy.empty() && classes.classes.size() > kManyClasses;
  const Partition from_groups = in_groups ? start_from_groups(graph, options) : Partition{};
  for (int start = 0; start < options.starts; ++start) {
    ClassCounts counts(classes, options.parts, objective, gather);
    int part = options.parts;  // heavy vertices take the last parts
    for (int c = 0; c < counts.classes(); ++c) {
      if (std::find(heavy.begin(), heavy.end(), classes.classes[static_cast<std::size_t>(c)].vertices.front()) ==
          heavy.end())
        continue;
      fixed[static_cast<std::size_t>(c)] = true;
      while (counts.count(c, 0) > 0) {
        limits[static_cast<std::size_t>(--part)] = 0;
        if (part == 0) break;
        counts.move(c, 1, 0, part);
      }
    }
    Annealing search(counts, limits, fixed, 1e-9 * graph.total_weight(),
                     options.seed + static_cast<std::uint64_t>(start));
    if (in_groups)
      counts.assign(from_groups);
    else
      search.spread();
    const std::optional<Partition> found = search.run(kStepsPerStart * options.effort, in_groups ? 0.003 : 1);
    if (!found) continue;
    counts.assign(*found);
    if (counts.cost() >= best_cost) continue;
    best_cost = counts.cost();
    best = found;
  }
  if (best) return *best;
  throw PartitionError(fmt::format(
      "found no partition into {} parts of at most {:.6g} each; allow more imbalance than {:.6g}, or search "
      "longer",
      options.parts, limit, options.imbalance));
}

Partition partition_by_annealing(const Hypergraph& graph, const PartitionOptions& options) {
  return partition_by_annealing(
      graph, find_classes(graph),
      options.objective == CutObjective::connectivity ? CountObjective::connectivity : CountObjective::cut_net, {},
      options);
}

}  // namespace epocast
