// Equations 4.2 to 4.9 of Lee 2020 against what the strategies send: bytes exactly, times on an idle network to 0.1 %.
// N' inputs, N outputs, K samples of all P workers together, 4 bytes a value, alpha a message, beta a byte.
#include <catch2/catch.hpp>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "strategies/register.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/synthetic.hpp"

namespace epocast::lee2020_equations_test {

namespace {

constexpr double kAlpha = 2e-6, kBeta = 1 / 8e9, kSamples = 256, kValue = 4;

struct LayerSize {
  const char* name;
  double inputs, outputs;
};
const std::vector<LayerSize> kFullyConnected{
    {"VGG-16 FC1", 25088, 4096}, {"VGG-16 FC2", 4096, 4096}, {"VGG-16 FC3", 4096, 1000}, {"ResNet-50 FC", 2048, 1000}};

/// Messages and bytes that each worker sends one after the other.
struct Cost {
  double messages, bytes;
  double time() const { return messages * kAlpha + bytes * kBeta; }
};

/// A layer with `inputs` x `outputs` parameters and no bias behind one that makes its inputs.
TraceSource one_layer(LayerKind kind, double inputs, double outputs, int workers) {
  return [=](std::int64_t batch) {
    WorkloadTrace trace = testing::chain({testing::layer("below", 1e-3, 1e-3, 0, {}),
                                          testing::layer("layer", 1e-3, 2e-3, 1e-3, {kValue * inputs * outputs})},
                                         batch);
    const double samples = kSamples / workers;
    trace.layers[1].output = Bytes(kValue * inputs * samples);
    trace.layers[2].kind = kind;
    trace.layers[2].output = Bytes(kValue * outputs * samples);
    return trace;
  };
}

struct Expected {
  std::string operation;
  Cost cost;
};

/// Compiles the strategy and runs each of its collectives alone.
void check(const std::string& gradients, LayerKind kind, double inputs, double outputs, int workers,
           CollectiveLevel level, CollectiveAlgorithm algorithm, const std::vector<Expected>& expected) {
  const testing::Star star(workers, 1 / kBeta, kAlpha);
  std::vector<DeviceId> devices(static_cast<std::size_t>(workers));
  std::iota(devices.begin(), devices.end(), 0);
  const ConfigNode node = ConfigNode::load_text("{gradients: " + gradients + "}", "options");
  const TrainingStep step = builtin_strategies()
                                .make("layerwise_data_parallel", node, node)
                                ->compile({star.cluster(),
                                           devices,
                                           static_cast<std::int64_t>(kSamples),
                                           one_layer(kind, inputs, outputs, workers),
                                           {.algorithm = algorithm, .level = level}});
  std::vector<testing::Run> runs;
  std::vector<std::string> operations;
  for (const Task& task : step.graph.tasks())
    if (const auto* collective = std::get_if<Collective>(&task.work)) {
      CyclicTaskGraph alone;
      Collective copy = *collective;
      copy.group = alone.add_group("workers", devices);
      alone.collective(alone.add_queue("network", copy.group, QueueRole::communication, Discipline::fifo), copy,
                       task.label);
      runs.push_back({std::move(alone), {.iterations = 1}});
      operations.push_back(task.label.operation);
    }
  const std::vector<ExecutionResult> results = testing::simulate(star.cluster(), runs);
  REQUIRE(results.size() == expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    INFO(gradients << ", " << operations[i] << ", P = " << workers);
    CHECK(operations[i] == expected[i].operation);
    // Sums of equal doubles in another order: exact but for rounding.
    CHECK(results[i].metrics.bytes == Approx(workers * expected[i].cost.bytes).epsilon(1e-12));
    CHECK(results[i].total == Approx(expected[i].cost.time()).epsilon(1e-3));
  }
}

Cost equation_4_2(const LayerSize& layer, double p) {
  return {p - 1, kValue * layer.inputs * kSamples / (p * p) * (p - 1)};
}
Cost equation_4_3(const LayerSize& layer, double p) { return {p - 1, kValue * layer.outputs * kSamples / p * (p - 1)}; }
Cost equation_4_4(const LayerSize& layer, double p) {
  return {p - 1, kValue * layer.inputs * layer.outputs / p * (p - 1)};
}
Cost equation_4_6(double bytes, double p) { return {std::log2(p), std::log2(p) * bytes}; }
Cost equation_4_7(double bytes, double p) { return {2 * std::log2(p), 2 * (p - 1) / p * bytes}; }

void check_fully_connected(const LayerSize& layer, int p, CollectiveLevel level) {
  INFO(layer.name << ", level " << to_string(level));
  check("pcnn", LayerKind::fully_connected, layer.inputs, layer.outputs, p, level, CollectiveAlgorithm::ring,
        {{"all-to-all activations", equation_4_2(layer, p)},
         {"all-gather errors", equation_4_3(layer, p)},
         {"all-gather parameters", equation_4_4(layer, p)}});  // their sum is equation 4.5
  check("all_reduce", LayerKind::fully_connected, layer.inputs, layer.outputs, p, level,
        CollectiveAlgorithm::halving_doubling,
        {{"all-reduce", equation_4_7(kValue * layer.inputs * layer.outputs, p)}});
}

/// D filters of F weights: conv4_2 of VGG-16, and the first layer.
void check_convolution(double filters, double weights, int p, CollectiveLevel level) {
  const Cost half{p - 1.0, kValue * filters * weights / p * (p - 1)};  // equation 4.9 is twice this
  check("pcnn", LayerKind::convolution, weights, filters, p, level, CollectiveAlgorithm::ring,
        {{"all-to-all gradients", half}, {"all-gather parameters", half}});
}

}  // namespace

TEST_CASE("Lee 2020: equations 4.2 to 4.9 hold for 2 to 256 workers", "[lee2020]") {
  for (int p = 2; p <= 256; p *= 2) {
    for (const LayerSize& layer : kFullyConnected) check_fully_connected(layer, p, CollectiveLevel::flow);
    check_convolution(512, 512 * 9, p, CollectiveLevel::flow);
    check_convolution(64, 3 * 9, p, CollectiveLevel::flow);
    // Equation 4.6 is for an all-reduce of up to 2 KB that takes log2 P rounds of the whole vector: MPICH's recursive
    // doubling.
    check("all_reduce", LayerKind::convolution, 64, 8, p, CollectiveLevel::flow,
          CollectiveAlgorithm::recursive_doubling, {{"all-reduce", equation_4_6(2048, p)}});
  }
}

TEST_CASE("Lee 2020: message by message the same", "[lee2020]") {
  for (int p = 8; p <= 64; p *= 2) {
    check_fully_connected(kFullyConnected.front(), p, CollectiveLevel::message);
    check_convolution(512, 512 * 9, p, CollectiveLevel::message);
  }
}

TEST_CASE("Lee 2020: message by message the same for 256 workers", "[lee2020][long]") {
  check_fully_connected(kFullyConnected.front(), 256, CollectiveLevel::message);
  check_convolution(512, 512 * 9, 256, CollectiveLevel::message);
}

TEST_CASE("Lee 2020: a pcnn step with aggregated flows takes as long as message by message", "[lee2020]") {
  // One communication at a time and all workers alike: aggregating the rounds of an exchange into one flow per worker
  // loses nothing, folding neither.
  const ConfigNode node = ConfigNode::load_text("{gradients: pcnn}", "options");
  const auto pcnn = builtin_strategies().make("layerwise_data_parallel", node, node);
  for (int p = 8; p <= 64; p *= 2) {
    const testing::Star star(p, 1 / kBeta, kAlpha);
    std::vector<DeviceId> devices(static_cast<std::size_t>(p));
    std::iota(devices.begin(), devices.end(), 0);
    const auto run = [&](CollectiveLevel level, bool fold) {
      const TrainingStep step = pcnn->compile({star.cluster(),
                                               devices,
                                               static_cast<std::int64_t>(kSamples),
                                               one_layer(LayerKind::fully_connected, 2048, 1000, p),
                                               {.level = level}});
      return testing::simulate(star.cluster(), step.graph, {.iterations = 1000, .fold = fold});
    };
    const ExecutionResult messages = run(CollectiveLevel::message, false);
    const ExecutionResult flows = run(CollectiveLevel::flow, false);
    const ExecutionResult folded = run(CollectiveLevel::flow, true);
    INFO("P = " << p);
    CHECK(flows.iteration == Approx(messages.iteration).epsilon(1e-4));
    CHECK(flows.metrics.bytes == Approx(messages.metrics.bytes).epsilon(1e-12));
    CHECK(folded.folded);
    CHECK_FALSE(flows.folded);
    CHECK(folded.total == Approx(flows.total).epsilon(1e-9));
  }
}

TEST_CASE("Lee 2020: inequality 4.8 says when pcnn sends less", "[lee2020]") {
  // N'K/P + NK < NN' if and only if the bytes of 4.5 are below those of 4.7: with the common factor (P-1)/P taken out,
  // 4.5 is N'K/P + NK + NN' and 4.7 is 2 NN'.
  for (const LayerSize& layer : kFullyConnected)
    for (int p = 2; p <= 256; p *= 2) {
      INFO(layer.name << ", P = " << p);
      const double ours = equation_4_2(layer, p).bytes + equation_4_3(layer, p).bytes + equation_4_4(layer, p).bytes;
      const double theirs = equation_4_7(kValue * layer.inputs * layer.outputs, p).bytes;
      CHECK(ours < theirs);
      CHECK(layer.inputs * kSamples / p + layer.outputs * kSamples < layer.inputs * layer.outputs);
      // The advantage has a ceiling of 2, which is never reached.
      CHECK(theirs / ours == Approx(2 / (1 + kSamples / layer.outputs / p + kSamples / layer.inputs)));
      CHECK(theirs / ours < 2);
    }
}

}  // namespace epocast::lee2020_equations_test
