#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "strategies/partitioners/grid_annealing.hpp"

namespace epocast {
namespace {

/// How much of a grid's work a part takes.
struct Share {
  int part = 0;
  double work = 0;
};

/// Boundaries 0 = b_0 <= ... <= b_n = `length` in proportion to the sums of shares up to each.
std::vector<int> cut_length(const std::vector<double>& amounts, int length) {
  const double total = std::accumulate(amounts.begin(), amounts.end(), 0.0);
  std::vector<int> out{0};
  double sum = 0;
  for (const double amount : amounts) {
    sum += amount;
    out.push_back(total > 0 ? static_cast<int>(std::lround(sum / total * length)) : length);
  }
  out.back() = length;
  return out;
}

/// Owner of each cell when the shares stand in `strips` strips, along rows or along columns.
std::vector<std::int16_t> tile(const TaskGrid& grid, const std::vector<Share>& shares, int strips, bool along_rows,
                               bool to_the_cell) {
  const auto n = static_cast<int>(shares.size());
  std::vector<int> first;  // share that each strip begins with
  for (int s = 0; s <= strips; ++s) first.push_back(n * s / strips);
  std::vector<double> strip_work;
  for (int s = 0; s < strips; ++s) {
    strip_work.push_back(0);
    for (int i = first[static_cast<std::size_t>(s)]; i < first[static_cast<std::size_t>(s) + 1]; ++i)
      strip_work.back() += shares[static_cast<std::size_t>(i)].work;
  }
  const int width = along_rows ? grid.rows() : grid.columns(), length = along_rows ? grid.columns() : grid.rows();
  const std::vector<int> edge = cut_length(strip_work, width);
  std::vector<std::int16_t> owner(grid.owner.size());
  for (int s = 0; s < strips; ++s) {
    std::vector<double> amounts;
    for (int i = first[static_cast<std::size_t>(s)]; i < first[static_cast<std::size_t>(s) + 1]; ++i)
      amounts.push_back(shares[static_cast<std::size_t>(i)].work);
    const int begin = edge[static_cast<std::size_t>(s)], across = edge[static_cast<std::size_t>(s) + 1] - begin;
    std::vector<int> cut = cut_length(amounts, to_the_cell ? across * length : length);
    if (!to_the_cell)
      for (int& each : cut) each *= across;
    for (std::size_t i = 0; i < amounts.size(); ++i)
      for (int k = cut[i]; k < cut[i + 1]; ++k) {
        const int x = begin + k % across, y = k / across;
        owner[along_rows ? grid.cell(x, y) : grid.cell(y, x)] =
            static_cast<std::int16_t>(shares[static_cast<std::size_t>(first[static_cast<std::size_t>(s)]) + i].part);
      }
  }
  return owner;
}

void set_owners(GridState& state, int g, const std::vector<std::int16_t>& owner) {
  const TaskGrid& grid = state.grids()[static_cast<std::size_t>(g)];
  for (int r = 0; r < grid.rows(); ++r)
    for (int c = 0; c < grid.columns(); ++c) state.give(g, r, c, owner[grid.cell(r, c)]);
}

}  // namespace

void tile_grids(GridState& state, const std::vector<double>& limits, bool to_the_cell) {
  std::vector<int> open;
  for (int part = 0; part < state.parts(); ++part)
    if (limits[static_cast<std::size_t>(part)] > 0) open.push_back(part);
  std::vector<double> room;
  for (const int part : open) room.push_back(limits[static_cast<std::size_t>(part)]);
  std::size_t next = 0;
  for (int g = 0; g < static_cast<int>(state.grids().size()); ++g) {
    const TaskGrid& grid = state.grids()[static_cast<std::size_t>(g)];
    if (state.load(grid.owner.front()) == 0 || limits[static_cast<std::size_t>(grid.owner.front())] == 0)
      continue;  // a heavy layer that has a part of its own
    double left = std::accumulate(grid.weight.begin(), grid.weight.end(), 0.0);
    if (grid.whole) {  // the first part with room for all of it
      std::size_t i = next;
      while (i + 1 < open.size() && room[i] < left) ++i;
      room[i] -= left;
      set_owners(state, g, std::vector<std::int16_t>(grid.owner.size(), static_cast<std::int16_t>(open[i])));
      continue;
    }
    std::vector<Share> shares;
    while (left > 1e-9) {
      while (next + 1 < open.size() && room[next] <= 1e-9) ++next;
      const double taken = next + 1 < open.size() ? std::min(left, room[next]) : left;
      shares.push_back({open[next], taken});
      room[next] -= taken;
      left -= taken;
    }
    std::vector<std::int16_t> best;
    double least = std::numeric_limits<double>::infinity();
    for (int strips = 1; strips <= static_cast<int>(shares.size()); ++strips)
      for (const bool along_rows : {false, true}) {
        std::vector<std::int16_t> owner = tile(grid, shares, strips, along_rows, to_the_cell);
        set_owners(state, g, owner);
        if (state.cost() >= least) continue;
        least = state.cost();
        best = std::move(owner);
      }
    if (!best.empty()) set_owners(state, g, best);
  }
}

}  // namespace epocast
