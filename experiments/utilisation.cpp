#include "experiments/utilisation.hpp"

#include "experiments/model_work.hpp"

namespace epocast {
namespace {

/// FLOP/s that the workers' devices could do: a mean over the time of all phases, whose workers may differ.
double mean_peak(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs) {
  double flop = 0, seconds = 0;
  for (std::size_t p = 0; p < runs.size(); ++p) {
    double peak = 0;
    for (const DeviceId worker : setup.phases[p].workers)
      peak += setup.cluster.devices[static_cast<std::size_t>(worker)].matrix_rate(setup.precision).value;
    const double lasts = static_cast<double>(runs[p].iterations) * runs[p].per_step(runs[p].result.iteration);
    flop += peak * lasts;
    seconds += lasts;
  }
  return flop / seconds;
}

}  // namespace

void add_utilisation(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs, ScenarioResult& out) {
  if (const std::int64_t tokens = tokens_per_sample(setup.model); tokens > 0)
    out.tokens_per_s = out.samples_per_s * static_cast<double>(tokens);
  const double peak = mean_peak(setup, runs);
  const ProductFlop flop = product_flop(setup.model, setup.memory);
  if (!(peak > 0) || !(flop.model > 0)) return;
  out.mfu = out.samples_per_s * flop.model / peak;
  out.hfu = out.samples_per_s * (flop.model + flop.recomputed) / peak;
}

}  // namespace epocast
