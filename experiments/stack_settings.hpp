#pragma once
// What a software stack changes in a scenario: options that it leaves out, and the feeding of its workers.

#include "costmodels/software_stack.hpp"
#include "sim/config.hpp"
#include "sim/strategy.hpp"
#include "sim/task_graph.hpp"

namespace epocast {

/// The study's configuration with the stack's defaults of strategy options, and of the kernels that a framework runs,
/// in place. An option that says how gradients are put together (granularity) takes those of the stack that say so,
/// too, out of force. A preset takes those of the strategy that it is a setting of, and the all-reduce of a composition
/// those of data_parallel, as far as they have the options.
ConfigNode with_stack_defaults(const ConfigNode& config, const SoftwareStack& stack,
                               const StrategyRegistry& strategies);

/// Lets the first forward pass of each worker wait for its samples, which come at the stack's rate. Each is loaded
/// while earlier ones are computed. Returns whether there was such a pass. REQUIRES: the stack has an input rate.
bool add_input(CyclicTaskGraph& graph, const SoftwareStack& stack, const StrategyContext& context);

}  // namespace epocast
