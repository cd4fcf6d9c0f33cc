#pragma once
// A small transformer whose layers can be divided, on devices that compute at a fixed rate.

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sim/cost_model.hpp"
#include "sim/recompute.hpp"
#include "sim/strategy.hpp"
#include "strategies/register.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::testing {

/// Every FLOP takes 1 ps, and the update of a parameter as long.
class FixedRate final : public CostModel {
 public:
  PassTimes times(const Layer& layer, std::int64_t batch, const Device& /*device*/) const override {
    const double time = 1e-12 * static_cast<double>(batch);
    return {.forward = Seconds(time * layer.forward_flop),
            .backward_data = Seconds(time * layer.backward_data_flop),
            .backward_weights = Seconds(time * layer.backward_weights_flop),
            .update = Seconds(1e-12 * static_cast<double>(layer.parameter_count()))};
  }
};

inline std::shared_ptr<const Model> small_model(const std::string& name, int layers, const std::string& sizes) {
  const ConfigNode named = ConfigNode::load_text("{name: " + name + ", layers: " + std::to_string(layers) +
                                                     ", heads: 4, sequence: 16, vocabulary: 96, " + sizes + "}",
                                                 "small.yaml");
  return std::make_shared<const Model>(load_model_named(named, EPOCAST_SOURCE_DIR));
}

/// GPT-2 with so many layers of 64 features, 4 heads, 16 tokens and 96 words.
inline std::shared_ptr<const Model> small_transformer(int layers) { return small_model("gpt2", layers, "width: 64"); }

/// As many layers of that width, each with 8 experts of 96 features, two of which see a position; 2 heads of keys and
/// values.
inline std::shared_ptr<const Model> small_mixture(int layers) {
  return small_model("mixtral", layers, "hidden: 64, inner: 96, kv_heads: 2, experts: 8, chosen: 2");
}

struct TransformerSetting {
  std::shared_ptr<const Model> model;
  std::int64_t batch = 8;
  CollectiveSettings collective = {};
  bool recompute = false;
  StepLength length = {};
  Optimizer optimizer = Optimizer::sgd;
};

/// What a strategy makes of it on the first devices of a cluster.
inline TrainingStep compile_transformer(const Cluster& cluster, int workers, const std::string& strategy,
                                        const std::string& options, const TransformerSetting& setting) {
  static const FixedRate cost;
  std::vector<DeviceId> devices(static_cast<std::size_t>(workers));
  std::iota(devices.begin(), devices.end(), 0);
  const auto source = [&cluster, &setting](std::shared_ptr<const Model> model) {
    return TraceSource([&cluster, &setting, model = std::move(model)](std::int64_t batch) {
      WorkloadTrace trace = make_trace(*model, cost, batch, cluster.devices.front());
      if (setting.recompute) apply_recompute(trace, {.segments = Recompute::Segments::blocks});
      return trace;
    });
  };
  const ConfigNode node = ConfigNode::load_text(options, "options");
  const std::unique_ptr<Strategy> made = builtin_strategies().make(strategy, node, node);
  node.check_all_read();
  StrategyContext context{cluster, devices, setting.batch, source(setting.model), setting.collective};
  context.model = setting.model.get();
  context.trace_of = source;
  context.length = setting.length;
  context.optimizer = setting.optimizer;
  return made->compile(context);
}

}  // namespace epocast::testing
