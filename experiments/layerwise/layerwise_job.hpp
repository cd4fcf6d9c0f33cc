#pragma once
// Finds a global configuration for a study: by equation 1 on the platform's links, then with the simulator in the loop.

#include <cstddef>
#include <string>
#include <vector>

#include "experiments/scenario.hpp"
#include "strategies/layerwise/search.hpp"

namespace epocast {

struct LayerwiseRequest {
  std::vector<Dimension> dimensions{Dimension::n, Dimension::c, Dimension::h, Dimension::w};
  int rounds = 2;  ///< of refinement: each simulates the best so far with single operators changed
};

/// A global configuration with what both models say of it.
struct LayerwiseCandidate {
  std::string name;  ///< "image", "equation 1", "fc6 {c: 4}", ...
  std::vector<std::size_t> choice;
  double cost = 0;       ///< s per step by equation 1
  double simulated = 0;  ///< s per step
  double bytes = 0;      ///< sent per step
  bool fits = true;      ///< into the devices' memory
};

struct LayerwiseOutcome {
  std::string model;
  std::size_t workers = 0;
  std::int64_t batch = 0;
  std::vector<std::string> operators;
  LinkRates links;
  std::size_t configurations = 0;  ///< of the operator that has the most
  std::size_t left_by_paper = 0, enumerated = 0;
  double table_seconds = 0, search_seconds = 0;  ///< s of processor time
  std::vector<LayerwiseCandidate> candidates;
  std::size_t best = 0;                 ///< of the candidates
  std::vector<OperatorChoice> choices;  ///< of the best, by equation 1
  std::vector<Degrees> degrees;         ///< by operator
  double rank_correlation = 0;          ///< of cost and simulated time over the candidates (Spearman)
  ConfigNode study;                     ///< without strategy and axes
  ConfigNode strategy;                  ///< options of the strategy, without a configuration

  /// A study that runs the best configuration.
  std::string to_yaml() const;
};

/// What the links between workers carry: in a node as the slowest route between two of its devices; towards other nodes
/// as the slowest link that all routes out of the node share.
LinkRates probe_links(SimEngine& engine, const Cluster& cluster, const std::vector<DeviceId>& workers);

/// Takes this process's one SimGrid engine. Throws ConfigError, also for networks that cannot be searched, and
/// SimulationError.
LayerwiseOutcome search_layerwise(const Scenario& scenario, const Registries& registries,
                                  const LayerwiseRequest& request);

/// Why each operator got its degrees, a line each.
std::string explain(const LayerwiseOutcome& outcome);

}  // namespace epocast
