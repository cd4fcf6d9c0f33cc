#pragma once
// Synchronous data parallelism: every worker trains a replica on its share of the batch; gradients are summed over all
// workers by all-reduce before each update.
//
// Scope: what one all-reduce carries is a BucketRule (PyTorch DDP, Horovod); it starts as soon as its gradients are
// there, or after the backward pass, with others that wait if it fuses (Horovod), and then nothing hides it unless
// updates may start before. A communication queue per worker carries out one operation at a time: first ready first
// served, or the layer that the next forward pass needs first (Jayarajan et al. 2019, "Priority-based parameter
// propagation"; Peng et al. 2019, ByteScheduler; without cutting tensors). Updates follow when all gradients are there,
// or each layer's when its own are (which hides late communication behind updates), or each waits until its layer's
// next forward pass, so that communication hides there too (Das et al. 2016). Gradients may be accumulated over several
// micro-batches and compressed. Cores may be set aside for communication. Limits: otherwise communication takes no
// compute time away. Validation: tests/conformance, tests/unit/data_parallel_*test.cpp (timelines by hand).

#include "sim/strategy.hpp"
#include "strategies/communication_cores.hpp"
#include "strategies/gradient_buckets.hpp"
#include "strategies/gradient_compression.hpp"

namespace epocast {

class DataParallel final : public Strategy {
 public:
  /// When the optimizer may start.
  enum class UpdateTime {
    after_all,       ///< when the gradients of all layers are there
    after_backward,  ///< after the backward pass, layer by layer as gradients come
    before_forward,  ///< of a layer just before its next forward pass
  };
  struct Settings {
    BucketRule rule;
    bool overlap = true;  ///< all-reduces start during the backward pass
    Discipline order = Discipline::fifo;
    UpdateTime update = UpdateTime::after_backward;
    std::int64_t accumulation = 1;
  };

  explicit DataParallel(const ConfigNode& options);
  /// For strategies that are such settings. Of the options it reads communication_cores only.
  DataParallel(const ConfigNode& options, const Settings& settings);
  TrainingStep compile(const StrategyContext& context) const override;
  static EntryInfo info();

 private:
  class Builder;

  std::int64_t micro_batch(const StrategyContext& context) const;

  ConfigNode options_;
  Settings settings_;
  GradientCompression compression_;
  CommunicationCores cores_;
};

}  // namespace epocast
