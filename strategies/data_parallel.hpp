#pragma once
// Synchronous data parallelism: every worker trains a replica on its share of the batch; gradients are summed over all
// workers by all-reduce before each update.
//
// Scope: what one all-reduce carries is a BucketRule (PyTorch DDP, Horovod); it starts as soon as its gradients are
// there, or after the backward pass. A communication queue per worker carries out one operation at a time: first ready
// first served, or the layer that the next forward pass needs first (Jayarajan et al. 2019, "Priority-based parameter
// propagation"; Peng et al. 2019, ByteScheduler; without cutting tensors). Updates follow the backward pass, or each
// waits until its layer's next forward pass, so that late communication hides there too (Das et al. 2016). Gradients
// may be accumulated over several micro-batches and compressed. Cores may be set aside for communication.
// Limits: otherwise communication takes no compute time away. Validation: tests/conformance,
// tests/unit/data_parallel_*test.cpp (timelines by hand).

#include "sim/strategy.hpp"
#include "strategies/communication_cores.hpp"
#include "strategies/gradient_buckets.hpp"
#include "strategies/gradient_compression.hpp"

namespace epocast {

class DataParallel final : public Strategy {
 public:
  explicit DataParallel(const ConfigNode& options);
  TrainingStep compile(const StrategyContext& context) const override;
  static EntryInfo info();

  enum class UpdateTime { after_backward, before_forward };

 private:
  class Builder;

  std::int64_t micro_batch(const StrategyContext& context) const;

  ConfigNode options_;
  BucketRule rule_;
  bool overlap_;
  Discipline order_;
  UpdateTime update_;
  std::int64_t accumulation_;
  GradientCompression compression_;
  CommunicationCores cores_;
};

}  // namespace epocast
