#include "costmodels/host_launches.hpp"

#include <algorithm>

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

double HostLaunches::kernels(const Layer& layer, std::int64_t batch, KernelPass pass, Precision precision) {
  double sum = 0;
  for (const LayerKernel& kernel : layer_kernels(layer, batch, pass, kernel_style(precision, true)))
    sum += kernel.repeats;
  return sum;
}

void HostLaunches::apply(WorkloadTrace& trace, const Model& model) const {
  if (!(launch_.value > 0)) return;
  const std::size_t n = trace.layers.size();
  const auto kernels = [&](std::size_t l, KernelPass pass) {
    return HostLaunches::kernels(model.layers[l], trace.batch, pass, trace.precision);
  };
  Clocks clocks;
  const auto forward = [&](std::size_t l, DeviceTime& time) {
    if (model.layers[l].kind == LayerKind::softmax) clocks.host += kKernelsOfLoss * launch_.value;
    time = Seconds(clocks.run(kernels(l, KernelPass::forward), time.longest().value, launch_.value));
  };
  const auto backward = [&](std::size_t l, DeviceTime& time, KernelPass pass) {
    time = Seconds(clocks.run(kernels(l, pass), time.longest().value, kBackwardShare * launch_.value));
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
    backward(l, trace.layers[l].times.backward_data, KernelPass::backward_data);
    backward(l, trace.layers[l].times.backward_weights, KernelPass::backward_weights);
  }
}

}  // namespace epocast
