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

/// Lets the first forward pass of each micro-batch wait for its samples on every device that reads the network's input.
/// They come at the stack's rate, to each such device all that it reads: of a batch that `replicas` (batch_divisor of
/// the strategy) divide, a replica's, whatever the devices that share its layers. They are loaded while earlier ones
/// are computed. A forward pass is a task that is called forward. Returns whether there was one. REQUIRES: the stack
/// has an input rate.
bool add_input(TrainingStep& step, const SoftwareStack& stack, const StrategyContext& context, std::int64_t replicas);

}  // namespace epocast
