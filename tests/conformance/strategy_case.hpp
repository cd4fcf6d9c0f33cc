#pragma once
// One strategy with one set of options on one number of workers, and the synthetic network that it trains.

#include <numeric>
#include <string>
#include <vector>

#include "strategies/register.hpp"
#include "tests/conformance/strategy_variants.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/synthetic.hpp"

namespace epocast::conformance {

/// Four trainable layers of unlike sizes, one without parameters and one that costs nothing; times grow with the batch.
/// Communication on 10 Gb/s takes about as long as computing 8 samples.
inline WorkloadTrace synthetic_trace(std::int64_t batch) {
  const double b = 1e-3 * static_cast<double>(batch);
  using testing::layer;
  WorkloadTrace trace = testing::chain(
      {layer("conv1", 0.7 * b, 0.9 * b, 0.05e-3, {0.15e6, 1e3}), layer("relu1", 0.1 * b, 0.1 * b, 0, {}),
       layer("conv2", 1.1 * b, 2.3 * b, 0.3e-3, {4.1e6, 2e3}), layer("flatten", 0, 0, 0, {}),
       layer("fc1", 0.6 * b, 1.3 * b, 2.1e-3, {23e6, 16e3}), layer("fc2", 0.2 * b, 0.3 * b, 0.4e-3, {3e6})},
      batch);
  trace.layers[2].kind = LayerKind::activation;
  trace.layers[4].kind = LayerKind::flatten;
  trace.layers[5].kind = trace.layers[6].kind = LayerKind::fully_connected;
  return trace;
}

struct Case {
  std::string strategy;
  Variant variant;
  int workers = 1;

  std::string text() const {
    return fmt::format("{} {} {} {} gamma {}, {} workers", strategy, variant.options,
                       to_string(variant.collective.algorithm), to_string(variant.collective.level),
                       variant.collective.gamma, workers);
  }
  TrainingStep compile(const Cluster& cluster) const {
    const ConfigNode options = ConfigNode::load_text(variant.options, "options");
    std::vector<DeviceId> devices(static_cast<std::size_t>(workers));
    std::iota(devices.begin(), devices.end(), 0);
    const auto made = builtin_strategies().make(strategy, options, options);
    options.check_all_read();
    return made->compile({cluster, devices, 8 * workers, synthetic_trace, variant.collective});
  }
};

/// Every variant of every strategy on every number of workers that it allows.
inline std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& [strategy, variants] : strategy_variants())
    for (const Variant& variant : variants)
      for (const int workers : variant.workers)
        if (variant.min_workers <= workers && workers <= variant.max_workers)
          cases.push_back({strategy, variant, workers});
  return cases;
}

}  // namespace epocast::conformance
