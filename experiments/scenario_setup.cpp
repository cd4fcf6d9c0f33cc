// What a scenario that has been read can do: make traces, contexts and training steps.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "experiments/scenario.hpp"
#include "experiments/stack_settings.hpp"
#include "sim/graph_limits.hpp"
#include "sim/words.hpp"
#include "workloads/operators/operator_graph_builder.hpp"

namespace epocast {
namespace {

/// The cluster as far as computing is concerned, where workers with a share of another size are another kind.
Cluster marked_by_share(const Cluster& cluster, const PhaseSettings& phase) {
  Cluster out = cluster;
  for (std::size_t w = 0; w < phase.workers.size(); ++w) {
    Name& model = out.devices[static_cast<std::size_t>(phase.workers[w])].model;
    model = fmt::format("{}, {} samples", model, phase.shares[w]);
  }
  return out;
}

}  // namespace

WorkloadTrace ScenarioSetup::trace(DeviceId device, std::int64_t batch, const MemorySettings& settings) const {
  return trace(model, device, batch, settings);
}

WorkloadTrace ScenarioSetup::trace(const Model& of, DeviceId device, std::int64_t batch,
                                   const MemorySettings& settings) const {
  Device on = cluster.devices[static_cast<std::size_t>(device)];
  // Workers have a rate for the precision; a parameter server's device, which multiplies nothing, may do without.
  if (!(on.matrix_rate(precision).value > 0)) on.other_rates[precision] = on.peak_rate;
  WorkloadTrace out = make_trace(of, *cost_model, batch, on, precision);
  settings.apply(out);
  const HostLaunches host(launches.each.value_or(stack.launch()));
  if (launches.count && !launches.below) host.apply(out, of, *cost_model);
  if (launches.count && launches.below && batch < *launches.below) {
    WorkloadTrace anchored = make_trace(of, *cost_model, *launches.below, on, precision);
    settings.apply(anchored);
    host.apply_within(out, anchored, of, *cost_model);
  }
  if (computes_updates) stack.add_update_traffic(out, SoftwareStack::streaming_time(on));
  return out;
}

void ScenarioSetup::tune(Collective& work, const Group& group) const {
  work.rings = rings.count();
  if (work.gamma > 0)
    work.gamma = cached_reduction && work.bytes <= cached_reduction->up_to ? cached_reduction->gamma : collective.gamma;
  work.measured = std::nullopt;
  for (const MeasuredCollectives& measured : measured_collectives)
    if (!work.measured) work.measured = measured.time(work, group, cluster);
}

MeasuredMessage ScenarioSetup::measured_message(Bytes bytes) const {
  MeasuredMessage out;
  for (const MeasuredCollectives& measured : measured_collectives) {
    if (!out.within_node) out.within_node = measured.message_time(bytes.value, true);
    if (!out.across_nodes) out.across_nodes = measured.message_time(bytes.value, false);
  }
  return out;
}

StrategyContext ScenarioSetup::context(const PhaseSettings& phase, std::set<AskedTrace>* asked) const {
  return context(phase, memory, asked);
}

StrategyContext ScenarioSetup::context(const PhaseSettings& phase, const MemorySettings& settings,
                                       std::set<AskedTrace>* asked) const {
  return context(phase, settings, asked, static_cast<std::int64_t>(phase.workers.size()));
}

StrategyContext ScenarioSetup::lone_context(const PhaseSettings& phase) const {
  return context(phase, memory, nullptr, 1);
}

StrategyContext ScenarioSetup::context(const PhaseSettings& phase, const MemorySettings& settings,
                                       std::set<AskedTrace>* asked, std::int64_t team) const {
  const bool uneven = !phase.shares.empty() && team > 1;
  const auto kinds =
      std::make_shared<const DeviceKinds>(uneven ? marked_by_share(cluster, phase) : cluster, phase.workers);
  const auto on_node_of = [this, workers = phase.workers, team](DeviceId device) {
    const std::string& node = cluster.devices[static_cast<std::size_t>(device)].node;
    const auto same = std::ranges::count_if(
        workers, [&](DeviceId other) { return cluster.devices[static_cast<std::size_t>(other)].node == node; });
    return team == 1 ? 1 : std::max(1, static_cast<int>(same));
  };
  const auto wait_for_longest = [this,
                                 replicas = strategy->batch_divisor(static_cast<std::int64_t>(phase.workers.size())),
                                 batch = phase.global_batch](WorkloadTrace& made) {
    const double slowest =
        lengths->slowest(static_cast<double>(replicas), static_cast<double>(batch) / static_cast<double>(replicas));
    for (LayerTrace& layer : made.layers)
      if (layer.kind == LayerKind::attention)
        layer.times = each_pass([&](DeviceTime LayerTimes::*pass) { return (layer.times.*pass) * slowest; });
  };
  const auto traced = [this, settings, asked, team, on_node_of, wait_for_longest](const Model& of, std::int64_t batch,
                                                                                  DeviceId device) {
    if (asked != nullptr) asked->insert({batch, device});
    WorkloadTrace made = trace(of, device, batch, settings);
    stack.apply(made, team, in_step);
    if (lengths && in_step && team > 1) wait_for_longest(made);
    if (settings.offload.any()) settings.offload.apply(made, optimizer, on_node_of(device));
    return made;
  };
  const auto own_share = [this, phase](std::int64_t batch, DeviceId device) {
    const auto worker = std::ranges::find(phase.workers, device);
    if (worker == phase.workers.end() || batch == phase.global_batch) return batch;
    if (batch != phase.shares.back())
      throw ConfigError(
          strategy_place, "strategy",
          fmt::format("workers have {} and {} samples, which this strategy divides further; use a batch "
                      "that divides over {}",
                      phase.shares.front(), phase.shares.back(), counted(phase.workers.size(), "worker")));
    return phase.shares[static_cast<std::size_t>(worker - phase.workers.begin())];
  };
  const auto on_device = [this, traced, uneven, own_share](std::int64_t batch, DeviceId device) {
    return traced(model, uneven ? own_share(batch, device) : batch, device);
  };
  const auto of_part = [this, traced, kinds](std::shared_ptr<const Model> part) {
    if (!cost_model->knows_parts())
      throw ConfigError(strategy_place, "strategy",
                        "devices share layers here, but the cost model has times of whole layers only; use compute: "
                        "fitted or roofline");
    return TraceSource(kinds, [traced, part = std::move(part)](std::int64_t batch, DeviceId device) {
      return traced(*part, batch, device);
    });
  };
  std::function<void(WorkloadTrace&, int)> accumulate;
  if (stack.accumulates())
    accumulate = [this, kinds](WorkloadTrace& made, int micro_batches) {
      stack.accumulate(made, micro_batches, DeviceTime::each(kinds, [this](DeviceId device) {
                         return SoftwareStack::streaming_time(cluster.devices[static_cast<std::size_t>(device)]);
                       }));
    };
  std::function<OperatorGraph(std::int64_t)> operations;
  if (!model.layers.empty())
    operations = [this](std::int64_t batch) {
      if (optimizer != Optimizer::sgd && optimizer != Optimizer::momentum && optimizer != Optimizer::adam)
        throw ConfigError(fmt::format("the operations of optimizer {} are not known", to_string(optimizer)));
      return build_operator_graph(model, batch, {optimizer, GradientUse::minimize});
    };
  return {.cluster = cluster,
          .workers = phase.workers,
          .global_batch = phase.global_batch,
          .trace = TraceSource(kinds, on_device),
          .collective = collective,
          .optimizer = optimizer,
          .update_accesses = update_accesses,
          .memory_reserve = memory.reserve,
          .memory_reserve_share = memory.reserve_share,
          .kinds = kinds,
          .model = model.layers.empty() ? nullptr : &model,
          .trace_of = of_part,
          .operations = std::move(operations),
          .accumulate = std::move(accumulate)};
}

TrainingStep ScenarioSetup::compile(const StrategyContext& seen) const {
  try {
    return strategy->compile(seen);
  } catch (const GraphTooLarge& problem) {
    throw ConfigError(strategy_place, "strategy",
                      strategy_name + " makes " + problem.what() +
                          ", which memory may not bear; use fewer micro-batches, accumulated steps, stages or workers, "
                          "or coarser units of communication");
  }
}

TrainingStep ScenarioSetup::compile(const PhaseSettings& phase, std::set<AskedTrace>* asked,
                                    const StepLength& length) const {
  StrategyContext seen = context(phase, asked);
  seen.length = length;
  TrainingStep step = compile(seen);
  if (stack.input_rate(1)) {
    const std::int64_t replicas = strategy->batch_divisor(static_cast<std::int64_t>(phase.workers.size()));
    if (!add_input(step, stack, seen, replicas) && strategy->needs_model())
      step.notes.push_back(fmt::format(
          "the stack's input rate is left out: {} has no forward passes that samples are loaded for", strategy_name));
  }
  step.graph.tune_collectives([this](Collective& work, const Group& group) { tune(work, group); });
  if (!measured_collectives.empty())
    step.graph.measure_messages([this](Bytes bytes) { return measured_message(bytes); });
  memory.apply(step, cluster);
  return step;
}

}  // namespace epocast
