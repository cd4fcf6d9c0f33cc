#include "experiments/stack_settings.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "experiments/default_strategy.hpp"

namespace epocast {
namespace {

/// Options of data_parallel that mean something together with one granularity only.
bool of_granularity(const std::string& option) {
  return option == "granularity" || option == "bucket" || option == "first_bucket" || option == "cycle";
}

std::int64_t most_on_a_node(const StrategyContext& context) {
  std::map<std::string, std::int64_t> on_node;
  for (const DeviceId worker : context.workers) ++on_node[context.device(worker).node];
  return std::ranges::max_element(on_node, {}, [](const auto& node) { return node.second; })->second;
}

/// Only the cost model `fitted` counts kernels.
ConfigNode with_launch(const ConfigNode& config, const SoftwareStack& stack) {
  if (!stack.launch() || !config.has("compute") || !config.at("compute").is_map()) return config;
  const ConfigNode compute = config.at("compute");
  const bool counts = compute.has("cost_model") && compute.at("cost_model").is_scalar() &&
                      compute.at("cost_model").as_string() == "fitted";
  return counts && !compute.has("launch") ? config.with("compute.launch", *stack.launch()) : config;
}

/// Options of the strategy that the study leaves out.
ConfigNode with_options(const ConfigNode& config, const SoftwareStack& stack) {
  const bool given = config.has("strategy");
  const ConfigNode strategy =
      given ? config.at("strategy") : ConfigNode::load_text(kDefaultStrategy, config.where().file);
  if (!strategy.is_map() && !strategy.is_scalar()) return config;
  if (strategy.is_map() && !strategy.has("name")) return config;
  const ConfigNode name = strategy.is_map() ? strategy.at("name") : strategy;
  const std::vector<SoftwareStack::Default> defaults = stack.defaults(name.as_string());
  if (defaults.empty()) return config;
  ConfigNode out = strategy.is_map() ? config : config.without("strategy").with("strategy.name", name);
  const bool own_granularity = strategy.is_map() && strategy.has("granularity");
  for (const auto& [option, value] : defaults) {
    const bool conflicts = own_granularity && of_granularity(option);
    if (conflicts || (strategy.is_map() && strategy.has(option))) continue;
    out = out.with("strategy." + option, value);
  }
  return out;
}

}  // namespace

ConfigNode with_stack_defaults(const ConfigNode& config, const SoftwareStack& stack) {
  return with_options(with_launch(config, stack), stack);
}

bool add_input(CyclicTaskGraph& graph, const SoftwareStack& stack, const StrategyContext& context) {
  const std::int64_t batch = context.worker_batch();
  std::string first;
  for (const LayerTrace& layer : context.trace(batch).layers)
    if (layer.times.forward.any()) {
      first = layer.name;
      break;
    }
  const Seconds time(static_cast<double>(batch) / *stack.input_rate(most_on_a_node(context)));
  std::set<QueueId> fed;
  std::vector<TaskId> passes;
  for (std::size_t t = 0; t < graph.tasks().size(); ++t) {
    const Task& task = graph.tasks()[t];
    if (task.label.operation != "forward" || task.label.layer != first) continue;
    if (fed.insert(task.queue).second) passes.push_back(static_cast<TaskId>(t));
  }
  for (const TaskId pass : passes) {
    const QueueId queue =
        graph.add_queue("input", graph.task(pass).ranks, QueueRole::server, Discipline::program_order);
    graph.after(graph.compute(queue, time, {"load", ""}), pass);
  }
  return !passes.empty();
}

}  // namespace epocast
