#pragma once
// What tiles of layers cost: their traces, from the study's cost model at the tile's own shape.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "sim/strategy.hpp"
#include "strategies/layerwise/operators.hpp"

namespace epocast {

/// The layer as one device computes a tile of its operator: shapes, parameters and FLOP per sample. `tile` is the
/// operator's.
Layer part_of_layer(const OperatorNetwork& network, std::size_t op, std::size_t layer, const Tile& tile);

/// Asks the cost model for many tiles at once; layers that are alike in all but their names are asked for once.
class TileTimes {
 public:
  /// Throws ConfigError, when asked, for parts of layers that the study's cost model does not know, or that would have
  /// to be recomputed.
  TileTimes(const StrategyContext& context, const OperatorNetwork& network);

  /// Notes that all layers of an operator's tile will be wanted.
  void ask(std::size_t op, const Tile& tile);
  /// The trace of one layer of the tile. Asks the cost model for all that has been noted.
  const LayerTrace& trace(std::size_t op, std::size_t layer, const Tile& tile);
  /// Of all layers of the operator's tile together.
  struct Cost {
    double passes = 0;      ///< s, forward and backward, on the slowest kind of device
    double update = 0;      ///< s, of all parameters on the tile, likewise
    double parameters = 0;  ///< B, of those that are trained
    double frozen = 0;      ///< B, of others
    double kept = 0;        ///< B of activations, from forward to backward
  };
  Cost cost(std::size_t op, const Tile& tile);
  /// Of a batch that one worker would have if images were divided over all: names and what does not depend on shapes.
  const WorkloadTrace& whole() const { return whole_; }
  /// Tiles of layers that the cost model was asked for.
  std::size_t asked() const { return traces_.size(); }

 private:
  /// Layer of those alike; samples; channels, rows and columns of the output; k; channels, rows and columns of the
  /// input.
  using Key = std::array<std::int64_t, 9>;
  struct Request {
    std::size_t op = 0, layer = 0;
    Tile tile;
  };

  Key key_of(std::size_t op, std::size_t layer, const Tile& tile) const;
  bool is_empty(std::size_t op, std::size_t layer, const Tile& tile) const;
  const LayerTrace& nameless(std::size_t op, std::size_t layer, const Tile& tile, const Key& key);
  bool is_whole(const Request& request) const;
  const WorkloadTrace& whole_at(std::int64_t batch);
  void answer();

  const StrategyContext& context_;
  const OperatorNetwork& network_;
  WorkloadTrace whole_;
  std::vector<std::size_t> like_;  ///< by layer: the first that is like it
  std::map<std::int64_t, WorkloadTrace> by_batch_;
  std::map<Key, Request> asked_;
  std::map<Key, LayerTrace> traces_;
  LayerTrace nothing_;
  std::map<std::pair<std::size_t, Key>, LayerTrace> named_;  ///< with names of their own
};

}  // namespace epocast
