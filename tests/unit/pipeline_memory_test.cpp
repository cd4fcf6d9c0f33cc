// What a stage of a pipeline holds while one of its passes runs.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "sim/memory_timeline.hpp"
#include "sim/recompute.hpp"
#include "tests/support/layerwise.hpp"
#include "tests/support/pipeline.hpp"

namespace epocast::pipeline_memory_test {

using testing::LayerwiseSetting;
using testing::shipped_model;

std::size_t index_of(const WorkloadTrace& trace, const std::string& name) {
  for (std::size_t l = 0; l < trace.layers.size(); ++l)
    if (trace.layers[l].name == name) return l;
  throw std::invalid_argument(name);
}

TEST_CASE("memory: with one pass under way, a stage holds what its layers hold", "[pipeline][memory]") {
  for (const std::string model : {"vgg16", "resnet50"}) {
    for (const double workspace : {0.0, 1e8}) {
      LayerwiseSetting setting(shipped_model(model), testing::cluster_of(2), 2, 16);
      StrategyContext context = setting.context();
      context.trace = [of = context.trace, workspace](std::int64_t batch) {
        WorkloadTrace trace = of(batch);
        for (LayerTrace& layer : trace.layers) layer.workspace = Bytes(workspace);
        return trace;
      };
      const std::string first = model == "vgg16" ? "conv3_1" : "layer3.0.conv1";
      const ConfigNode node =
          ConfigNode::load_text("{schedule: gpipe, micro_batches: 1, first_layers: [" + first + "]}", "options");
      const TrainingStep step = builtin_strategies().make("pipeline", node, node)->compile(context);
      const WorkloadTrace trace = context.trace(16);
      const std::size_t cut = index_of(trace, first);
      const std::vector<StageRange> ranges{{.first = 0, .last = cut - 1},
                                           {.first = cut, .last = trace.layers.size() - 1}};
      REQUIRE(step.memory.size() == ranges.size());
      for (std::size_t s = 0; s < ranges.size(); ++s) {
        INFO(model << ", workspace " << workspace << ", stage " << s);
        const MemoryUse alone = stage_memory(trace, Optimizer::sgd, ranges[s]);
        CHECK(step.memory[s].use.total().value == Approx(alone.total().value).epsilon(1e-12));
        CHECK(step.memory[s].use.activation_gradients.value == Approx(alone.activation_gradients.value));
        CHECK(step.memory[s].use.workspace.value == workspace);
        if (model == "vgg16") CHECK(alone.activation_gradients.value > 0);
      }
    }
  }
}

TEST_CASE("memory: a stage whose layers are all frozen keeps nothing for a backward pass", "[pipeline][memory]") {
  // L0 to L3 of 500 B each; the first three are not trained. Stage 1 has L1 and L2: both are there while L2 is made.
  const TraceSource source = [made = testing::equal_layers(4, {}, 1, 500)](std::int64_t batch) {
    WorkloadTrace trace = made(batch);
    for (LayerTrace& layer : trace.layers) {
      if (layer.name == "L3") continue;
      layer.frozen = layer.parameters;
      layer.parameters = layer.kept_activations = Bytes(0);
      layer.gradients.clear();
      layer.needs_gradient = false;
      layer.times.backward_data = layer.times.backward_weights = Seconds(0);
    }
    return trace;
  };
  const Cluster cluster = testing::cluster_of(3);
  const TrainingStep step =
      testing::compile_pipeline(cluster, "{schedule: gpipe, micro_batches: 4, first_layers: [L1, L3]}", 3, 4, source);
  CHECK(step.memory[1].use.activations.value == 1000);
  CHECK(step.memory[1].use.parameters.value == 2e6);
}

TEST_CASE("memory: a limit that only the running pass exceeds moves the boundary of stages", "[pipeline][memory]") {
  LayerwiseSetting setting(shipped_model("vgg16"), testing::cluster_of(2), 2, 32);
  const auto peak = [](const TrainingStep& step) {
    double most = 0;
    for (const DeviceMemory& stage : step.memory) most = std::max(most, stage.use.total().value);
    return most;
  };
  const std::string options = "{schedule: gpipe, micro_batches: 2, split: time}";
  const auto limited_to = [&](double bytes) {
    Cluster cluster = testing::cluster_of(2);
    for (Device& device : cluster.devices) device.memory = Bytes(bytes);
    return LayerwiseSetting(shipped_model("vgg16"), std::move(cluster), 2, 32).compile(options, "pipeline");
  };
  const double free = peak(setting.compile(options, "pipeline"));
  double least = free;
  for (const std::string first : {"conv1_2", "conv2_1", "conv2_2", "conv3_1", "conv3_2", "conv3_3", "conv4_1"})
    least = std::min(
        least, peak(setting.compile("{schedule: gpipe, micro_batches: 2, first_layers: [" + first + "]}", "pipeline")));
  REQUIRE(least < free);
  for (const double limit : {least, (least + free) / 2}) CHECK(peak(limited_to(limit)) <= limit);
}

}  // namespace epocast::pipeline_memory_test
