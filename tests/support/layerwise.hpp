#pragma once
// Networks, contexts and random configurations for tests of layer-wise parallelism.

#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "strategies/layerwise/division.hpp"
#include "strategies/layerwise/plan.hpp"
#include "tests/support/synthetic.hpp"
#include "tests/support/transformer.hpp"
#include "workloads/operators/operator_graph_builder.hpp"

namespace epocast::testing {

inline std::shared_ptr<const Model> shipped_model(const std::string& name) {
  const ConfigNode node = ConfigNode::load_text(name, "model.yaml");
  return std::make_shared<const Model>(load_model_named(node, EPOCAST_SOURCE_DIR));
}

/// A context in which every FLOP takes 1 ps, for as long as this lives.
class LayerwiseSetting {
 public:
  LayerwiseSetting(std::shared_ptr<const Model> model, Cluster cluster, int workers, std::int64_t batch)
      : model_(std::move(model)), cluster_(std::move(cluster)) {
    std::vector<DeviceId> devices(static_cast<std::size_t>(workers));
    std::iota(devices.begin(), devices.end(), 0);
    const auto source = [this](std::shared_ptr<const Model> of) {
      return TraceSource([this, of = std::move(of)](std::int64_t samples) {
        return make_trace(*of, cost_, samples, cluster_.devices.front());
      });
    };
    context_ = std::make_unique<StrategyContext>(
        StrategyContext{cluster_, devices, batch, source(model_), {.algorithm = CollectiveAlgorithm::ring}});
    context_->model = model_.get();
    context_->trace_of = source;
    context_->operations = [this](std::int64_t samples) {
      return build_operator_graph(*model_, samples, {Optimizer::sgd, GradientUse::minimize});
    };
  }
  LayerwiseSetting(const LayerwiseSetting&) = delete;

  const StrategyContext& context() const { return *context_; }
  const Cluster& cluster() const { return cluster_; }
  const Model& model() const { return *model_; }

  TrainingStep compile(const std::string& options, const std::string& strategy = "layerwise") const {
    const ConfigNode node = ConfigNode::load_text(options, "options");
    const std::unique_ptr<Strategy> made = builtin_strategies().make(strategy, node, node);
    node.check_all_read();
    return made->compile(*context_);
  }

 private:
  std::shared_ptr<const Model> model_;
  Cluster cluster_;
  FixedRate cost_;
  std::unique_ptr<StrategyContext> context_;
};

/// Any degrees that the operator can have on so many workers, all equally likely.
inline Degrees random_degrees(std::mt19937& random, const OperatorNetwork& network, std::size_t op, std::int64_t batch,
                              int workers) {
  const std::vector<Degrees> all = all_degrees(workers, network.limits(op, batch));
  return all[std::uniform_int_distribution<std::size_t>(0, all.size() - 1)(random)];
}

/// Different workers in any order.
inline std::vector<int> random_devices(std::mt19937& random, std::int64_t places, int workers) {
  std::vector<int> all(static_cast<std::size_t>(workers));
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), random);
  all.resize(static_cast<std::size_t>(places));
  return all;
}

}  // namespace epocast::testing
