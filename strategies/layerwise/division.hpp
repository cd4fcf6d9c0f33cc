#pragma once
// An operator divided over devices: who computes which tile, who holds which box of the output, who has which part of
// the parameters.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strategies/layerwise/operators.hpp"

namespace epocast {

/// Parameters of a layer of which several places have the same part.
struct ParameterShard {
  std::size_t layer = 0;
  double values = 0;
  std::vector<std::size_t> places;  ///< that hold it and make gradients of it
};

class Division {
 public:
  /// `devices`: worker by place, all different. Places are numbered with k varying fastest, then c, w, h, n.
  /// REQUIRES: degrees within network.limits(), as many devices as their product.
  Division(const OperatorNetwork& network, std::size_t op, const Degrees& degrees, std::int64_t batch,
           std::vector<int> devices);

  const OperatorNetwork& network() const { return *network_; }
  const LayerOperator& op() const { return network_->at(op_); }
  std::size_t number() const { return op_; }
  const Degrees& degrees() const { return degrees_; }
  std::size_t places() const { return tiles_.size(); }
  int device(std::size_t place) const { return devices_[place]; }
  const std::vector<int>& devices() const { return devices_; }
  /// -1: the device has no part of it.
  int place_on(int device) const;

  const Tile& tile(std::size_t place) const { return tiles_[place]; }
  /// What a place has of the output in the end. Places that differ in k only add up their sums part by part: each gets
  /// a part of the tile, along images if there are enough of them. All of these are disjoint.
  const Box& held(std::size_t place) const { return held_[place]; }
  /// What it needs of an input.
  Box needed(const OperatorInput& input, std::size_t place) const {
    return network_->needed(op_, input, tiles_[place]);
  }
  /// Places whose sums are added up with those of this one, itself included; in order of k.
  std::vector<std::size_t> sums_with(std::size_t place) const;
  /// Of all layers with parameters, in the order of the layers.
  std::vector<ParameterShard> shards() const;

 private:
  const OperatorNetwork* network_;
  std::size_t op_;
  Degrees degrees_;
  std::vector<int> devices_;
  std::vector<Tile> tiles_;
  std::vector<Box> held_;
};

/// A message between devices.
struct Piece {
  std::size_t from = 0, to = 0;  ///< places of the one that holds and of the one that needs
  std::int64_t values = 0;
  bool local = false;  ///< both on one device: nothing is sent
};

/// What the places of `to` need of its input number `input`, from whom. In the order of `to`, then of `from`.
std::vector<Piece> pieces(const Division& from, const Division& to, std::size_t input);

/// What the places that share a tile send each other to add up their sums: as many values go back for the gradient.
std::vector<Piece> sum_pieces(const Division& division);

/// Of one direction, between different devices.
double sent_values(const std::vector<Piece>& pieces);

}  // namespace epocast
