#include "strategies/partitioners/stage_times.hpp"

#include <limits>

namespace epocast {
namespace {

double seconds_of(const LayerTrace& layer) { return layer.times.total().longest().value; }

}  // namespace

std::vector<std::size_t> count_timed(const WorkloadTrace& trace) {
  std::vector<std::size_t> out{0};
  for (const LayerTrace& layer : trace.layers) out.push_back(out.back() + (seconds_of(layer) > 0 ? 1 : 0));
  return out;
}

StageTimes::StageTimes(const WorkloadTrace& trace, const SplitOptions& options)
    : reduction_(2 / options.bandwidth.value / options.batches_per_update),
      by_replicas_(options.trace_of != nullptr),
      overlap_(options.reductions_overlap) {
  for (const LayerTrace& layer : trace.layers) parameters_.push_back(parameters_.back() + layer.parameters.value);
  const int counts = by_replicas_ ? options.devices : 1;
  std::vector<double> least(trace.layers.size(), std::numeric_limits<double>::infinity());
  for (int replicas = 1; replicas <= counts; ++replicas) {
    std::vector<double>& sums = compute_.emplace_back();
    const WorkloadTrace* shared = by_replicas_ ? options.trace_of(replicas) : &trace;
    if (shared == nullptr) continue;
    sums.push_back(0);
    for (std::size_t l = 0; l < trace.layers.size(); ++l) {
      sums.push_back(sums.back() + seconds_of(shared->layers[l]));
      least[l] = std::min(least[l], replicas * seconds_of(shared->layers[l]));
    }
  }
  for (const double seconds : least) work_.push_back(work_.back() + seconds);
}

}  // namespace epocast
