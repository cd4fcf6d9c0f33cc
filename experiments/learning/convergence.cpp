#include "experiments/learning/convergence.hpp"

namespace epocast {

double Convergence::epochs_with(std::int64_t global_batch, double mean_staleness) const {
  const auto more = [&](std::int64_t samples) {
    return critical_batch ? 1 + static_cast<double>(samples) / *critical_batch : 1;
  };
  return epochs * more(global_batch) / more(batch) * (1 + staleness_penalty * mean_staleness);
}

Convergence read_convergence(const ConfigNode& node) {
  if (!node.is_map())
    throw node.error("write how many epochs the target takes with which batch: `given: {epochs: 90, batch: 256}`");
  Convergence out{.epochs = node.at("epochs").as_double(Range{1e-6, 1e9}),
                  .batch = node.at("batch").as_int(Range{1, 1e12})};
  if (node.has("critical_batch")) out.critical_batch = node.at("critical_batch").as_double(Range{1e-6, 1e15});
  out.staleness_penalty = node.get("staleness_penalty", 0.0, Range{0, 1e6});
  node.check_all_read();
  return out;
}

}  // namespace epocast
