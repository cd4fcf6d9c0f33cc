#pragma once
// Finds a global configuration for a study: by equation 1 on the platform's links, then with the simulator in the loop.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "experiments/scenario.hpp"
#include "strategies/layerwise/search.hpp"

namespace epocast {

struct LayerwiseRequest {
  std::vector<Dimension> dimensions{Dimension::n, Dimension::c, Dimension::h, Dimension::w};
  int rounds = 2;                  ///< of refinement: each simulates the best so far with single operators changed
  std::vector<int> stages{1};      ///< of a pipeline, to choose from; any but {1} brings in plans of experts
  std::vector<int> micro_batches;  ///< to choose from; empty: as pipelines have them by default
};

/// A plan with what both models say of it.
struct LayerwiseCandidate {
  std::string name;            ///< "image", "equation 1, 4 stages x 16 micro-batches", "fc6 {c: 4}", ...
  std::optional<double> cost;  ///< s per step by equation 1, and stages' times; none of experts' plans
  double simulated = 0;        ///< s per step
  double bytes = 0;            ///< sent per step
  bool fits = true;            ///< into the devices' memory
  bool proposed = true;        ///< by equation 1, a rule or an expert; else a change of another one
};

struct LayerwiseOutcome {
  std::string model;
  std::size_t workers = 0;
  std::int64_t batch = 0;
  std::vector<std::string> operators;
  LinkRates links;
  std::size_t configurations = 0;                ///< of the operator that has the most
  double table_seconds = 0, search_seconds = 0;  ///< s of processor time
  std::vector<LayerwiseCandidate> candidates;
  std::size_t best = 0;  ///< of the candidates
  // Of the best degrees, which an expert's plan may beat:
  std::vector<OperatorChoice> choices;       ///< by operator, by equation 1
  std::vector<Degrees> degrees;              ///< by operator
  std::vector<std::size_t> first_operators;  ///< by stage
  std::size_t workers_of_stage = 0;
  int micro_batches = 1;
  double rank_correlation = 0;  ///< of cost and simulated time over the candidates that have one (Spearman)
  // A study that runs the best plan, as YAML: all but its strategy, and that.
  std::string study, strategy;
};

/// Takes this process's one SimGrid engine. Throws ConfigError, also for networks that cannot be searched, and
/// SimulationError.
LayerwiseOutcome search_layerwise(const Scenario& scenario, const Registries& registries,
                                  const LayerwiseRequest& request);

/// Why each operator got its degrees, a line each.
std::string explain(const LayerwiseOutcome& outcome);

}  // namespace epocast
