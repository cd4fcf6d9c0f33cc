#pragma once
// Which server holds which parameters.

#include <vector>

#include "strategies/step/piece.hpp"

namespace epocast {

enum class ParameterPlacement { greedy, round_robin, even };
enum class MessageGranularity { tensor, layer, model };

/// Distributes the layers' parameters over servers. greedy: each layer, in order, to the server with the fewest bytes;
/// round_robin: in turn; even: every layer split equally over all. With MessageGranularity::tensor each tensor takes
/// the place of a layer; with MessageGranularity::model all of a server's parameters travel as one piece. Servers left
/// without parameters have no piece.
std::vector<ParameterPiece> place_parameters(const WorkloadTrace& trace, int servers, ParameterPlacement placement,
                                             MessageGranularity granularity);

}  // namespace epocast
