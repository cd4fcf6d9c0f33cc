#pragma once
// Tables that one stage looks up and another multiplies by (Shoeybi et al. 2019: word embeddings on the first and the
// last stage of GPT): each other stage has a copy, which is a parameter of the first of its layers that reads it. The
// copies' gradients are summed with the original's once replicas have summed their own (Megatron-LM,
// core/distributed/finalize_model_grads.py), shard by shard where replicas have shards of them.

#include <cstddef>
#include <functional>
#include <map>
#include <vector>

#include "sim/model.hpp"
#include "sim/strategy.hpp"
#include "sim/workload_trace.hpp"

namespace epocast {

struct StepPlan;

struct SharedTable {
  std::size_t layer = 0;             ///< whose table it is
  std::vector<std::size_t> readers;  ///< layers with a copy, one on each other stage that needs it; ascending
};

/// Those of a network whose layers are on these stages.
std::vector<SharedTable> shared_tables(const Model& model, const std::function<std::size_t(std::size_t)>& stage_of);

/// The network, its trace, or those that a context makes, where copies are parameters of the layers that have them.
Model with_tables(Model model, const std::vector<SharedTable>& tables);
WorkloadTrace with_tables(WorkloadTrace trace, const std::vector<SharedTable>& tables);
TraceSource traces_with_tables(const StrategyContext& context, const std::vector<SharedTable>& tables);

/// Finds the tables that stages of the plan share, and adds their copies to its traces and to those that the context
/// makes from now on. `boundaries`: first layers of the plan's chunks. Returns the traces that the plan refers to then,
/// by what it referred to before.
std::map<const WorkloadTrace*, WorkloadTrace> share_tables(StepPlan& plan, const std::vector<std::size_t>& boundaries,
                                                           StrategyContext& context);

}  // namespace epocast
