#pragma once
// Parameters, and their gradients, that travel together, and the rules that say which.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/workload_trace.hpp"

namespace epocast {

/// What one communication carries: a tensor, a layer, several of them, a server's part of them, or all.
struct ParameterPiece {
  std::string name;                 ///< of the tensor or layer, of the first and last layer, or of a server's part
  std::vector<std::size_t> layers;  ///< with something in it, ascending: after the backward pass of the first of them
                                    ///< all gradients are there, and its forward pass is the first to need parameters
  Bytes bytes = {};                 ///< of parameters that are trained
  Bytes gradients = {};             ///< of their gradients as they travel, which may be in another precision
  Bytes frozen = {};                ///< of those that are not; of whole layers only
  DeviceTime update = {};           ///< of all parameters of these layers
  int server = 0;                   ///< that holds it
  std::int64_t cycle = 0;           ///< at whose end gradients are sent; 0 if they need not wait
  Seconds delay = {};               ///< from when they are ready until then
};

enum class Granularity {
  tensor,
  layer,
  unit,  ///< a layer with, if it is a convolution, the normalisation right behind it: a few vectors that no framework
         ///< sends by themselves
  bucket,
  cycle,
  model
};

/// How gradients are put into pieces.
struct PieceRule {
  Granularity granularity = Granularity::bucket;
  Bytes limit{25.0 * (1 << 20)};  ///< a bucket is closed once it has reached its size
  Bytes first{25.0 * (1 << 20)};  ///< the same for the first bucket; smaller starts communication sooner
  Seconds cycle{1e-3};            ///< Granularity::cycle: tensors wait for the end of the cycle they are made in
};

/// Pieces in the reverse order of the model's parameters, as Li et al. 2020 (PyTorch DDP, section 3.2.3) make buckets:
/// of a layer the bias before the weight. One may exceed its size by its last tensor. With Granularity::cycle (Sergeev
/// and Del Balso 2018, Horovod's tensor fusion) time since the start of the backward pass is cut into cycles, at whose
/// ends tensors are sent; which of them together is found out when they are (sim/fusion.hpp). Dates are those of an
/// uninterrupted backward pass.
std::vector<ParameterPiece> make_pieces(const WorkloadTrace& trace, const PieceRule& rule);

/// Pieces of whole layers, of at least `size` bytes of parameters with frozen ones but for the last, in the model's
/// order.
std::vector<ParameterPiece> pieces_of_layers(const WorkloadTrace& trace, Bytes size);

/// Pieces of whole layers in the model's order: each copy of a block that is repeated, and what is between them. None
/// if no block is.
std::vector<ParameterPiece> pieces_of_blocks(const WorkloadTrace& trace);

}  // namespace epocast
