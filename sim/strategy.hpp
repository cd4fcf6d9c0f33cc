#pragma once
// The interface of training strategies: a strategy compiles one training step to a cyclic task graph. It never sees the
// simulator, never reads a file, never prints. Implementations live in strategies/, one pair of files each.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/collective.hpp"
#include "sim/memory.hpp"
#include "sim/model.hpp"
#include "sim/operator_graph.hpp"
#include "sim/registry.hpp"
#include "sim/task_graph.hpp"
#include "sim/workload_trace.hpp"

namespace epocast {

/// How collectives are carried out unless a strategy has reasons of its own.
struct CollectiveSettings {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  CollectiveLevel level = CollectiveLevel::automatic;
  double gamma = 0;  ///< s per byte reduced

  Collective all_reduce(Bytes bytes, GroupId group) const {
    return {.op = CollectiveOp::all_reduce,
            .algorithm = algorithm,
            .level = level,
            .group = group,
            .bytes = bytes,
            .gamma = gamma};
  }
};

/// How much of a step of many micro-batches is written: all, or what sim/long_step.hpp needs.
struct StepLength {
  static constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
  std::size_t shorten_from = kNever;  ///< from how many passes of layers on, in an iteration, fewer micro-batches do
  int patience = 1;       ///< so many times as many of these as are enough if nothing settles late; 0: fewer,
                          ///< enough for an estimate
  int micro_batches = 0;  ///< or just so many of these, if not 0
};

/// What a strategy may know.
struct StrategyContext {
  const Cluster& cluster;
  std::vector<DeviceId> workers;  ///< devices that train, in rank order; at least one
  std::int64_t global_batch = 0;  ///< samples of all workers together, a multiple of Strategy::batch_divisor()
  TraceSource trace;              ///< the network's layer-wise trace on the workers or any device, at any batch size
  CollectiveSettings collective;
  Optimizer optimizer = Optimizer::sgd;
  int update_accesses = 0;          ///< of each parameter's values, in fp32; 0: as few as a fused update makes
  Bytes memory_reserve = {};        ///< of each device's memory, not for training
  double memory_reserve_share = 0;  ///< the same, as a share of it, on top
  std::shared_ptr<const DeviceKinds> kinds = std::make_shared<const DeviceKinds>(cluster, workers);  ///< of the workers
  const Model* model = nullptr;  ///< the network, where it is known in more detail than its trace
  /// The traces of another network, such as one device's part of it. Throws ConfigError where the study's times are of
  /// whole layers. Empty without a model.
  std::function<TraceSource(std::shared_ptr<const Model>)> trace_of = {};
  /// A training step of the network as single operations, at a batch size. Throws ConfigError for layers whose
  /// operations are not known. Empty without a model.
  std::function<OperatorGraph(std::int64_t batch)> operations = {};

  StepLength length = {};

  /// Adds to a trace of one of so many micro-batches of a step what it takes to add up their gradients. Empty: nothing.
  std::function<void(WorkloadTrace& trace, int micro_batches)> accumulate = {};

  /// The network's trace with a batch that is one of so many micro-batches of a step.
  TraceSource micro_batch_trace(int micro_batches) const {
    if (!accumulate) return trace;
    return [made = trace, add = accumulate, micro_batches](std::int64_t batch) {
      WorkloadTrace one = made(batch);
      add(one, micro_batches);
      return one;
    };
  }
  /// A worker's share of the batch. At least one sample: a batch that is not divided may have fewer than there are
  /// workers.
  std::int64_t worker_batch() const {
    return std::max<std::int64_t>(1, global_batch / static_cast<std::int64_t>(workers.size()));
  }
  /// What an update of parameters of a precision reads and writes.
  Bytes update_bytes(Bytes parameters, Precision precision) const {
    const int accesses = update_accesses > 0 ? update_accesses : optimizer_accesses(optimizer);
    return parameters * (bytes_per_value(Precision::fp32) / bytes_per_value(precision) * accesses);
  }
  const Device& device(DeviceId id) const { return cluster.devices[static_cast<std::size_t>(id)]; }
  /// A time that follows from the figures of a worker's device.
  template <std::invocable<const Device&> Of>
  DeviceTime on_each_worker(Of of) const {
    return DeviceTime::each(kinds, [&](DeviceId id) { return of(device(id)); });
  }
};

/// What a device holds of a layer's parameters and their optimizer state.
struct HeldLayer {
  Bytes lasting;  ///< with which training goes on
  Bytes read;     ///< of that, what steps, or rounds of steps, begin with reading elsewhere
};

/// What a device, or each of several that do the same, holds at its peak.
struct DeviceMemory {
  std::string holder;  ///< "worker", "stage 2", "server 0", ...
  std::vector<DeviceId> devices;
  MemoryUse use;
  std::map<std::size_t, HeldLayer> layers = {};  ///< what use.lasting() is made of; empty: not known
};

/// A step of fewer micro-batches than the whole one, for sim/long_step.hpp.
struct ShortenedStep {
  static constexpr int kIfTheyOverlap = 3;  ///< iterations until they are seen to repeat themselves

  int micro_batches = 0;
  int left_out = 0;     ///< of the whole step's
  int repeat = 1;       ///< after a multiple of so many the schedule does the same again
  bool repeats = true;  ///< or else it only grows by the same with each
  bool alone = true;    ///< mostly it tells by itself
  int more = 0;         ///< micro-batches of all iterations that may be taken to see it repeat itself; 0: these
  int window = 1;       ///< micro-batches fewer, that another step has, show what as many more would add
};

/// Training, ready to be repeated.
struct TrainingStep {
  CyclicTaskGraph graph;
  std::vector<DeviceMemory> memory;  ///< at least of the devices that need the most
  std::int64_t steps = 1;         ///< of every worker in one iteration of the graph, each of them global_batch samples
  std::int64_t input_shares = 0;  ///< among how many of those that read the network's input the batch is divided, all
                                  ///< others reading the same again; 0: Strategy::batch_divisor()
  std::string composition = {};   ///< what it was put together from, for people; empty if nothing was
  std::vector<std::string> notes = {};          ///< what is not quite as the study says, such as padding
  std::optional<ShortenedStep> shortened = {};  ///< if `graph` is not the whole step; everything else is of the whole
};

/// Compiles (trace, cluster, options) to a cyclic task graph. One iteration of the graph is one step of every worker,
/// or TrainingStep::steps of them, and each step consumes global_batch samples.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// Throws ConfigError (at the option's place) for options that do not fit the context.
  virtual TrainingStep compile(const StrategyContext& context) const = 0;
  /// What the global batch has to be a multiple of: into how many equal shares it is divided. Throws ConfigError for a
  /// number of workers that the strategy cannot use.
  virtual std::int64_t batch_divisor(std::int64_t workers) const { return workers; }
  /// Whether the strategy uses the network's trace; false for pure communication benchmarks.
  virtual bool needs_model() const { return true; }
  /// Whether each device holds what its trace says, so that what is offloaded there leaves it; false for strategies
  /// that place every tensor by themselves.
  virtual bool holds_its_trace() const { return true; }
};

using StrategyRegistry = Registry<Strategy>;

}  // namespace epocast
