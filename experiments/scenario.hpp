#pragma once
// Runs one scenario: reads its configuration, builds the task graphs of its phases, simulates them.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "costmodels/host_launches.hpp"
#include "costmodels/measured_collectives.hpp"
#include "costmodels/software_stack.hpp"
#include "experiments/calibrate/step_calibration.hpp"
#include "experiments/costs/running_costs.hpp"
#include "experiments/disturbance_reader.hpp"
#include "experiments/memory_settings.hpp"
#include "experiments/packed_lengths.hpp"
#include "experiments/phase_run.hpp"
#include "experiments/result.hpp"
#include "experiments/ring_setting.hpp"
#include "experiments/study.hpp"
#include "sim/cost_model.hpp"
#include "sim/error.hpp"
#include "sim/execution.hpp"
#include "sim/simgrid/engine.hpp"
#include "sim/strategy.hpp"

namespace epocast {

struct LearningSettings;  // experiments/learning/settings.hpp

/// A part of training with one batch size and one set of workers.
struct PhaseSettings {
  std::vector<DeviceId> workers;
  std::int64_t global_batch = 0;
  std::int64_t epochs = 0;
  std::int64_t samples = 0;     ///< in an epoch
  bool drop_last = false;       ///< leave out the last, incomplete batch
  std::int64_t iterations = 0;  ///< of all its epochs

  /// Samples of each worker, if their shares are not equal: one more for the first of them, or one sample each where
  /// there are fewer than workers. Workers behind the last sample do the same as those before them, see Spare.
  std::vector<std::int64_t> shares = {};

  /// Of a step's samples those that its updates use: an update with a quorum leaves out the workers that come late.
  /// Where workers' shares differ, on average.
  double applied_samples(const CyclicTaskGraph& graph) const;

  /// `iterations`, if an iteration gets through only so many samples.
  std::int64_t iterations_of(double batch) const;
};

/// Vectors that fit into a cache are added up faster than others.
struct CachedReduction {
  Bytes up_to;
  double gamma = 0;  ///< s per byte reduced
};

/// What a strategy made of a phase, and the traces that it used.
struct CompiledPhase {
  TrainingStep step;
  std::set<AskedTrace> asked;
};

/// A scenario's configuration, read and checked.
struct ScenarioSetup {
  Cluster cluster;
  Model model;  ///< empty if the strategy needs none
  std::unique_ptr<Strategy> strategy;
  std::string strategy_name;
  Location strategy_place;  ///< of its name, for messages
  std::unique_ptr<CostModel> cost_model;
  LaunchSettings launches;
  bool computes_updates = false;  ///< their time follows from the optimizer's traffic; was not measured
  NetworkCorrection network;
  std::optional<StepConstants> steps;  ///< fitted constants that the configuration had put in
  CollectiveSettings collective;
  RingSetting rings;
  std::optional<CachedReduction> cached_reduction;
  std::vector<MeasuredCollectives> measured_collectives;  ///< the first whose scope fits counts
  Optimizer optimizer = Optimizer::sgd;
  bool fused_updates = true;  ///< all parameters by one kernel a step
  int update_accesses = 0;    ///< of each parameter's values; 0: as few as a fused optimizer makes
  Precision precision = Precision::fp32;
  MemorySettings memory;
  std::optional<PackedLengths> lengths;  ///< of sequences in a sample; the model is packed already
  std::int64_t samples = 0;              ///< of the data set
  std::vector<PhaseSettings> phases;
  std::size_t booked = 1;  ///< workers that the study has; in a phase some may be idle
  Irregularity irregularity;
  Shards shards = Shards::fixed;
  SoftwareStack stack;
  RunningCosts costs;
  bool in_step = true;                               ///< workers wait for each other in every step
  std::optional<CompiledPhase> first;                ///< the first phase, where `in_step` took compiling it
  std::shared_ptr<const LearningSettings> learning;  ///< null: only times are asked for

  /// The network's trace on a device, with workspace and recomputation as `settings` want them.
  WorkloadTrace trace(DeviceId device, std::int64_t batch, const MemorySettings& settings) const;
  /// The same of another network, such as a part of this one.
  WorkloadTrace trace(const Model& of, DeviceId device, std::int64_t batch, const MemorySettings& settings) const;
  /// What the strategy sees in a phase. Adds to `asked`, if given, the traces that it uses.
  StrategyContext context(const PhaseSettings& phase, std::set<AskedTrace>* asked = nullptr) const;
  /// The same with other settings of memory.
  StrategyContext context(const PhaseSettings& phase, const MemorySettings& settings,
                          std::set<AskedTrace>* asked = nullptr) const;
  /// The same for a worker that trains alone: without what its software does for the sake of the others.
  StrategyContext lone_context(const PhaseSettings& phase) const;
  /// Gives a collective what follows from its size and group: rings, the cost of reductions, a measured time.
  void tune(Collective& work, const Group& group) const;
  /// What the calibrations know of a message.
  MeasuredMessage measured_message(Bytes bytes) const;
  /// A step of fewer passes of layers, by micro-batches, takes a tenth of a second.
  static constexpr std::size_t kManyPasses = 30'000;
  /// What the strategy makes of a phase, which must not outlive this setup, with measured times of collectives and the
  /// memory reserve. Throws ConfigError.
  TrainingStep compile(const PhaseSettings& phase, std::set<AskedTrace>* asked = nullptr,
                       const StepLength& length = {}) const;
  /// The strategy's part of that. Throws ConfigError.
  TrainingStep compile(const StrategyContext& context) const;

 private:
  StrategyContext context(const PhaseSettings& phase, const MemorySettings& settings, std::set<AskedTrace>* asked,
                          std::int64_t team) const;
};

/// Strategies a program knows; those of users come on top of the built-in ones.
struct Registries {
  StrategyRegistry strategies;
};
Registries builtin_registries();

/// Reads the configuration of a scenario. Throws ConfigError.
ScenarioSetup read_scenario(const Scenario& scenario, const Registries& registries);

/// How a phase is executed that begins `elapsed` s after training did: what the scenario says, apart from iterations
/// and what is recorded.
ExecutionOptions execution_options(const ScenarioSetup& setup, const PhaseSettings& phase, std::uint64_t seed,
                                   double elapsed);

/// An engine that was made before it was known for what, and that has not run.
struct ReadyEngine {
  SimEngine* engine = nullptr;
  std::filesystem::path platform_file;
  NetworkCorrection network;

  bool fits(const ScenarioSetup& setup) const {
    return platform_file == setup.cluster.platform_file && network.efficiency == setup.network.efficiency &&
           network.message_overhead == setup.network.message_overhead;
  }
};

/// A process has one engine, and it is of another platform than the scenario.
struct WrongEngine : std::runtime_error {
  WrongEngine() : std::runtime_error("the engine of this process has another platform") {}
};

/// A phase needs more memory than its devices have.
struct DoesNotFit : std::runtime_error {
  DoesNotFit() : std::runtime_error("a phase does not fit into memory") {}
};

struct RunOptions {
  bool exact = false;
  bool fold = true;
  bool explain = false;
  bool interval = false;   ///< fill ScenarioResult::iteration_low_s and iteration_high_s
  bool details = false;    ///< fill ScenarioResult::details
  bool only_time = false;  ///< nothing is asked for but how long an iteration takes
  bool must_fit = false;   ///< for advice: DoesNotFit is thrown for a phase that memory is too small for,
                           ///< SimulationError where ranks differ and are too many to be tried
  bool advise = true;      ///< simulate what might do better, for warnings
  int advisers = 1;        ///< children that do so at a time
  std::filesystem::path trace_file = {};  ///< Chrome trace to write; empty for none
  std::size_t trace_intervals = 1'000'000;
  ReadyEngine ready_engine = {};  ///< to be used instead of one of its own; WrongEngine is thrown if it does not fit
  std::function<void(double)> progress = {};  ///< told now and then what share of the scenario is done, 0..1, at least
};

/// Simulates a scenario in this process, whose one SimGrid engine it takes. Throws ConfigError and SimulationError.
ScenarioResult run_scenario(const Scenario& scenario, const Registries& registries, const RunOptions& options);

}  // namespace epocast
