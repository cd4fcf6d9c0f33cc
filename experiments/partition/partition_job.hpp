#pragma once
// What `epocast partition` does: from a network or a hypergraph and a partitioner to a partition and its figures.

#include <optional>
#include <string>
#include <vector>

#include "experiments/scenario.hpp"
#include "strategies/partitioners/communication_volume.hpp"
#include "strategies/partitioners/partition_options.hpp"

namespace epocast {

enum class Grain { coarse, fine };

struct PartitionRequest {
  std::string network;     ///< a study file, a model's name or file; empty with `hypergraph`
  std::string hypergraph;  ///< a PaToH file instead
  std::string algorithm = "hypergraph";
  Grain grain = Grain::coarse;
  std::string weights;      ///< flop, time, or a CSV file with columns layer,work; empty: time for a study, else flop
  std::int64_t batch = 32;  ///< samples, for a model; a study has its own
  std::optional<BytesPerSecond> bandwidth;  ///< for `contiguous`; works must be times
  std::string import_file;                  ///< a partition made elsewhere
  std::vector<Override> overrides;
  std::size_t scenario = 0;
  PartitionOptions options;
};

struct PartitionOutcome {
  FilterNetwork network;  ///< no layers if a hypergraph was given
  Grain grain = Grain::coarse;
  Hypergraph graph;
  Partition partition;
  std::optional<LayerShares> shares;  ///< absent without a network
  std::string weight_unit;            ///< "FLOP", "s", "" for that of a file
  std::string cost_unit;              ///< "values", or "" for that of a file

  std::string vertex_name(int vertex) const;
};

/// Whether a network is named by a study file. Throws ConfigError for a file that cannot be read.
bool is_study(const std::string& name);

/// Names and one-line descriptions of the algorithms.
const std::vector<std::pair<std::string, std::string>>& partition_algorithms();

/// Throws ConfigError for a name that is none of them, with the nearest one.
void check_partition_algorithm(const std::string& name);

/// Throws ConfigError for bad input, PartitionError and what split_contiguous throws included.
PartitionOutcome make_partition(const PartitionRequest& request, const Registries& registries);

}  // namespace epocast
