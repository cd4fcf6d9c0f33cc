#include "costmodels/host_launches.hpp"

#include <algorithm>
#include <vector>

namespace epocast {
namespace {

/// When the host has started, and the device has ended, what was there so far.
struct Clocks {
  double host = 0, device = 0;  // s

  /// s that the device needs for kernels that take `time` in all, waiting for the host included.
  double run(double kernels, double time, double launch) {
    const double before = device;
    host += kernels * launch;
    device = std::max(device + time, kernels > 0 ? host + time / kernels : 0);
    return device - before;
  }
};

}  // namespace

void HostLaunches::apply_within(WorkloadTrace& trace, const WorkloadTrace& longest, const Model& model,
                                const CostModel& cost) const {
  WorkloadTrace launched = trace;
  apply(launched, model, cost);
  const auto seconds = [](const WorkloadTrace& of) { return of.compute_time().longest().value; };
  const double most = seconds(longest), without = seconds(trace), with = seconds(launched);
  if (without >= most) return;
  const double part = with > most ? (most - without) / (with - without) : 1;  // of what launches add
  for (std::size_t l = 0; l < trace.layers.size(); ++l)
    for (DeviceTime LayerTimes::*pass :
         {&LayerTimes::forward, &LayerTimes::recompute, &LayerTimes::backward_data, &LayerTimes::backward_weights}) {
      DeviceTime& own = trace.layers[l].times.*pass;
      const double alone = own.longest().value, more = (launched.layers[l].times.*pass).longest().value - alone;
      if (more != 0) own = Seconds(alone + part * more);
    }
}

void HostLaunches::apply(WorkloadTrace& trace, const Model& model, const CostModel& cost) const {
  if (!(launch_.value > 0)) return;
  const std::size_t n = trace.layers.size();
  std::vector<PassKernels> kernels;
  kernels.reserve(n);
  for (std::size_t l = 0; l < n; ++l) kernels.push_back(cost.kernels(model.layers[l], trace.batch));
  Clocks clocks;
  const auto forward = [&](std::size_t l, DeviceTime& time) {
    if (model.layers[l].kind == LayerKind::softmax) clocks.host += kKernelsOfLoss * launch_.value;
    time = Seconds(clocks.run(kernels[l].forward, time.longest().value, launch_.value));
  };
  const auto backward = [&](double count, DeviceTime& time) {
    time = Seconds(clocks.run(count, time.longest().value, kBackwardShare * launch_.value));
  };
  clocks.host = kKernelsOfBatch * launch_.value;
  for (std::size_t l = 0; l < n; ++l) forward(l, trace.layers[l].times.forward);
  clocks = {};
  for (std::size_t l = n; l-- > 0;) {
    const int segment = trace.layers[l].segment;
    if (segment >= 0 && (l + 1 == n || trace.layers[l + 1].segment != segment)) {
      std::size_t first = l;
      while (first > 0 && trace.layers[first - 1].segment == segment) --first;
      for (std::size_t again = first; again <= l; ++again) forward(again, trace.layers[again].times.recompute);
    }
    backward(kernels[l].backward_data, trace.layers[l].times.backward_data);
    backward(kernels[l].backward_weights, trace.layers[l].times.backward_weights);
  }
}

}  // namespace epocast
