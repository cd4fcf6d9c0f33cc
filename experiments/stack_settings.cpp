#include "experiments/stack_settings.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "experiments/default_strategy.hpp"
#include "strategies/register.hpp"

namespace epocast {
namespace {

/// Options of data_parallel that mean something together with one granularity only.
bool of_granularity(const std::string& option) {
  return option == "granularity" || option == "bucket" || option == "first_bucket" || option == "cycle" ||
         option == "at_once";
}

std::int64_t most_on_a_node(const StrategyContext& context) {
  std::map<std::string, std::int64_t> on_node;
  for (const DeviceId worker : context.workers) ++on_node[context.device(worker).node];
  return std::ranges::max_element(on_node, {}, [](const auto& node) { return node.second; })->second;
}

/// Only the cost model `fitted` knows kernels.
ConfigNode with_kernels(const ConfigNode& config, const SoftwareStack& stack) {
  if (!config.has("compute") || !config.at("compute").is_map()) return config;
  const ConfigNode compute = config.at("compute");
  const bool known = compute.has("cost_model") && compute.at("cost_model").is_scalar() &&
                     compute.at("cost_model").as_string() == "fitted";
  ConfigNode out = config;
  for (const auto& [option, value] : stack.kernels())
    if (known && !compute.has(option)) out = out.with("compute." + option, value);
  return out;
}

/// How often updates read and write parameters.
ConfigNode with_updates(const ConfigNode& config, const SoftwareStack& stack) {
  if (!stack.update_accesses()) return config;
  ConfigNode out = config;
  if (config.has("optimizer")) {
    const ConfigNode optimizer = config.at("optimizer");
    if (optimizer.is_map() ? optimizer.has("accesses") : !optimizer.is_scalar()) return config;
    if (optimizer.is_scalar()) out = config.without("optimizer").with("optimizer.name", optimizer);
  }
  return out.with("optimizer.accesses", *stack.update_accesses());
}

/// `options` with those of the defaults that they leave out, under `prefix` in the study.
ConfigNode filled(const ConfigNode& config, const std::string& prefix, const ConfigNode& options,
                  const std::vector<SoftwareStack::Default>& defaults) {
  ConfigNode out = config;
  const bool own_granularity = options.is_map() && options.has("granularity");
  for (const auto& [option, value] : defaults)
    if (!(own_granularity && of_granularity(option)) && !(options.is_map() && options.has(option)))
      out = out.with(prefix + option, value);
  return out;
}

/// Of a step put together from parts, where gradients are summed and every replica updates all.
ConfigNode with_options_of_parts(const ConfigNode& config, const ConfigNode& strategy, const SoftwareStack& stack) {
  if (!strategy_of_body(strategy).empty()) return config;  // sums every gradient by itself
  const std::string key = "synchronisation";
  const ConfigNode part = strategy.has(key) ? strategy.at(key) : ConfigNode::load_text("all_reduce", key);
  const ConfigNode name = part.is_map() && part.has("name") ? part.at("name") : part;
  if (!name.is_scalar() || name.as_string() != "all_reduce") return config;
  std::vector<SoftwareStack::Default> defaults = stack.defaults("data_parallel");
  const ConfigNode mesh = strategy.at("mesh");
  const bool stages = mesh.is_map() && mesh.has("pipeline") && mesh.at("pipeline").is_scalar() &&
                      mesh.at("pipeline").as_string() != "1";
  // A stage is updated as a whole.
  if (stages) std::erase_if(defaults, [](const SoftwareStack::Default& one) { return one.option == "update"; });
  if (defaults.empty()) return config;
  const std::string prefix = "strategy." + key + ".";
  const ConfigNode out =
      part.is_map() ? config
                    : config.with("strategy." + key, ConfigNode::load_text("{name: all_reduce}", part.where().file));
  return filled(out, prefix, part, defaults);
}

/// What a stack has for a strategy, or for the one that it is a setting of.
std::vector<SoftwareStack::Default> defaults_of(const std::string& strategy, const SoftwareStack& stack,
                                                const StrategyRegistry& strategies) {
  std::vector<SoftwareStack::Default> out = stack.defaults(strategy);
  const EntryInfo* info = strategies.find(strategy);
  if (!out.empty() || info == nullptr || info->preset_of.empty()) return out;
  out = stack.defaults(info->preset_of);
  std::erase_if(out, [&](const SoftwareStack::Default& one) {
    return std::ranges::find(info->parameters, one.option, &ParameterInfo::name) == info->parameters.end();
  });
  return out;
}

/// Options of the strategy that the study leaves out.
ConfigNode with_options(const ConfigNode& config, const SoftwareStack& stack, const StrategyRegistry& strategies) {
  const ConfigNode strategy =
      config.has("strategy") ? config.at("strategy") : ConfigNode::load_text(kDefaultStrategy, config.where().file);
  if (!strategy.is_map() && !strategy.is_scalar()) return config;
  if (strategy.is_map() && !strategy.has("name"))
    return strategy.has("mesh") ? with_options_of_parts(config, strategy, stack) : config;
  const ConfigNode name = strategy.is_map() ? strategy.at("name") : strategy;
  const std::vector<SoftwareStack::Default> defaults = defaults_of(name.as_string(), stack, strategies);
  if (defaults.empty()) return config;
  const ConfigNode out = strategy.is_map() ? config : config.without("strategy").with("strategy.name", name);
  return filled(out, "strategy.", strategy, defaults);
}

}  // namespace

ConfigNode with_stack_defaults(const ConfigNode& config, const SoftwareStack& stack,
                               const StrategyRegistry& strategies) {
  return with_options(with_updates(with_kernels(config, stack), stack), stack, strategies);
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
