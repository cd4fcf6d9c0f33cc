#pragma once
// Operator graphs of any size that look like training steps, for measuring how placement scales.

#include <cstddef>
#include <cstdint>

#include "strategies/placement/placement_graph.hpp"

namespace epocast {

/// About so many nodes: blocks of a product with a variable and some cheap operations, in up to eight parallel branches
/// between forks and joins; then, block by block, gradients that read what the forward pass made, and updates.
PlacementGraph synthetic_graph(std::size_t nodes, std::uint64_t seed);

}  // namespace epocast
