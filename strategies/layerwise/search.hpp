#pragma once
// The best global configuration by equation 1, within the devices' memory, and why each operator got what it got.

#include <cstddef>
#include <string>
#include <vector>

#include "strategies/layerwise/cost_tables.hpp"

namespace epocast {

/// An operator's part of the optimum, and what else it could have had with all others as they are.
struct OperatorChoice {
  Degrees degrees;
  double compute = 0, update = 0, transfer = 0;  ///< s; of all edges at the operator
  Degrees runner_up;                             ///< equal to `degrees` if there is no other
  double runner_up_more = 0;                     ///< s that it would cost more
  double runner_up_compute = 0, runner_up_update = 0, runner_up_transfer = 0;
};

/// The optimum, by operator of the tables.
struct Choice {
  std::vector<std::size_t> choice;
  std::size_t left_by_paper = 0;  ///< see Optimum
  std::size_t enumerated = 0;
  double memory = 0;  ///< B: the largest parts of all operators together
  bool fits = true;   ///< within the limit
};

struct SearchResult : Choice {
  std::vector<OperatorChoice> operators;
  double cost = 0;  ///< s per step by equation 1
};

/// Choices of a global configuration in the tables, by operator: what each costs and what would be next best.
std::vector<OperatorChoice> explain_choices(const CostTables& tables, const std::vector<std::size_t>& choice);

/// `memory_limit`: B of one device; 0: none. Where the optimum does not fit, memory gets a price, the least at which
/// the result fits: no longer an optimum for sure. Throws SearchTooLarge.
Choice cheapest(const CostTables& tables, double memory_limit = 0);
/// The same, explained.
SearchResult search(const CostTables& tables, double memory_limit = 0);

}  // namespace epocast
