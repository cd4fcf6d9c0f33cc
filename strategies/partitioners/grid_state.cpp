#include "strategies/partitioners/grid_state.hpp"

#include <algorithm>
#include <cassert>

namespace epocast {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

}  // namespace

GridState::GridState(const FilterNetwork& network, int parts, int most_bundles) : parts_(parts), load_(index(parts)) {
  assert(!network.has_pairs());
  std::vector<std::vector<int>> bundles_of(network.layers.size());
  grid_of_.assign(network.layers.size(), -1);
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const FilterLayer& layer = network.layers[l];
    const int count = std::min(layer.filters, most_bundles);
    for (int b = 0; b < count; ++b) {
      const int first = layer.filters * b / count, end = layer.filters * (b + 1) / count;
      const double share = static_cast<double>(end - first) / layer.filters;
      bundles_of[l].push_back(static_cast<int>(bundles_.size()));
      // A layer that is one task has no partial sums; its result is where it is.
      bundles_.push_back({static_cast<int>(l), first, end - first, layer.sent * share,
                          (layer.filters == 1 ? layer.sent : layer.raw) * share});
      maker_.push_back(l == 0 ? -1 : static_cast<int>(grids_.size()));
    }
    if (l == 0) continue;
    grid_of_[l] = static_cast<int>(grids_.size());
    TaskGrid grid{.layer = static_cast<int>(l), .row = {}, .column = bundles_of[l], .weight = {}, .owner = {}};
    for (const int read : layer.reads)
      grid.row.insert(grid.row.end(), bundles_of[index(read)].begin(), bundles_of[index(read)].end());
    grid.whole = layer.filters == 1;
    const double each = layer.work / layer.filters / network.channels(static_cast<int>(l));
    for (const int r : grid.row)
      for (const int c : grid.column) grid.weight.push_back(each * bundles_[index(r)].size * bundles_[index(c)].size);
    grid.owner.assign(grid.weight.size(), 0);
    grids_.push_back(std::move(grid));
  }
  readings_.resize(bundles_.size());
  read_count_.assign(bundles_.size() * index(parts), 0);
  made_count_ = read_count_;
  read_parts_.assign(bundles_.size(), 0);
  made_parts_ = both_ = read_parts_;
  for (std::size_t g = 0; g < grids_.size(); ++g) {
    const TaskGrid& grid = grids_[g];
    for (const double weight : grid.weight) load_[0] += weight;
    for (int r = 0; r < grid.rows(); ++r) {
      readings_[index(grid.row[index(r)])].push_back({static_cast<int>(g), r});
      read_count_[at(grid.row[index(r)], 0)] =
          static_cast<std::int16_t>(read_count_[at(grid.row[index(r)], 0)] + grid.columns());
      read_parts_[index(grid.row[index(r)])] = 1;
    }
    for (const int c : grid.column) {
      made_count_[at(c, 0)] = static_cast<std::int16_t>(grid.rows());
      made_parts_[index(c)] = 1;
    }
  }
  for (std::size_t b = 0; b < bundles_.size(); ++b) both_[b] = read_parts_[b] > 0 && made_parts_[b] > 0 ? 1 : 0;
}

double GridState::bundle_cost(int b) const {
  const MapBundle& bundle = bundles_[index(b)];
  const int read = read_parts_[index(b)], made = made_parts_[index(b)];
  double cost = 0;
  if (read > 0) cost += bundle.sent * (read - 1);
  if (made > 0) cost += bundle.raw * (made - 1);
  if (read > 0 && made > 0 && both_[index(b)] == 0) cost += std::min(bundle.sent, bundle.raw);
  return cost;
}

void GridState::give(int g, int r, int c, int part) {
  TaskGrid& grid = grids_[index(g)];
  std::int16_t& owner = grid.owner[grid.cell(r, c)];
  const int old = owner;
  if (old == part) return;
  owner = static_cast<std::int16_t>(part);
  const double weight = grid.weight[grid.cell(r, c)];
  load_[index(old)] -= weight;
  load_[index(part)] += weight;
  const auto change = [this, old, part](int b, std::vector<std::int16_t>& counts, std::vector<int>& spread,
                                        const std::vector<std::int16_t>& others) {
    std::int16_t& from = counts[at(b, old)];
    std::int16_t& to = counts[at(b, part)];
    const bool leaves = --from == 0, arrives = ++to == 1;
    if (!leaves && !arrives) return;
    cost_ -= bundle_cost(b);
    if (leaves) {
      --spread[index(b)];
      if (others[at(b, old)] > 0) --both_[index(b)];
    }
    if (arrives) {
      ++spread[index(b)];
      if (others[at(b, part)] > 0) ++both_[index(b)];
    }
    cost_ += bundle_cost(b);
  };
  change(grid.row[index(r)], read_count_, read_parts_, made_count_);
  change(grid.column[index(c)], made_count_, made_parts_, read_count_);
}

int GridState::best_home(int b) const {
  int reads = -1, makes = -1;
  for (int part = parts_; part-- > 0;) {
    const bool read = read_count_[at(b, part)] > 0, made = made_count_[at(b, part)] > 0;
    if (read && made) return part;
    if (read) reads = part;
    if (made) makes = part;
  }
  // Partial sums cost at least as much as the feature map that they make.
  return makes >= 0 ? makes : std::max(reads, 0);
}

Partition GridState::partition(const FilterNetwork& network) const {
  const std::vector<int> offset = fine_offsets(network);
  Partition out{parts_, std::vector<int>(index(offset.back()))};
  for (std::size_t b = 0; b < bundles_.size(); ++b) {
    const MapBundle& bundle = bundles_[b];
    const FilterLayer& layer = network.layers[index(bundle.layer)];
    const int each = (offset[index(bundle.layer) + 1] - offset[index(bundle.layer)]) / layer.filters;
    for (int i = bundle.first; i < bundle.first + bundle.size; ++i)
      out.part_of[index(offset[index(bundle.layer)] + (i + 1) * each - 1)] = best_home(static_cast<int>(b));
  }
  for (const TaskGrid& grid : grids_) {
    if (grid.whole) {
      out.part_of[index(offset[index(grid.layer)])] = grid.owner.front();
      continue;
    }
    const int each = network.channels(grid.layer) + 1;
    int channel = 0;
    for (int r = 0; r < grid.rows(); ++r)
      for (int k = bundles_[index(grid.row[index(r)])].size; k-- > 0; ++channel)
        for (int c = 0; c < grid.columns(); ++c) {
          const MapBundle& made = bundles_[index(grid.column[index(c)])];
          for (int i = made.first; i < made.first + made.size; ++i)
            out.part_of[index(offset[index(grid.layer)] + i * each + channel)] = grid.owner[grid.cell(r, c)];
        }
  }
  return out;
}

}  // namespace epocast
