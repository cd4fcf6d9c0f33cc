#include "strategies/step/communication_cores.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

constexpr const char* kKey = "communication_cores";

}  // namespace

CommunicationCores::CommunicationCores(const ConfigNode& options)
    : options_(options), taken_(options.get(kKey, std::int64_t{0}, Range{0, 1e9})) {}

ParameterInfo CommunicationCores::parameter() {
  return {kKey, "count", "0 .. cores - 1", "0",
          "cores (of a GPU: multiprocessors) that only communicate; the others compute more slowly"};
}

double CommunicationCores::slowdown(const Device& device) const {
  if (taken_ >= device.cores)
    throw options_->at(kKey).error(counted(taken_, "core") + " to communicate, but device '" + device.name +
                                   "' has only " + std::to_string(device.cores) + "; leave at least one to compute");
  return static_cast<double>(device.cores) / static_cast<double>(device.cores - taken_);
}

WorkloadTrace CommunicationCores::slowed_trace(const StrategyContext& context, std::int64_t batch) const {
  WorkloadTrace trace = context.trace(batch);
  if (taken_ == 0) return trace;
  for (LayerTrace& layer : trace.layers)
    layer.times = each_pass([&](DeviceTime LayerTimes::*pass) {
      return DeviceTime::each(context.kinds, [&](DeviceId device) {
        return (layer.times.*pass).on(device) * slowdown(context.device(device));
      });
    });
  return trace;
}

StrategyContext CommunicationCores::slowed(const StrategyContext& context) const {
  if (taken_ == 0) return context;
  StrategyContext out = context;
  out.trace = [this, &context](std::int64_t batch) { return slowed_trace(context, batch); };
  return out;
}

}  // namespace epocast
