#pragma once
// Which server holds which parameters.

#include <string>
#include <vector>

#include "sim/workload_trace.hpp"

namespace epocast {

enum class ParameterPlacement { greedy, round_robin, even };
enum class MessageGranularity { layer, model };

/// Parameters that travel together between a worker and one server.
struct ParameterPiece {
  std::string name;  ///< of its layer, or of its server if it holds several layers
  int server = 0;
  Bytes bytes;
  std::vector<std::size_t> layers;  ///< of the trace, ascending
};

/// Distributes the layers' parameters over servers. greedy: each layer, in order, to the server with the fewest bytes;
/// round_robin: in turn; even: every layer split equally over all. With MessageGranularity::model all of a server's
/// parameters travel as one piece. Servers left without parameters have no piece.
std::vector<ParameterPiece> place_parameters(const WorkloadTrace& trace, int servers, ParameterPlacement placement,
                                             MessageGranularity granularity);

}  // namespace epocast
