#include "experiments/place/alternatives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/error.hpp"
#include "sim/words.hpp"
#include "strategies/placement/paging.hpp"
#include "strategies/placement/pardnn.hpp"

namespace epocast {
namespace {

/// Of a ring's reduce-scatter and all-gather.
double all_reduce_seconds(double bytes, const PlacementMachine& machine) {
  const double steps = 2.0 * (machine.devices - 1);
  return steps * (bytes / machine.devices / machine.bytes_per_second + to_seconds(machine.latency));
}

double gradient_bytes(const OperatorGraph& graph) {
  double bytes = 0;
  for (std::size_t n = 0; n < graph.size(); ++n)
    if (graph.phase[n] == OperatorPhase::forward && graph.operation_of(n) == "VariableV2")
      bytes += graph.output_bytes[n];
  return bytes;
}

PlacementStage on_one_device(const PlacementGraph& graph) {
  return judge(graph, PlacementMachine{}, {}, "", Placement(graph.size(), 0));
}

}  // namespace

Segments root_segments(const OperatorGraph& graph) {
  std::vector<double> held(graph.layers.size(), 0);
  for (std::size_t n = 0; n < graph.size(); ++n)
    if (graph.phase[n] == OperatorPhase::forward && graph.lifetime[n] == Lifetime::normal)
      held[graph.layer[n]] += graph.output_bytes[n];
  double all = 0;
  std::size_t layers = 0;
  for (const double bytes : held) {
    all += bytes;
    layers += bytes > 0 ? 1 : 0;
  }
  const double segments = std::max(1.0, std::round(std::sqrt(static_cast<double>(layers))));
  std::vector<std::int32_t> of_layer(held.size(), 0);
  double before = 0;
  Segments out;
  for (std::size_t l = 0; l < held.size(); ++l) {
    of_layer[l] = static_cast<std::int32_t>(std::min(segments - 1, all > 0 ? segments * before / all : 0));
    out.count = std::max(out.count, of_layer[l] + 1);
    before += held[l];
  }
  for (std::size_t n = 0; n < graph.size(); ++n) {
    out.forward.push_back(graph.phase[n] == OperatorPhase::forward ? of_layer[graph.layer[n]] : -1);
    out.backward.push_back(graph.phase[n] == OperatorPhase::backward ? of_layer[graph.layer[n]] : -1);
  }
  return out;
}

std::vector<Alternative> alternatives(const ModelGraphRequest& request, const PlacementMachine& machine) {
  if (request.batch % machine.devices != 0)
    throw ConfigError(fmt::format("--alternatives: {} do not divide a --batch of {}; use a multiple",
                                  counted(machine.devices, "device"), request.batch));
  ModelGraphRequest share = request;
  share.batch /= machine.devices;
  const ModelOperators step = model_operators(share);
  const PlacementGraph graph = placement_graph(step.graph, step.seconds);
  const double exchange = all_reduce_seconds(gradient_bytes(step.graph), machine);
  const auto fits = [&](double bytes) { return machine.memory <= 0 || bytes <= machine.memory; };
  std::vector<Alternative> out;
  const PlacementStage plain = on_one_device(graph);
  out.push_back({"data parallelism", to_seconds(plain.makespan) + exchange, plain.peak_bytes, fits(plain.peak_bytes)});
  const PlacementStage again = on_one_device(with_recomputation(graph, root_segments(step.graph)));
  out.push_back(
      {"with checkpointing", to_seconds(again.makespan) + exchange, again.peak_bytes, fits(again.peak_bytes)});
  if (machine.memory > 0) {
    const PagedStep paged = page_step(graph, machine.memory);
    out.push_back({"with unified memory", to_seconds(paged.makespan) + exchange,
                   std::min(plain.peak_bytes, machine.memory), true});
  }
  return out;
}

}  // namespace epocast
