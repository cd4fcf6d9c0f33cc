#pragma once
// A partition as a picture: one row per layer, divided among the parts that share it.

#include <iosfwd>
#include <string>

#include "strategies/partitioners/communication_volume.hpp"

namespace epocast {

/// Writes SVG. Each layer's block in the column of a part is as dark as the part's share of the layer; columns
/// have the parts' numbers, as many as there is room for.
void draw_partition(std::ostream& out, const FilterNetwork& network, const LayerShares& shares,
                    const std::string& title);

}  // namespace epocast
