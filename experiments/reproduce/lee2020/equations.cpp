// Equations 4.2 to 4.9 and table 4.1: messages and bytes that a worker sends one after the other, against what the
// strategies of chapter 4 make it send. N' inputs, N outputs, K = 256 samples of all P workers, 4 bytes a value.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "experiments/reproduce/lee2020/targets.hpp"
#include "sim/collective.hpp"
#include "sim/task_graph.hpp"

namespace epocast::lee2020 {
namespace {

constexpr double kSamples = 256, kValue = 4, kMebi = 1 << 20;
const std::vector<int> kWorkers{2, 16, 256};

/// What a worker sends: s messages, w bytes.
struct Sent {
  double messages = 0, bytes = 0;
};

struct LayerSize {
  std::string name;
  LayerKind kind;
  double inputs, outputs;  ///< of a convolution: weights of a filter, filters
};

const std::vector<LayerSize> kLayers{{"VGG-16 FC1", LayerKind::fully_connected, 25088, 4096},
                                     {"VGG-16 FC2", LayerKind::fully_connected, 4096, 4096},
                                     {"VGG-16 FC3", LayerKind::fully_connected, 4096, 1000},
                                     {"ResNet-50 FC", LayerKind::fully_connected, 2048, 1000},
                                     {"VGG-16 conv4_2", LayerKind::convolution, 512 * 9, 512}};

LayerTrace layer_trace(const std::string& name, LayerKind kind, int input, double output, double parameters) {
  LayerTrace layer;
  layer.name = name;
  layer.kind = kind;
  layer.inputs = {input};
  layer.times = {Seconds(1e-3), Seconds(1e-3), Seconds(1e-3), Seconds(1e-3)};
  layer.output = Bytes(kValue * output);
  layer.parameters = Bytes(kValue * parameters);
  if (parameters > 0) layer.gradients = {{name + ".weight", layer.parameters}};
  return layer;
}

/// What each operation of the strategy makes one of P workers send for a layer behind one that makes its inputs.
std::map<std::string, Sent> sent_by(const LayerSize& size, const std::string& gradients, CollectiveAlgorithm algorithm,
                                    int workers, const TargetContext& context) {
  Cluster cluster;
  for (int d = 0; d < workers; ++d) {
    cluster.devices.emplace_back();
    cluster.devices.back().name = cluster.devices.back().node = "node-" + std::to_string(d);
  }
  std::vector<DeviceId> devices(static_cast<std::size_t>(workers));
  std::iota(devices.begin(), devices.end(), 0);
  const auto trace = [&](std::int64_t batch) {
    const double samples = kSamples / workers;
    WorkloadTrace out{"one layer", batch, {}};
    out.layers = {layer_trace("data", LayerKind::input, 0, size.inputs * samples, 0),
                  layer_trace("below", LayerKind::convolution, 0, size.inputs * samples, 0),
                  layer_trace(size.name, size.kind, 1, size.outputs * samples, size.inputs * size.outputs)};
    out.layers.front().inputs.clear();
    out.layers.front().times = {};
    return out;
  };
  const ConfigNode options = ConfigNode::load_text("{gradients: " + gradients + "}", "options");
  const TrainingStep step =
      context.registries.strategies.make("layerwise_data_parallel", options, options)
          ->compile({cluster, devices, static_cast<std::int64_t>(kSamples), trace, {.algorithm = algorithm}});
  std::map<std::string, Sent> sent;
  for (const Task& task : step.graph.tasks())
    if (const auto* collective = std::get_if<Collective>(&task.work)) {
      const CollectiveSchedule schedule =
          make_schedule(collective->op, collective->algorithm, workers, collective->bytes.value);
      sent[task.label.operation] = {static_cast<double>(schedule.message_count()) / workers,
                                    schedule.total_bytes() / workers};
    }
  return sent;
}

class Rows {
 public:
  void add(const std::string& row, const std::string& what, Sent equation, Sent ours) {
    add(row, what + ", messages", "", equation.messages, ours.messages);
    add(row, what + ", volume", "MiB", equation.bytes / kMebi, ours.bytes / kMebi);
  }
  std::vector<TargetRow> take() { return std::move(rows_); }

 private:
  void add(const std::string& row, const std::string& quantity, const char* unit, double equation, double ours) {
    rows_.push_back({.row = row,
                     .quantity = quantity,
                     .unit = unit,
                     .published = equation,
                     .simulated = ours,
                     .role = Role::exact,
                     .tolerance = 1e-12 * equation});  // sums of equal numbers in another order
  }
  std::vector<TargetRow> rows_;
};

void add_layer(Rows& rows, const LayerSize& size, int workers, const TargetContext& context) {
  const double p = workers, inputs = size.inputs, outputs = size.outputs, weights = inputs * outputs;
  const std::string row = fmt::format("{} P={}", size.name, workers);
  std::map<std::string, Sent> pcnn = sent_by(size, "pcnn", CollectiveAlgorithm::ring, workers, context);
  const Sent share{p - 1, kValue * weights * (p - 1) / p};
  if (size.kind == LayerKind::convolution) {
    const Sent both{pcnn["all-to-all gradients"].messages + pcnn["all-gather parameters"].messages,
                    pcnn["all-to-all gradients"].bytes + pcnn["all-gather parameters"].bytes};
    rows.add(row, "4.9 exchange and gather", {2 * share.messages, 2 * share.bytes}, both);
    return;
  }
  const Sent activations{p - 1, kValue * inputs * kSamples * (p - 1) / (p * p)},
      errors{p - 1, kValue * outputs * kSamples * (p - 1) / p};
  rows.add(row, "4.2 activations", activations, pcnn["all-to-all activations"]);
  rows.add(row, "4.3 errors", errors, pcnn["all-gather errors"]);
  rows.add(row, "4.4 parameters", share, pcnn["all-gather parameters"]);
  Sent sum;
  for (const auto& [operation, sent] : pcnn) sum = {sum.messages + sent.messages, sum.bytes + sent.bytes};
  rows.add(row, "4.5 all three", {3 * (p - 1), activations.bytes + errors.bytes + share.bytes}, sum);
  const auto all_reduce = [&](CollectiveAlgorithm algorithm) {
    return sent_by(size, "all_reduce", algorithm, workers, context)["all-reduce"];
  };
  rows.add(row, "4.6 all-reduce of up to 2 KB", {std::log2(p), std::log2(p) * kValue * weights},
           all_reduce(CollectiveAlgorithm::recursive_doubling));
  rows.add(row, "4.7 all-reduce", {2 * std::log2(p), 2 * share.bytes},
           all_reduce(CollectiveAlgorithm::halving_doubling));
}

/// Table 4.1: three patterns on 1 MiB.
void add_patterns(Rows& rows, int workers) {
  const double p = workers;
  for (const auto& [name, op, algorithm] :
       {std::tuple("reduce-scatter", CollectiveOp::reduce_scatter, CollectiveAlgorithm::ring),
        std::tuple("all-to-all", CollectiveOp::all_to_all, CollectiveAlgorithm::pairwise),
        std::tuple("allgather", CollectiveOp::all_gather, CollectiveAlgorithm::ring)}) {
    const CollectiveSchedule schedule = make_schedule(op, algorithm, workers, kMebi);
    rows.add(fmt::format("{} of 1 MiB, P={}", name, workers), "table 4.1", {p - 1, kMebi * (p - 1) / p},
             {static_cast<double>(schedule.message_count()) / p, schedule.total_bytes() / p});
  }
}

std::vector<TargetRow> run_equations(const TargetContext& context) {
  Rows rows;
  for (const int workers : kWorkers) {
    for (const LayerSize& size : kLayers) add_layer(rows, size, workers, context);
    add_patterns(rows, workers);
  }
  return rows.take();
}

}  // namespace

Target equations() {
  return {.paper = "lee2020",
          .table = "equations",
          .description = "messages and bytes of equations 4.2 to 4.9 and table 4.1",
          .mape_bound = {},
          .run = run_equations};
}

}  // namespace epocast::lee2020
