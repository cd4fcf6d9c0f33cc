#pragma once
// Every operator has degrees of parallelism of its own: DeePa ("Exploring the hidden dimension in accelerating
// convolutional neural networks", under review 2017; Jia et al. 2018, arXiv 1802.04924).
//
// Scope: an operator is divided along images, output channels, rows, columns and its reduction dimension, in uneven
// parts where a degree does not divide. Devices send each other the boxes that they lack, forward and backward, and
// exchange gradients by all-reduce, through a server in host memory, or through servers on the devices. Image
// parallelism and "one weird trick" (Krizhevsky 2014) are configurations; others are given by operator, or found by
// node and edge elimination on the costs of equation 1. Runs of operators may be stages of a pipeline on workers of
// their own, through which micro-batches go by GPipe's schedule or 1F1B. Limits: operators that read the same tensor
// are each sent what they lack; batch normalisation takes its statistics over a device's tile; a softmax over divided
// channels does not exchange its sums. Validation: tests/unit/layerwise_*_test.cpp (boxes element by element,
// data_parallel to 1e-9, the search against brute force); docs/layerwise.md.

#include <optional>
#include <string>
#include <vector>

#include "sim/strategy.hpp"
#include "strategies/bodies/mpmd_body.hpp"
#include "strategies/layerwise/cost_tables.hpp"
#include "strategies/layerwise/plan.hpp"
#include "strategies/layerwise/step.hpp"

namespace epocast {

class Layerwise final : public Strategy {
 public:
  explicit Layerwise(const ConfigNode& options);
  /// The body `layerwise`.
  Layerwise(const ConfigNode& options, const AroundBody& around);
  TrainingStep compile(const StrategyContext& context) const override;
  /// Images need not be divided evenly, nor at all.
  std::int64_t batch_divisor(std::int64_t /*workers*/) const override { return 1; }
  bool holds_its_trace() const override { return false; }
  static EntryInfo info();
  static EntryInfo body_info() { return epocast::body_info(info(), "layerwise", {"schedule"}); }

  /// Operators of the context's network.
  static std::shared_ptr<const OperatorNetwork> network_of(const StrategyContext& context, const WorkloadTrace& trace);
  /// The stages and micro-batches that the options ask for. Throws ConfigError at the option's place.
  LayerwisePipeline pipeline(const StrategyContext& context, const OperatorNetwork& network) const;
  /// The global configuration that the options ask for. Throws ConfigError at the option's place.
  std::vector<Configuration> configurations(const StrategyContext& context, const OperatorNetwork& network,
                                            TileTimes& times, const LayerwisePipeline& pipeline) const;
  /// What a search looks at; its links are those of the options, if they are given.
  const CostSettings& cost_settings() const { return search_; }
  const LayerwiseSettings& replay_settings() const { return replay_; }
  PipelineSchedule schedule() const { return pipeline_.schedule; }
  int micro_batches() const { return pipeline_.micro_batches; }
  bool searches() const { return kind_ == Kind::search; }

 private:
  enum class Kind { image, one_weird_trick, search, given };

  Layerwise(const ConfigNode& options, std::optional<ConfigNode> schedule);
  Configuration read(const ConfigNode& node, const OperatorNetwork& network, std::size_t op, std::int64_t batch,
                     const LayerwisePipeline& pipeline) const;
  Configuration image(const OperatorNetwork& network, std::size_t op, std::int64_t batch,
                      const LayerwisePipeline& pipeline) const;

  ConfigNode options_;
  std::optional<ConfigNode> schedule_;
  Kind kind_ = Kind::image;
  LayerwiseSettings replay_;
  LayerwisePipeline pipeline_;  ///< of stages only the workers; none: all operators on all workers
  CostSettings search_;
};

/// All images divided over all workers.
Degrees image_degrees(std::size_t workers);
/// Images of convolutions and all else, channels of fully connected layers.
Degrees one_weird_trick_degrees(const OperatorNetwork& network, std::size_t op, std::size_t workers);

}  // namespace epocast
