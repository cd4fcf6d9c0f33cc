#include "strategies/partitioners/grid_annealing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <optional>

#include "strategies/partitioners/class_annealing.hpp"

namespace epocast {
namespace {

constexpr double kStepsPerGrid = 4e6;

/// Cells of one part that change hands together.
struct Segment {
  int grid = 0;
  std::vector<std::pair<int, int>> cells;  ///< row, column
  int from = 0, to = 0;
};

class GridAnnealing {
 public:
  GridAnnealing(GridState& state, std::vector<double> limits, double slack, std::uint64_t seed)
      : state_(state), limits_(std::move(limits)), slack_(slack), random_(seed) {
    for (int g = 0; g < static_cast<int>(state_.grids().size()); ++g) {
      const TaskGrid& grid = state_.grids()[static_cast<std::size_t>(g)];
      // Whatever has a part of its own stays there. Large grids have more to move than small ones.
      if (limits_[static_cast<std::size_t>(grid.owner.front())] > 0)
        for (int i = grid.whole ? 3 : 0; i < 4; ++i) movable_.push_back(g);
    }
    for (int part = 0; part < state_.parts(); ++part)
      if (limits_[static_cast<std::size_t>(part)] > 0) open_.push_back(part);
  }

  std::optional<double> run(double steps, double heat) {
    const auto total = static_cast<long>(steps);
    set_scales();
    if (open_.size() > 1)
      for (long step = 0; step < total; ++step) {
        if (step % 256 == 0) {
          const double progress = static_cast<double>(step) / static_cast<double>(total);
          temperature_ = hot_ * heat * std::pow(1e-3, progress);
          penalty_ = base_penalty_ * std::pow(300.0, progress);
        }
        try_step();
      }
    temperature_ = 0;
    penalty_ = base_penalty_ * 1e5;
    for (long step = 0; step < total / 8 && open_.size() > 1; ++step) try_step();
    for (const int part : open_)
      if (over(part) > 0) return std::nullopt;
    return state_.cost();
  }

 private:
  double over(int part) const {
    return std::max(0.0, state_.load(part) - limits_[static_cast<std::size_t>(part)] - slack_);
  }
  bool is_open(int part) const { return limits_[static_cast<std::size_t>(part)] > 0; }

  void set_scales() {
    double change = 0, weight = 0;
    constexpr int kSamples = 2000;
    for (int i = 0; i < kSamples; ++i) {
      propose();
      const double before = state_.cost();
      for (const Segment& s : pending_) weight += apply(s);
      change += std::abs(state_.cost() - before);
      take_back();
    }
    hot_ = std::max(change / kSamples, 1e-12);
    base_penalty_ = weight > 0 ? change / weight : 1;
  }

  double apply(const Segment& s) {
    double weight = 0;
    const TaskGrid& grid = state_.grids()[static_cast<std::size_t>(s.grid)];
    for (const auto& [r, c] : s.cells) {
      state_.give(s.grid, r, c, s.to);
      weight += grid.weight[grid.cell(r, c)];
    }
    return weight;
  }

  void take_back() {
    for (auto s = pending_.rbegin(); s != pending_.rend(); ++s)
      for (const auto& [r, c] : s->cells) state_.give(s->grid, r, c, s->from);
  }

  /// The part's cells in one row, one column, the whole grid, or one stretch of a row or column through a cell.
  Segment segment(int g, int row, int column, int kind) {
    const TaskGrid& grid = state_.grids()[static_cast<std::size_t>(g)];
    Segment out{g, {}, state_.owner(g, row, column), 0};
    if (grid.whole || kind == 0) {
      for (int r = 0; r < grid.rows(); ++r)
        for (int c = 0; c < grid.columns(); ++c)
          if (grid.owner[grid.cell(r, c)] == out.from) out.cells.emplace_back(r, c);
      return out;
    }
    const bool along_row = kind % 2 == 0;
    const int length = along_row ? grid.columns() : grid.rows();
    int begin = 0, end = length;
    if (kind >= 3) {
      const int here = along_row ? column : row;
      begin = kind >= 5 ? here : random_.below(here + 1);
      end = kind >= 5 ? here + 1 : here + 1 + random_.below(length - here);
    }
    for (int i = begin; i < end; ++i) {
      const int r = along_row ? row : i, c = along_row ? i : column;
      if (grid.owner[grid.cell(r, c)] == out.from) out.cells.emplace_back(r, c);
    }
    return out;
  }

  int kind() {
    const int die = random_.below(32);
    if (die == 0) return 0;
    if (die < 21) return 1 + die % 2;
    if (die < 29) return 3 + die % 2;
    return 5;
  }

  /// A part that has something to do with a cell: in its column, in its row, in the layers next to it, or any.
  int target(int g, int row, int column) {
    const TaskGrid& grid = state_.grids()[static_cast<std::size_t>(g)];
    const int die = random_.below(32);
    if (die < 11) return state_.owner(g, random_.below(grid.rows()), column);
    if (die < 22) return state_.owner(g, row, random_.below(grid.columns()));
    if (die < 26) {
      const int maker = state_.maker(grid.row[static_cast<std::size_t>(row)]);
      if (maker >= 0) {
        const TaskGrid& other = state_.grids()[static_cast<std::size_t>(maker)];
        const int bundle = grid.row[static_cast<std::size_t>(row)];
        return state_.owner(maker, random_.below(other.rows()), bundle - other.column.front());
      }
    } else if (die < 30) {
      const auto& readings = state_.readings(grid.column[static_cast<std::size_t>(column)]);
      if (!readings.empty()) {
        const auto& reading = readings[static_cast<std::size_t>(random_.below(static_cast<int>(readings.size())))];
        return state_.owner(reading.grid, reading.row,
                            random_.below(state_.grids()[static_cast<std::size_t>(reading.grid)].columns()));
      }
    }
    return open_[static_cast<std::size_t>(random_.below(static_cast<int>(open_.size())))];
  }

  void propose() {
    pending_.clear();
    const int g = movable_[static_cast<std::size_t>(random_.below(static_cast<int>(movable_.size())))];
    const TaskGrid& grid = state_.grids()[static_cast<std::size_t>(g)];
    const int row = random_.below(grid.rows()), column = random_.below(grid.columns());
    const int from = state_.owner(g, row, column), to = target(g, row, column);
    if (to == from || !is_open(to)) return;
    pending_.push_back(segment(g, row, column, kind()));
    pending_.back().to = to;
    if (random_.below(4) == 0) return;
    double weight = 0;
    for (const auto& [r, c] : pending_.back().cells) weight += grid.weight[grid.cell(r, c)];
    if (state_.load(to) + weight <= limits_[static_cast<std::size_t>(to)] + slack_) return;
    // Something of `to` in return, in the same row or column, or anywhere in one of three layers.
    for (int attempt = 0; attempt < 12; ++attempt) {
      int g2 = g, r2 = random_.below(grid.rows()), c2 = random_.below(grid.columns());
      if (attempt % 3 == 0) r2 = row;
      if (attempt % 3 == 1) c2 = column;
      if (attempt % 3 == 2) {
        g2 = std::clamp(g - 1 + random_.below(3), 0, static_cast<int>(state_.grids().size()) - 1);
        const TaskGrid& other = state_.grids()[static_cast<std::size_t>(g2)];
        r2 = random_.below(other.rows());
        c2 = random_.below(other.columns());
      }
      if (state_.owner(g2, r2, c2) != to) continue;
      pending_.push_back(segment(g2, r2, c2, kind()));
      pending_.back().to = from;
      return;
    }
  }

  void try_step() {
    propose();
    if (pending_.empty()) return;
    const int a = pending_.front().from, b = pending_.front().to;
    const double before = state_.cost() + penalty_ * (over(a) + over(b));
    for (const Segment& s : pending_) apply(s);
    const double change = state_.cost() + penalty_ * (over(a) + over(b)) - before;
    if (change <= 0 || (temperature_ > 0 && random_.unit() < std::exp(-change / temperature_))) return;
    take_back();
  }

  GridState& state_;
  std::vector<double> limits_;  ///< by part; 0: closed
  double slack_;
  PartitionRandom random_;
  std::vector<int> movable_, open_;
  std::vector<Segment> pending_;
  double hot_ = 1, temperature_ = 0, base_penalty_ = 1, penalty_ = 1;
};

/// Each bundle of a filter's channels where most of its filters are.
void take_over(GridState& state, const FilterNetwork& network, const Partition& coarse) {
  const std::vector<int> offset = coarse_offsets(network);
  for (int g = 0; g < static_cast<int>(state.grids().size()); ++g) {
    const TaskGrid& grid = state.grids()[static_cast<std::size_t>(g)];
    for (int c = 0; c < grid.columns(); ++c) {
      const MapBundle& bundle = state.bundles()[static_cast<std::size_t>(grid.column[static_cast<std::size_t>(c)])];
      const int middle = offset[static_cast<std::size_t>(grid.layer)] + bundle.first + bundle.size / 2;
      for (int r = 0; r < grid.rows(); ++r) state.give(g, r, c, coarse.part_of[static_cast<std::size_t>(middle)]);
    }
  }
}

/// Positions, in a list of rougher bundles of the same layers, of those that hold the middles of finer ones.
std::vector<int> places_of(const GridState& fine, const std::vector<int>& fine_list, const GridState& rough,
                           const std::vector<int>& rough_list) {
  std::vector<int> out;
  std::size_t at = 0;
  for (const int id : fine_list) {
    const MapBundle& bundle = fine.bundles()[static_cast<std::size_t>(id)];
    for (;; ++at) {
      assert(at < rough_list.size());
      const MapBundle& other = rough.bundles()[static_cast<std::size_t>(rough_list[at])];
      if (other.layer == bundle.layer && bundle.first + bundle.size / 2 < other.first + other.size) break;
    }
    out.push_back(static_cast<int>(at));
  }
  return out;
}

/// Each cell where the rougher cell is that it lies in.
void take_over(GridState& state, const GridState& rough) {
  for (int g = 0; g < static_cast<int>(state.grids().size()); ++g) {
    const TaskGrid& grid = state.grids()[static_cast<std::size_t>(g)];
    const TaskGrid& other = rough.grids()[static_cast<std::size_t>(g)];
    const std::vector<int> rows = places_of(state, grid.row, rough, other.row);
    const std::vector<int> columns = places_of(state, grid.column, rough, other.column);
    for (int r = 0; r < grid.rows(); ++r)
      for (int c = 0; c < grid.columns(); ++c)
        state.give(g, r, c, rough.owner(g, rows[static_cast<std::size_t>(r)], columns[static_cast<std::size_t>(c)]));
  }
}

/// How roughly maps are bundled for a first search, and how hot that is: what leads to the best differs between few
/// parts and many. On rough grids a step is faster, and moves more.
struct FirstSearch {
  int bundles;
  double heat;
};
constexpr FirstSearch kFirstSearches[] = {{8, 1}, {16, 0.2}, {32, 0.05}, {64, 0.005}};
constexpr std::size_t kFirstSearchesEach = 3;
constexpr int kFewestCells = 10;  ///< of a part on average, for a grid to be of use

long cells_of(const FilterNetwork& network, int bundles) {
  const GridState state(network, 1, bundles);
  long out = 0;
  for (const TaskGrid& grid : state.grids())
    if (!grid.whole) out += static_cast<long>(grid.owner.size());
  return out;
}

/// Searches that share limits.
class GridSearch {
 public:
  GridSearch(const FilterNetwork& network, const PartitionOptions& options)
      : network_(network),
        options_(options),
        limit_(weight_limit(network.work(), options.parts, options.imbalance)),
        slack_(1e-9 * network.work()) {}

  /// The best of options.starts searches from tilings of rough grids is refined on fine ones.
  void from_tilings(const FirstSearch& first) {
    std::optional<GridState> best;
    std::vector<double> best_limits;
    std::pair<bool, double> least{true, std::numeric_limits<double>::infinity()};
    for (int start = 0; start < options_.starts; ++start) {
      GridState rough(network_, options_.parts, first.bundles);
      int last = options_.parts;
      const std::vector<double> limits = close_heavy(rough, [&](const TaskGrid&) { return --last; });
      // Every other start keeps back a little more room to even out what rounding leaves.
      std::vector<double> reduced = limits;
      for (double& each : reduced) each *= 1 - 0.01 * (start / 2 % 4);
      tile_grids(rough, reduced, start % 2 == 1);
      const bool too_heavy = !anneal(rough, limits, start, 1, first.heat);  // what refining may mend
      if (const std::pair figure{too_heavy, rough.cost()}; figure < least) {
        least = figure;
        best = std::move(rough);
        best_limits = limits;
      }
    }
    if (!best) return;
    GridState state(network_, options_.parts);
    take_over(state, *best);
    keep(state, anneal(state, best_limits, 0, 0.25, 0.003));
  }

  /// From a partition of coarse_grain(network), which already gives heavy layers the last parts.
  void from_coarse(const Partition& coarse) {
    GridState state(network_, options_.parts);
    take_over(state, network_, coarse);
    const std::vector<double> limits = close_heavy(state, [](const TaskGrid& grid) { return grid.owner.front(); });
    keep(state, anneal(state, limits, options_.starts, 0.5, 0.05));
  }

  Partition take() {
    if (best_) return std::move(*best_);
    throw PartitionError(
        fmt::format("found no partition into {} parts of at most {:.6g} each; allow more imbalance than "
                    "{:.6g}, or search longer",
                    options_.parts, limit_, options_.imbalance));
  }

 private:
  /// Puts layers that are too heavy for any part into `own_part` of theirs. Limits of all parts; 0 for theirs.
  template <typename OwnPart>
  std::vector<double> close_heavy(GridState& state, OwnPart own_part) {
    std::vector<double> limits(static_cast<std::size_t>(options_.parts), limit_);
    for (int g = 0; g < static_cast<int>(state.grids().size()); ++g) {
      const TaskGrid& grid = state.grids()[static_cast<std::size_t>(g)];
      if (!grid.whole || network_.layers[static_cast<std::size_t>(grid.layer)].work <= limit_ + slack_) continue;
      const int own = own_part(grid);
      for (int r = 0; r < grid.rows(); ++r) state.give(g, r, 0, own);
      limits[static_cast<std::size_t>(own)] = 0;
    }
    return limits;
  }

  std::optional<double> anneal(GridState& state, const std::vector<double>& limits, int start, double length,
                               double heat) const {
    return GridAnnealing(state, limits, slack_, options_.seed + static_cast<std::uint64_t>(start))
        .run(length * kStepsPerGrid * options_.effort, heat);
  }

  void keep(const GridState& state, std::optional<double> cost) {
    if (!cost || *cost >= best_cost_) return;
    best_cost_ = *cost;
    best_ = state.partition(network_);
  }

  const FilterNetwork& network_;
  const PartitionOptions& options_;
  double limit_, slack_;
  std::optional<Partition> best_;
  double best_cost_ = std::numeric_limits<double>::infinity();
};

}  // namespace

Partition partition_grids(const FilterNetwork& network, const PartitionOptions& options,
                          const std::vector<Partition>& coarse) {
  GridSearch search(network, options);
  std::size_t roughest = 0;
  while (roughest + kFirstSearchesEach < std::size(kFirstSearches) &&
         cells_of(network, kFirstSearches[roughest].bundles) < kFewestCells * options.parts)
    ++roughest;
  for (std::size_t i = roughest; i < roughest + kFirstSearchesEach; ++i) search.from_tilings(kFirstSearches[i]);
  for (const Partition& partition : coarse) search.from_coarse(partition);
  return search.take();
}

Partition partition_fine_grain(const FilterNetwork& network, const PartitionOptions& options) {
  const Hypergraph graph = fine_grain(network);
  check_partition_options(graph, options);
  const bool only_coarse = network.has_pairs() || options.objective != CutObjective::connectivity;
  PartitionOptions coarse_options = options;
  coarse_options.name = [&](int vertex) { return coarse_vertex_name(network, vertex); };
  const Hypergraph coarse = coarse_grain(network);
  if (only_coarse) return refine_grain(network, partition_by_annealing(coarse, coarse_options));
  std::vector<Partition> starts;
  try {
    coarse_options.effort *= 0.5;
    starts.push_back(partition_by_annealing(coarse, coarse_options));
  } catch (const PartitionError&) {  // filters may be too heavy where channels are not
  }
  if (starts.empty()) return partition_grids(network, options);
  // Filters that stay whole cost no partial sums; sometimes that is best.
  const Partition whole = refine_grain(network, starts.front());
  try {
    Partition cut = partition_grids(network, options, starts);
    const double cost = cut_cost(graph, cut, options.objective);
    return cost <= cut_cost(coarse, starts.front(), options.objective) ? std::move(cut) : whole;
  } catch (const PartitionError&) {
    return whole;
  }
}

}  // namespace epocast
