#pragma once
// Clusters and traces that exist only in memory.

#include <string>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/workload_trace.hpp"

namespace epocast::testing {

inline constexpr double kMs = 1e-3;  // s

/// Devices without a platform file, for what is decided before anything is simulated.
inline Cluster cluster_of(int devices) {
  Cluster cluster{.name = "test", .description = "", .platform_file = "", .devices = {}, .sources = {}};
  for (int d = 0; d < devices; ++d) {
    const std::string name = "d" + std::to_string(d);
    cluster.devices.push_back({name, name, "synthetic", 1, FlopPerSecond(1e12), BytesPerSecond(500e9), Bytes(16e9)});
  }
  return cluster;
}

/// One layer of a synthetic trace: times in s, gradient tensors in B. The backward time is split evenly in two.
inline LayerTrace layer(const std::string& name, double forward, double backward, double update,
                        const std::vector<double>& tensors) {
  LayerTrace out{.name = name,
                 .kind = LayerKind::convolution,
                 .inputs = {},
                 .times = {Seconds(forward), Seconds(backward / 2), Seconds(backward / 2), Seconds(update)},
                 .gradients = {},
                 .parameters = {},
                 .output = Bytes(1e6),
                 .kept_activations = Bytes(1e6),
                 .forward_flop = Flop(1e9),
                 .backward_flop = Flop(2e9),
                 .backward_reads_input = true,
                 .needs_gradient = true};
  for (const double bytes : tensors) {
    out.gradients.push_back({name + "." + std::to_string(out.gradients.size()), Bytes(bytes)});
    out.parameters += Bytes(bytes);
  }
  return out;
}

/// A chain of layers behind an input layer that costs nothing.
inline WorkloadTrace chain(std::vector<LayerTrace> layers, std::int64_t batch = 1) {
  WorkloadTrace trace{"synthetic", batch, {layer("data", 0, 0, 0, {})}};
  trace.layers.front().kind = LayerKind::input;
  trace.layers.front().needs_gradient = false;
  for (LayerTrace& next : layers) {
    next.inputs = {static_cast<int>(trace.layers.size()) - 1};
    trace.layers.push_back(std::move(next));
  }
  return trace;
}

}  // namespace epocast::testing
