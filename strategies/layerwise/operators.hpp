#pragma once
// A network as operators, each of which can be divided by degrees of its own, and which part of which tensor a part of
// an operator needs.
//
// An operator is a layer with those behind it that work on its output value by value (normalisation, activation,
// dropout, softmax). Views in front of fully connected layers belong to what they view, and a concatenation that
// nothing but another one reads is a part of that: Inception-v3 has 120 operators.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/model.hpp"
#include "sim/workload_trace.hpp"
#include "strategies/layerwise/box.hpp"
#include "strategies/layerwise/degrees.hpp"

namespace epocast {

/// What one device computes of an operator: a box of its output, from a range of the reduction dimension.
struct Tile {
  Box output;
  IndexRange k{0, 1};
  friend bool operator==(const Tile&, const Tile&) = default;
};

/// An operator's tensor that comes from another one.
struct OperatorInput {
  std::size_t from = 0;     ///< operator
  std::size_t number = 0;   ///< among the inputs of the operator's first layer
  std::int64_t offset = 0;  ///< of a concatenation: where its channels begin in the output
};

struct LayerOperator {
  std::string name;                 ///< of its first layer
  std::vector<std::size_t> layers;  ///< of the model; the first says what is needed
  std::vector<OperatorInput> inputs;
  Shape output;
  std::int64_t reduction = 1;       ///< length of the reduction dimension; 1: it has none
  std::int64_t channel_groups = 1;  ///< units in which channels are divided: channels, heads, groups of heads
  DimensionLimits limits{};         ///< of n: 1, as it is the batch that says how long it is
  bool needs_gradient = false;      ///< something at or before it is trained
  bool is_dense = false;            ///< fully connected, or a product at every position
  bool is_view = false;             ///< takes no memory and no time of its own
};

/// One of the edges between operators.
struct OperatorEdge {
  std::size_t from = 0, to = 0;
  std::size_t input = 0;  ///< of LayerOperator::inputs
};

class OperatorNetwork {
 public:
  /// REQUIRES: layers[0] is the only input.
  explicit OperatorNetwork(const Model& model);

  const Model& model() const { return model_; }
  const std::vector<LayerOperator>& operators() const { return operators_; }
  const LayerOperator& at(std::size_t op) const { return operators_[op]; }
  const std::vector<OperatorEdge>& edges() const { return edges_; }
  std::size_t size() const { return operators_.size(); }
  /// Operator of a layer; -1 of the network's input and views of it.
  int operator_of(std::size_t layer) const { return of_layer_[layer]; }

  /// What degrees an operator can have: as long as its dimensions are, and with a `batch` of images.
  DimensionLimits limits(std::size_t op, std::int64_t batch) const;
  /// Of the output of `input.from`: the smallest box with all that the tile reads. Where windows leave out rows between
  /// them (1x1 with stride 2), these are in it.
  Box needed(std::size_t op, const OperatorInput& input, const Tile& tile) const;
  /// The part of one of the operator's layers that belongs to a tile: that layer's output, and its range of k.
  Tile of_layer(std::size_t op, std::size_t layer, const Tile& tile) const;

 private:
  void add_layer(std::size_t layer, const std::vector<int>& readers, const std::vector<bool>& feeds_dense);
  void add_input(std::size_t op, int input, std::size_t number, std::int64_t& offset);
  void finish(LayerOperator& op) const;
  IndexRange channels_needed(const Layer& first, const LayerOperator& op, const OperatorInput& input,
                             const Tile& tile) const;

  Model model_;
  std::vector<LayerOperator> operators_;
  std::vector<OperatorEdge> edges_;
  std::vector<int> of_layer_;
  std::map<std::size_t, std::int64_t> nested_;  ///< concatenations in others: where their channels begin in the output
};

/// A model with as much as a trace knows of one: operators can be divided by images only.
Model model_of(const WorkloadTrace& trace);

}  // namespace epocast
