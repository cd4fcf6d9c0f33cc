#pragma once
// Pipelines of equal layers, compiled and simulated on a star of free links.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "strategies/register.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/synthetic.hpp"

namespace epocast::testing {

struct Passes {
  double f = 1, data = 1, w = 1;  ///< ms per stage and micro-batch
  double b() const { return data + w; }
};

/// `layers` equal layers L0, L1, ...; stages of several share the stage's time. Activations have no bytes.
inline TraceSource equal_layers(int layers, Passes stage, int layers_per_stage = 1, double output = 0,
                                double update = 0) {
  return [=](std::int64_t batch) {
    std::vector<LayerTrace> made;
    for (int l = 0; l < layers; ++l) {
      LayerTrace one = layer("L" + std::to_string(l), 0, 0, update, {1e6});
      const double share = kMs / layers_per_stage;
      one.times.forward = Seconds(stage.f * share);
      one.times.backward_data = Seconds(stage.data * share);
      one.times.backward_weights = Seconds(stage.w * share);
      one.output = Bytes(output);
      one.kept_activations = Bytes(1000.0 * static_cast<double>(batch));
      made.push_back(one);
    }
    WorkloadTrace trace = chain(std::move(made), batch);
    trace.layers.front().output = trace.layers.front().kept_activations = Bytes(0);
    return trace;
  };
}

struct ExecutedPipeline {
  TrainingStep step;
  ExecutionResult result;

  double bubble() const { return 1 - result.metrics.compute / result.iteration; }

  /// The most micro-batches of one iteration that a stage has between the start of the forward pass and the end of the
  /// pass called `last`, from the timeline; they are one chunk's if there are several.
  std::map<std::string, int> peak_in_flight(const std::string& last) const {
    std::map<std::string, std::vector<std::pair<double, int>>> changes;
    for (const Interval& i : result.timeline.intervals) {
      const Label& label = step.graph.tasks()[i.task].label;
      if (label.operation == "forward") changes[label.layer].push_back({i.start, +1});
      if (label.operation == last) changes[label.layer].push_back({i.end, -1});
    }
    std::map<std::string, int> peak;
    for (auto& [stage, list] : changes) {
      // Something that ends does so before what starts at the same time, up to rounding.
      std::sort(list.begin(), list.end(), [](const auto& x, const auto& y) {
        return std::abs(x.first - y.first) > 1e-9 ? x.first < y.first : x.second < y.second;
      });
      int now = 0;
      for (const auto& [time, change] : list) peak[stage] = std::max(peak[stage], now += change);
    }
    return peak;
  }
};

inline TrainingStep compile_pipeline(const Cluster& cluster, const std::string& options, int workers, int batch,
                                     const TraceSource& trace, Optimizer optimizer = Optimizer::sgd) {
  const ConfigNode node = ConfigNode::load_text(options, "options");
  std::vector<DeviceId> devices(static_cast<std::size_t>(workers));
  std::iota(devices.begin(), devices.end(), 0);
  const auto strategy = builtin_strategies().make("pipeline", node, node);
  node.check_all_read();
  return strategy->compile({cluster, devices, batch, trace, {}, optimizer});
}

inline ExecutedPipeline run_pipeline(const std::string& options, int workers, int batch, const TraceSource& trace,
                                     int iterations = 12, double bandwidth = 1e12, double latency = 0) {
  const Star star(workers, bandwidth, latency);
  TrainingStep step = compile_pipeline(star.cluster(), options, workers, batch, trace);
  ExecutionResult result =
      simulate(star.cluster(), step.graph, {.iterations = iterations, .exact = true, .record_timeline = true});
  return {std::move(step), std::move(result)};
}

}  // namespace epocast::testing
