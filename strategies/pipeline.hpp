#pragma once
// Pipeline parallelism: consecutive layers on consecutive devices, several micro-batches under way at a time.
//
// Scope: the schedules of strategies/pipeline/schedule.hpp; stages may be replicated, with an all-reduce of each
// stage's gradients. Activations and their gradients travel between stages while these compute. Networks with branches
// are cut in topological order: what later stages read is handed on from stage to stage. One iteration is one update of
// the whole batch. Limits: all stages' devices are taken to be as fast as the one that the trace is for; no tensor
// parallelism inside a stage; a norm of all gradients, which would make all stages wait for each other before an
// update, is not computed; every replica of every stage has the same share of work.
// Validation: closed forms of the schedules' papers to 1e-9 (tests/unit/pipeline_test.cpp); Eserol 2019, Table 5.15
// (docs/reproduce.md).

#include <optional>

#include "sim/strategy.hpp"
#include "strategies/pipeline/graph.hpp"

namespace epocast {

class Pipeline final : public Strategy {
 public:
  explicit Pipeline(const ConfigNode& options);
  TrainingStep compile(const StrategyContext& context) const override;
  static EntryInfo info();

  /// How the stages' replicas lie on the workers in rank order.
  enum class Placement {
    stage_major,    ///< a stage's replicas are neighbours
    replica_major,  ///< a replica's stages are neighbours
  };

 private:
  void check_options() const;
  int stages_on(std::size_t workers) const;
  int micro_batches_of(std::int64_t replica_batch, int stages) const;
  std::vector<std::size_t> boundaries(const WorkloadTrace& trace, int chunks) const;
  std::vector<std::size_t> named_boundaries(const WorkloadTrace& trace, int chunks) const;
  std::vector<std::vector<Bucket>> reductions(const WorkloadTrace& trace, const std::vector<Chunk>& chunks) const;
  ConfigNode place(const char* key) const { return options_.has(key) ? options_.at(key) : options_; }

  ConfigNode options_;
  PipelineSchedule schedule_;
  std::optional<int> stages_, micro_batches_, in_flight_;
  int chunks_per_stage_;
  SplitRule split_;
  BytesPerSecond split_bandwidth_;
  std::vector<ConfigNode> first_layers_;
  GradientPlace gradients_;
  bool recompute_;
  double copy_;  ///< s per byte
  BucketRule reductions_;
  bool overlap_;
  Placement placement_;
};

}  // namespace epocast
