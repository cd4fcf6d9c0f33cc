#include "strategies/sharded_data_parallel.hpp"

#include <algorithm>
#include <optional>

#include "strategies/layer_passes.hpp"

namespace epocast {
namespace {

/// A run of layers whose parameters and gradients travel together.
struct Unit {
  std::string name;  ///< of the layer, or of the first and last layer with parameters
  std::size_t first = 0, last = 0;
  Bytes bytes;
  DeviceTime update;
};

/// Cuts the network into units of at least `size` bytes, from the first layer on; layers without parameters follow the
/// one before them.
std::vector<Unit> make_units(const WorkloadTrace& trace, Bytes size) {
  std::vector<Unit> units;
  std::string first;
  for (std::size_t l = 0; l < trace.layers.size(); ++l) {
    const LayerTrace& layer = trace.layers[l];
    if (layer.parameters.value > 0) {
      if (units.empty() || units.back().bytes >= size) {
        first = layer.name;
        units.push_back({first, units.empty() ? 0 : l, l, {}, {}});
      }
      Unit& unit = units.back();
      unit.bytes += layer.parameters;
      unit.update += layer.times.update;
      if (first != layer.name) unit.name = first + ".." + layer.name;
    }
    if (!units.empty()) units.back().last = l;
  }
  return units;
}

/// The most bytes that `count` neighbouring units have together.
Bytes largest_window(const std::vector<Unit>& units, std::size_t count) {
  Bytes most;
  for (std::size_t u = 0; u < units.size(); ++u) {
    Bytes sum;
    for (std::size_t v = u; v < std::min(units.size(), u + count); ++v) sum += units[v].bytes;
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

EntryInfo ShardedDataParallel::info() {
  return {
      "sharded_data_parallel",
      "data parallelism in which each worker owns a share of optimizer state, gradients and parameters (ZeRO, FSDP)",
      {{"stage", "", "1 .. 3", "3", "what is sharded: optimizer state; gradients too; parameters too"},
       {"unit", "bytes", "> 0", "25 MiB", "parameters that travel together, in whole layers"},
       {"prefetch", "count", "0 .. 1e6", "1", "units gathered ahead of the one that computes (stage: 3)"},
       {"reshard", "", "true | false", "true",
        "drop the gathered parameters after the forward pass and gather them again (stage: 3)"},
       CommunicationCores::parameter()}};
}

ShardedDataParallel::ShardedDataParallel(const ConfigNode& options)
    : stage_(options.get("stage", std::int64_t{3}, Range{1, 3})),
      unit_(options.get("unit", Bytes(25.0 * (1 << 20)), Range{1, 1e15})),
      prefetch_(options.get("prefetch", std::int64_t{1}, Range{0, 1e6})),
      reshard_(options.get("reshard", true)),
      cores_(options) {
  for (const char* key : {"prefetch", "reshard"})
    if (options.has(key) && stage_ < 3)
      throw options.at(key).error("parameters are gathered during the passes in stage 3 only; use stage: 3");
}

/// One training step. Everything on a worker's compute queue runs in the order in which it is added here.
class ShardedDataParallel::Builder {
 public:
  Builder(const ShardedDataParallel& strategy, const StrategyContext& context)
      : strategy_(strategy),
        context_(context),
        trace_(strategy.cores_.slowed_trace(context, context.worker_batch())),
        units_(make_units(trace_, strategy.unit_)),
        shards_(static_cast<double>(context.workers.size())),
        workers_(graph_.add_group("workers", context.workers)),
        compute_(graph_.add_queue("compute", workers_, QueueRole::compute, Discipline::program_order)),
        communication_(graph_.add_queue("communication", workers_, QueueRole::communication, Discipline::fifo)) {}

  TrainingStep build() {
    const LayerPass forward = add_forward(graph_, compute_, trace_);
    const LayerPass backward = add_backward(graph_, compute_, trace_);
    std::vector<TaskId> updates(units_.size());
    for (std::size_t u = units_.size(); u-- > 0;)
      updates[u] = graph_.compute(compute_, units_[u].update / shards_, {"update", units_[u].name});
    if (context_.workers.size() > 1) {
      for (std::size_t u = units_.size(); u-- > 0;) {
        const TaskId scattered = communicate(CollectiveOp::reduce_scatter, "reduce-scatter", u);
        graph_.after(backward.at(units_[u].first), scattered);
        graph_.after(scattered, updates[u]);
      }
      gather(updates, forward);
      if (strategy_.stage_ == 3 && strategy_.reshard_) gather_again(forward, backward);
    }
    return {std::move(graph_), {{"worker", context_.workers, memory()}}};
  }

 private:
  TaskId communicate(CollectiveOp op, const char* operation, std::size_t u) {
    const CollectiveSettings& settings = context_.collective;
    return graph_.collective(
        communication_,
        {.op = op,
         .algorithm = supports(settings.algorithm, op) ? settings.algorithm : default_algorithm(op),
         .level = settings.level,
         .group = workers_,
         .bytes = units_[u].bytes,
         .gamma = op == CollectiveOp::reduce_scatter ? settings.gamma : 0},
        {operation, units_[u].name});
  }

  /// Brings all units' parameters to all workers, in the order in which the forward pass needs them.
  void gather(const std::vector<TaskId>& updated, const LayerPass& forward) {
    const bool in_pass = strategy_.stage_ == 3;  // else right behind the update
    std::vector<TaskId> gathered;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      gathered.push_back(communicate(CollectiveOp::all_gather, "all-gather", u));
      if (u > 0) graph_.after(gathered[u - 1], gathered[u]);
      graph_.after(updated[u], gathered[u], in_pass ? 1 : 0);
      graph_.after(gathered[u], forward.at(units_[u].first), in_pass ? 0 : 1);
      if (in_pass && u >= ahead()) graph_.after(last_task(forward, u - ahead()), gathered[u]);
    }
  }

  /// The same once more for the backward pass, last unit first.
  void gather_again(const LayerPass& forward, const LayerPass& backward) {
    std::optional<TaskId> before;
    for (std::size_t u = units_.size(); u-- > 0;) {
      const TaskId gathered = communicate(CollectiveOp::all_gather, "all-gather again", u);
      if (before) graph_.after(*before, gathered);
      graph_.after(u + ahead() < units_.size() ? backward.at(units_[u + ahead()].first) : forward.tasks.back(),
                   gathered);
      graph_.after(gathered, first_task(backward, u));
      before = gathered;
    }
  }

  /// How many units further on those are that may be gathered once one has been computed.
  std::size_t ahead() const { return static_cast<std::size_t>(strategy_.prefetch_) + 1; }

  /// The last task of a unit's forward pass, which may not be its last layer's: some take no time.
  TaskId last_task(const LayerPass& forward, std::size_t u) const {
    const std::size_t next = u + 1 < units_.size() ? forward.position[units_[u + 1].first] : forward.tasks.size();
    return forward.tasks[std::max<std::size_t>(next, 1) - 1];
  }
  /// The first task of a unit's backward pass; likewise.
  TaskId first_task(const LayerPass& backward, std::size_t u) const {
    if (u + 1 == units_.size()) return backward.tasks.front();
    return backward.tasks[std::min(backward.position[units_[u + 1].first] + 1, backward.tasks.size() - 1)];
  }

  MemoryUse memory() const {
    MemoryUse use = replica_memory(trace_, context_.optimizer);
    if (context_.workers.size() == 1) return use;
    use.optimizer_state = use.optimizer_state / shards_;
    if (strategy_.stage_ >= 2) use.gradients = use.gradients / shards_ + largest_window(units_, 1);
    if (strategy_.stage_ == 3) {
      const std::size_t held = strategy_.reshard_ ? static_cast<std::size_t>(strategy_.prefetch_) + 1 : units_.size();
      use.parameters = use.parameters / shards_ + largest_window(units_, held);
    }
    return use;
  }

  const ShardedDataParallel& strategy_;
  const StrategyContext& context_;
  WorkloadTrace trace_;
  std::vector<Unit> units_;
  double shards_;
  CyclicTaskGraph graph_;
  GroupId workers_;
  QueueId compute_, communication_;
};

TrainingStep ShardedDataParallel::compile(const StrategyContext& context) const {
  return Builder(*this, context).build();
}

}  // namespace epocast
