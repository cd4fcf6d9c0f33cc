#include "sim/workload_trace.hpp"

namespace epocast {

Bytes WorkloadTrace::parameter_bytes() const {
  Bytes sum;
  for (const auto& layer : layers) sum += layer.parameters;
  return sum;
}

Bytes WorkloadTrace::kept_activation_bytes() const {
  Bytes sum;
  for (const auto& layer : layers) sum += layer.kept_activations;
  return sum;
}

Seconds WorkloadTrace::compute_time() const {
  Seconds sum;
  for (const auto& layer : layers) sum += layer.times.total();
  return sum;
}

}  // namespace epocast
