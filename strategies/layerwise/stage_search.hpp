#pragma once
// Stages of a pipeline and the degrees of every operator in them, in two levels as Alpa finds them (Zheng et al. 2022,
// "Alpa: automating inter- and intra-operator parallelism", sections 4 and 5): the degrees of a run of operators by
// elimination (search.hpp), the runs by dynamic programming over the longest one.
//
// Scope: stages of as many workers each. Limits: a run begins where a single tensor crosses, at no more than
// kMostCuts places, those that divide the work most evenly; what crosses is taken to leave all workers of its stage at
// once; nothing overlaps. Validation: every division of small networks tried out (tests/unit/layerwise_stage_test.cpp).

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strategies/layerwise/search.hpp"

namespace epocast {

inline constexpr std::size_t kMostCuts = 24;

struct StageRequest {
  int stages = 1;
  std::size_t workers = 1;  ///< of each stage
  int micro_batches = 1;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  std::int64_t samples = 1;   ///< of a micro-batch
  double value_bytes = 4;     ///< of an activation
  BytesPerSecond between{0};  ///< rate of one worker to those of the next stage
  double memory_limit = 0;    ///< B of one device; 0: none
};

struct StagedChoice {
  std::vector<std::size_t> first_operators;  ///< by stage
  std::vector<std::size_t> choice;           ///< by operator: of the tables
  double cost = 0;   ///< s of a step: all stages once, and the slowest as often as micro-batches follow
  bool fits = true;  ///< within the limit of memory
};

/// Operators before which the network can be cut so that a single tensor crosses; in order.
std::vector<std::size_t> narrow_cuts(const OperatorNetwork& network);

/// s of a step of given stages and choices by the tables: all stages once, and the slowest again for each further
/// micro-batch.
double step_cost(const OperatorNetwork& network, const CostTables& tables, const StageRequest& request,
                 const std::vector<std::size_t>& first_operators, const std::vector<std::size_t>& choice);

/// The best stages by the tables, which are of one micro-batch on the workers of one stage (CostSettings::
/// micro_batches). Of those that fit into memory if any do. Throws SearchTooLarge, and SplitError if the network cannot
/// be cut into so many stages.
StagedChoice search_stages(const OperatorNetwork& network, const CostTables& tables, const StageRequest& request);

}  // namespace epocast
