#pragma once
// A fine-grain partition as grids: a layer's tasks are the cells of a grid of channels (rows) by filters (columns). A
// row is a net: its cells read the same feature map. So is a column: its cells are added up. Neighbouring maps are
// bundled so that a grid has at most 64 columns and as many rows per layer read; all sizes are exact for bundled maps.

#include <cstdint>
#include <vector>

#include "strategies/partitioners/filter_network.hpp"
#include "strategies/partitioners/partition_options.hpp"

namespace epocast {

/// Bundled feature maps of a layer.
struct MapBundle {
  int layer = 0;
  int first = 0, size = 1;  ///< filters
  double sent = 0, raw = 0;
};

/// One layer's cells.
struct TaskGrid {
  int layer = 0;
  std::vector<int> row, column;  ///< bundles that rows read and columns make
  std::vector<double> weight;    ///< by cell, row by row
  std::vector<std::int16_t> owner;
  bool whole = false;  ///< a fully connected layer: all cells are one task

  int rows() const { return static_cast<int>(row.size()); }
  int columns() const { return static_cast<int>(column.size()); }
  std::size_t cell(int r, int c) const { return static_cast<std::size_t>(r * columns() + c); }
};

/// Partition of all cells, with its connectivity cost kept up to date. The vertex that adds a column's partial sums
/// weighs nothing, and so is always counted where it is best.
class GridState {
 public:
  /// REQUIRES: !network.has_pairs(). All cells start in part 0.
  GridState(const FilterNetwork& network, int parts, int most_bundles = 64);

  int parts() const { return parts_; }
  double cost() const { return cost_; }
  double load(int part) const { return load_[static_cast<std::size_t>(part)]; }
  const std::vector<TaskGrid>& grids() const { return grids_; }
  const std::vector<MapBundle>& bundles() const { return bundles_; }
  /// Grids that read a bundle, with the row where they do.
  struct Reading {
    int grid, row;
  };
  const std::vector<Reading>& readings(int bundle) const { return readings_[static_cast<std::size_t>(bundle)]; }
  /// Grid that makes a bundle, or -1 for the input.
  int maker(int bundle) const { return maker_[static_cast<std::size_t>(bundle)]; }
  /// Grid of a layer, or -1 for the input.
  int grid_of(int layer) const { return grid_of_[static_cast<std::size_t>(layer)]; }

  int owner(int grid, int row, int column) const {
    const TaskGrid& g = grids_[static_cast<std::size_t>(grid)];
    return g.owner[g.cell(row, column)];
  }
  /// Gives one cell to a part. Cells of a `whole` grid must be moved together by the caller.
  void give(int grid, int row, int column, int part);

  /// The fine-grain hypergraph's partition, with each sum where it costs least.
  Partition partition(const FilterNetwork& network) const;

 private:
  std::size_t at(int bundle, int part) const {
    return static_cast<std::size_t>(bundle) * static_cast<std::size_t>(parts_) + static_cast<std::size_t>(part);
  }
  double bundle_cost(int bundle) const;
  int best_home(int bundle) const;

  int parts_;
  std::vector<MapBundle> bundles_;
  std::vector<TaskGrid> grids_;
  std::vector<std::vector<Reading>> readings_;
  std::vector<int> maker_, grid_of_;
  std::vector<std::int16_t> read_count_, made_count_;  ///< [bundle][part]: cells
  std::vector<int> read_parts_, made_parts_, both_;    ///< [bundle]: parts that read, make, do both
  std::vector<double> load_;
  double cost_ = 0;
};

}  // namespace epocast
