#pragma once
// Training steps put together: a mesh of devices, a schedule of micro-batches through stages of layers, a body that
// divides layers over devices, a synchronisation of replicas. `pipeline` is a preset of it.
//
// Scope: the schedules of strategies/schedules/schedule.hpp; stages may be replicated and, in a pipeline without a
// tensor axis, each as often as it needs. Activations and their gradients travel between stages while these compute.
// Networks with branches are cut in topological order: what later stages read is handed on from stage to stage. A table
// that the first stage looks up and the last multiplies by is on both, and its gradients are added up. One iteration is
// one update of the whole batch. Limits: a norm of all gradients, which would make all stages wait for each other
// before an update, is not computed; every replica of a stage has the same share of each micro-batch. Validation:
// closed forms of the schedules' papers to 1e-9 (tests/unit/pipeline_test.cpp); timelines by hand and all splits tried
// out (tests/unit/pipeline_layout_test.cpp); Eserol 2019, Table 5.15 (docs/reproduce.md); bytes of tensor parallelism
// by formula (tests/unit/composition_test.cpp).

#include <memory>
#include <optional>
#include <vector>

#include "sim/strategy.hpp"
#include "strategies/bodies/body.hpp"
#include "strategies/step/layout.hpp"
#include "strategies/step/mesh.hpp"
#include "strategies/step/step_graph.hpp"

namespace epocast {

class Composition final : public Strategy {
 public:
  /// The preset `pipeline`: a mesh of stages and replicas, all-reduce.
  static std::unique_ptr<Strategy> pipeline(const ConfigNode& options);
  static EntryInfo pipeline_info();

  /// From the keys mesh, schedule, body and synchronisation. Throws ConfigError for parts that do not go together.
  static std::unique_ptr<Strategy> compose(const ConfigNode& options, const BodyRegistry& bodies,
                                           const SynchronisationRegistry& synchronisations);
  static EntryInfo info();
  /// Every schedule, with the options that it has.
  static std::vector<EntryInfo> schedule_infos();

  TrainingStep compile(const StrategyContext& context) const override;
  /// Replicas, not devices: a pipeline works on the batch as a whole.
  std::int64_t batch_divisor(std::int64_t workers) const override;

  /// How the stages' replicas lie on the workers in rank order.
  enum class Placement {
    stage_major,    ///< a stage's replicas are neighbours
    replica_major,  ///< a replica's stages are neighbours
  };

 private:
  /// Where a schedule's name and options are.
  struct ScheduleOptions {
    ConfigNode named_in;
    const char* name_key;
    ConfigNode options;
  };
  using Bodies = std::vector<std::pair<std::string, std::shared_ptr<const Body>>>;  ///< by name
  static Bodies read_bodies(const ConfigNode& options, const Mesh& mesh, const BodyRegistry& registry);
  Composition(const ScheduleOptions& schedule, std::optional<Mesh> mesh, Bodies bodies,
              std::shared_ptr<const Synchronisation> synchronisation);

  /// A plan without chunks and devices, where they go, and the traces that the plan will refer to.
  struct Choice {
    StepPlan plan;
    std::unique_ptr<MicroBatch> micro_batch;
    StageLayout layout;
  };

  void read_replicas(const ConfigNode& node);
  void check_options() const;
  void check_synchronisation(const std::string& schedule, const std::string& name) const;
  void check_round(const StepPlan& plan, const TrainingRound& round) const;
  std::vector<int> replicas_on(std::size_t workers) const;
  int micro_batches_of(std::int64_t batch, int stages, int shares) const;
  std::vector<std::size_t> named_boundaries(const WorkloadTrace& trace, int chunks) const;
  StepPlan plan_for(int stages, int micro_batches) const;
  bool copies_by_pass(const StepPlan& plan) const;
  /// Whose traces forget what a stage does not receive, if `recompute` is set, and wait for no copies if stages do.
  std::unique_ptr<MicroBatch> micro_batch_of(const StrategyContext& context, const StepPlan& plan) const;
  SplitLimits limits(const StrategyContext& context) const;
  bool splits_blocks(const WorkloadTrace& passes, int chunks) const;
  StageLayout given_layout(const StrategyContext& context, MicroBatch& micro_batch, const StepPlan& plan,
                           const std::vector<int>& replicas) const;
  std::vector<int> micro_batches_to_try(std::int64_t batch, int stages) const;
  Choice best_layout(const StrategyContext& context) const;
  std::vector<StageRanks> place_stages(const std::vector<DeviceId>& workers, const std::vector<int>& replicas) const;
  std::optional<DividedModel> divide(const StrategyContext& context) const;
  std::string text(const StepPlan& plan) const;
  std::optional<ShortenedStep> shortened(const StepPlan& plan, const StepLength& length) const;
  std::vector<LayerExchanges> exchanges(const DividedModel& divided, const WorkloadTrace& trace) const;
  void scatter_messages(StepPlan& plan, const DividedModel& divided) const;
  ConfigNode place(const char* key) const { return options_.has(key) ? options_.at(key) : options_; }

  std::optional<Mesh> mesh_;  ///< else stages and replicas say where what is
  Bodies bodies_;             ///< in the order in which they divide; none: whole layers
  std::shared_ptr<const Synchronisation> synchronisation_;
  ConfigNode synchronisation_place_;
  std::string synchronisation_name_ = "all_reduce";
  ConfigNode options_;  ///< of the schedule
  PipelineSchedule schedule_;
  std::optional<int> stages_, micro_batches_, in_flight_;
  std::vector<int> replicas_;     ///< by stage, if they are given
  bool choose_replicas_ = false;  ///< they are to be chosen
  int chunks_per_stage_;
  SplitRule split_;
  BytesPerSecond split_bandwidth_;
  std::vector<ConfigNode> first_layers_;
  GradientPlace gradients_;
  bool recompute_;
  double copy_;  ///< s per byte
  bool blocking_;
  bool overlap_;
  bool scatter_messages_;
  Placement placement_;
};

}  // namespace epocast
