#pragma once
// A convolution A and a fully connected layer B, for timelines by hand.

#include "tests/support/synthetic.hpp"

namespace epocast::testing {

/// Times for one sample in ms: forward A 10, B 20; backward A 20 + 20, B 15 + 15 (input's gradient + parameters'),
/// update A 1, B 2. The gradient of B's parameters takes twice as long for two samples. Gradients: A 10 MB, B 20 MB.
/// Activations of a sample: A 4 MB, B 2 MB.
inline WorkloadTrace two_layer_network(std::int64_t batch) {
  constexpr double kMs = 1e-3, kMB = 1e6;
  WorkloadTrace trace = chain({layer("A", 10 * kMs, 40 * kMs, 1 * kMs, {6 * kMB, 4 * kMB}),
                               layer("B", 20 * kMs, 30 * kMs, 2 * kMs, {20 * kMB})},
                              batch);
  const auto samples = static_cast<double>(batch);
  trace.layers[1].output = Bytes(4 * kMB * samples);
  trace.layers[2].kind = LayerKind::fully_connected;
  trace.layers[2].output = Bytes(2 * kMB * samples);
  trace.layers[2].times.backward_weights = Seconds(15 * kMs * samples);
  return trace;
}

}  // namespace epocast::testing
