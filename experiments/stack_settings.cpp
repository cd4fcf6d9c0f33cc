#include "experiments/stack_settings.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "experiments/default_strategy.hpp"
#include "strategies/register.hpp"

namespace epocast {
namespace {

using ForwardPasses = std::map<GroupId, std::vector<TaskId>>;

/// Options of data_parallel that mean something together with one granularity only.
bool of_granularity(const std::string& option) {
  return option == "granularity" || option == "bucket" || option == "first_bucket" || option == "cycle" ||
         option == "at_once";
}

/// Of the ranks of these groups.
std::int64_t most_on_a_node(const ForwardPasses& passes, const CyclicTaskGraph& graph, const StrategyContext& context) {
  std::map<std::string, std::int64_t> on_node;
  for (const auto& [ranks, tasks] : passes)
    for (const DeviceId device : graph.group(ranks).devices) ++on_node[context.device(device).node];
  return std::ranges::max_element(on_node, {}, [](const auto& node) { return node.second; })->second;
}

bool is_forward(const Task& task) { return task.label.operation == "forward"; }

/// By task, whether it follows a forward pass of the same iteration by edges.
std::vector<bool> behind_forward_passes(const CyclicTaskGraph& graph) {
  std::vector<std::vector<std::size_t>> next(graph.tasks().size());
  for (const Edge& edge : graph.edges())
    if (edge.lag == 0) next[CyclicTaskGraph::index(edge.before)].push_back(CyclicTaskGraph::index(edge.after));
  std::vector<bool> behind(next.size(), false);
  std::vector<std::size_t> open;
  for (std::size_t t = 0; t < next.size(); ++t)
    if (is_forward(graph.tasks()[t])) open.push_back(t);
  while (!open.empty()) {
    const std::size_t t = open.back();
    open.pop_back();
    for (const std::size_t later : next[t])
      if (!behind[later]) {
        behind[later] = true;
        open.push_back(later);
      }
  }
  return behind;
}

/// Of groups that read the network's input, where each micro-batch begins. Others begin with what these have made.
ForwardPasses input_passes(const CyclicTaskGraph& graph) {
  ForwardPasses passes;
  std::set<std::pair<GroupId, int>> begun;
  for (std::size_t t = 0; t < graph.tasks().size(); ++t) {
    const Task& task = graph.tasks()[t];
    if (is_forward(task) && begun.emplace(task.ranks, task.label.micro_batch).second)
      passes[task.ranks].push_back(static_cast<TaskId>(t));
  }
  const std::vector<bool> behind = behind_forward_passes(graph);
  std::erase_if(passes, [&](const auto& of) { return behind[CyclicTaskGraph::index(of.second.front())]; });
  return passes;
}

/// Samples that each rank of them reads in an iteration of the graph: of the largest share, as others wait for it.
double samples_read(const TrainingStep& step, std::int64_t global_batch, std::int64_t replicas) {
  const std::int64_t shares = step.input_shares > 0 ? step.input_shares : replicas;
  const auto samples = static_cast<double>((global_batch + shares - 1) / shares * step.steps);
  if (!step.shortened) return samples;
  const double written = step.shortened->micro_batches;
  return samples * written / (written + step.shortened->left_out);
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

/// What a stack has for a strategy, or for the one that it is a setting of. Replicas of a pipeline's stages do what
/// data_parallel does.
std::vector<SoftwareStack::Default> defaults_of(const std::string& strategy, const SoftwareStack& stack,
                                                const StrategyRegistry& strategies) {
  std::vector<SoftwareStack::Default> out = stack.defaults(strategy);
  const EntryInfo* info = strategies.find(strategy);
  if (!out.empty() || info == nullptr) return out;
  const bool pipeline = strategy == "pipeline" || info->preset_of == "pipeline";
  if (!pipeline && info->preset_of.empty()) return out;
  out = stack.defaults(pipeline ? "data_parallel" : info->preset_of);
  std::erase_if(out, [&](const SoftwareStack::Default& one) {
    return std::ranges::find(info->parameters, one.option, &ParameterInfo::name) == info->parameters.end();
  });
  return out;
}

/// What a stack has for replicas that share what they train, by the part's stage.
std::vector<SoftwareStack::Default> defaults_of_shares(const ConfigNode& part, const SoftwareStack& stack,
                                                       const StrategyRegistry& strategies) {
  const bool given = part.is_map() && part.has("stage") && part.at("stage").is_scalar();
  const std::string stage = given ? part.at("stage").as_string() : "3";
  const std::vector<SoftwareStack::Default> own = stack.defaults("zero" + stage);
  return own.empty() ? defaults_of("sharded_data_parallel", stack, strategies) : own;
}

/// Of a step put together from parts, where gradients are summed and every replica updates all, or its share.
ConfigNode with_options_of_parts(const ConfigNode& config, const ConfigNode& strategy, const SoftwareStack& stack,
                                 const StrategyRegistry& strategies) {
  if (!strategy_of_body(strategy).empty()) return config;  // sums every gradient by itself
  const std::string key = "synchronisation";
  const ConfigNode part = strategy.has(key) ? strategy.at(key) : ConfigNode::load_text("all_reduce", key);
  const ConfigNode name = part.is_map() && part.has("name") ? part.at("name") : part;
  if (!name.is_scalar() || (name.as_string() != "all_reduce" && name.as_string() != "sharded")) return config;
  std::vector<SoftwareStack::Default> defaults =
      name.as_string() == "sharded" ? defaults_of_shares(part, stack, strategies) : stack.defaults("data_parallel");
  const ConfigNode mesh = strategy.at("mesh");
  const bool stages = mesh.is_map() && mesh.has("pipeline") && mesh.at("pipeline").is_scalar() &&
                      mesh.at("pipeline").as_string() != "1";
  // A stage is updated as a whole.
  if (stages) std::erase_if(defaults, [](const SoftwareStack::Default& one) { return one.option == "update"; });
  if (defaults.empty()) return config;
  const std::string prefix = "strategy." + key + ".";
  const ConfigNode out =
      part.is_map() ? config
                    : config.with("strategy." + key,
                                  ConfigNode::load_text("{name: " + name.as_string() + "}", part.where().file));
  return filled(out, prefix, part, defaults);
}

/// Options of the strategy that the study leaves out.
ConfigNode with_options(const ConfigNode& config, const SoftwareStack& stack, const StrategyRegistry& strategies) {
  const ConfigNode strategy =
      config.has("strategy") ? config.at("strategy") : ConfigNode::load_text(kDefaultStrategy, config.where().file);
  if (!strategy.is_map() && !strategy.is_scalar()) return config;
  if (strategy.is_map() && !strategy.has("name"))
    return strategy.has("mesh") ? with_options_of_parts(config, strategy, stack, strategies) : config;
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

bool add_input(TrainingStep& step, const SoftwareStack& stack, const StrategyContext& context, std::int64_t replicas) {
  CyclicTaskGraph& graph = step.graph;
  const ForwardPasses passes = input_passes(graph);
  if (passes.empty()) return false;
  const double rate = *stack.input_rate(most_on_a_node(passes, graph, context));
  const double samples = samples_read(step, context.global_batch, replicas);
  for (const auto& [ranks, tasks] : passes) {
    const QueueId queue = graph.add_queue("input", ranks, QueueRole::server, Discipline::program_order);
    const Seconds time(samples / static_cast<double>(tasks.size()) / rate);
    for (const TaskId pass : tasks) {
      const int micro_batch = graph.task(pass).label.micro_batch;
      graph.after(graph.compute(queue, time, {"load", "", micro_batch}), pass);
    }
  }
  return true;
}

}  // namespace epocast
