#pragma once
// What `epocast place` does: from a model or a graph file to placements and what replays say of them.

#include <optional>
#include <string>
#include <vector>

#include "experiments/place/graph_draft.hpp"
#include "sim/memory.hpp"
#include "sim/quantity.hpp"
#include "strategies/placement/pardnn.hpp"
#include "workloads/operators/operator_graph_builder.hpp"

namespace epocast {

/// Where the times of a model's operations come from (costmodels/operator_times.hpp).
enum class OperatorTimes {
  operators,  ///< each by itself
  layers,     ///< scaled so that every layer's passes take what the cost model `fitted` says of layers
};

struct ModelGraphRequest {
  std::string model;  ///< name or file
  std::int64_t batch = 32;
  OperatorGraphOptions options = {Optimizer::sgd, GradientUse::minimize};
  std::string calibration = "v100";
  OperatorTimes times = OperatorTimes::operators;
};

/// A training step with a time for each operation [s].
struct ModelOperators {
  OperatorGraph graph;
  std::vector<double> seconds;
};
/// Throws ConfigError for bad input.
ModelOperators model_operators(const ModelGraphRequest& request);
NamedGraph model_graph(const ModelGraphRequest& request);

/// Names and one-line descriptions of the methods.
const std::vector<std::pair<std::string, std::string>>& placement_method_names();

/// What a method came to, and how it got there.
struct MethodOutcome {
  std::string method;
  std::vector<PlacementStage> stages;  ///< the last is the result
  double seconds = 0;                  ///< to make the placement

  const PlacementStage& result() const { return stages.back(); }
};

/// Throws ConfigError for an unknown method, with the nearest name, or one that this build lacks.
MethodOutcome place_by(const std::string& method, const NamedGraph& graph, const PlacementMachine& machine,
                       const ReplayOptions& options);

/// A `node,device` CSV file, as write_placement() writes it. Throws ConfigError for what it does not place.
Placement read_placement(const std::string& text, const std::string& file, const NamedGraph& graph, int devices);
void write_placement(std::ostream& out, const NamedGraph& graph, const Placement& placement);

/// The iteration of a placement on a platform, simulated message by message [s]; the cycle bound, which takes longer
/// than the simulation on such graphs, is left out. `platform` is a name or a file. Call it once in a process. Throws
/// ConfigError for too few devices.
double simulate_placement(const NamedGraph& graph, const Placement& placement, int devices,
                          const std::string& platform);

/// Why nothing can fit, in words; empty if memory_bound() does not know.
std::string impossible_because(const NamedGraph& graph, const PlacementMachine& machine);

}  // namespace epocast
