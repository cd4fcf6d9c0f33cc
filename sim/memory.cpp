#include "sim/memory.hpp"

#include <algorithm>
#include <stdexcept>

#include "sim/config.hpp"
#include "sim/memory_timeline.hpp"

namespace epocast {

const char* to_string(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd: return "sgd";
    case Optimizer::momentum: return "momentum";
    case Optimizer::adam: return "adam";
    case Optimizer::lion: return "lion";
    case Optimizer::lamb: return "lamb";
  }
  return "unknown";
}

namespace {
constexpr Optimizer kOptimizers[] = {Optimizer::sgd, Optimizer::momentum, Optimizer::adam, Optimizer::lion,
                                     Optimizer::lamb};
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const Optimizer optimizer : kOptimizers) names.push_back(to_string(optimizer));
  return names;
}

Optimizer parse_optimizer(const std::string& name) {
  for (const Optimizer optimizer : kOptimizers)
    if (name == to_string(optimizer)) return optimizer;
  throw std::invalid_argument("unknown optimizer '" + name + "'" + name_hint(name, optimizer_names()));
}

int optimizer_state_values(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd: return 0;
    case Optimizer::momentum:
    case Optimizer::lion: return 1;
    case Optimizer::adam:
    case Optimizer::lamb: return 2;
  }
  return 0;
}

double optimizer_bytes_per_value(Optimizer optimizer, Precision precision) {
  return 4.0 * optimizer_state_values(optimizer) + master_bytes_per_value(precision);
}

double optimizer_share(Optimizer optimizer, const WorkloadTrace& trace) {
  return optimizer_bytes_per_value(optimizer, trace.precision) / bytes_per_value(trace.precision);
}

int optimizer_accesses(Optimizer optimizer) {
  const int plain = 3 + 2 * optimizer_state_values(optimizer);
  return optimizer == Optimizer::lamb ? plain + 6 : plain;
}

int foreach_accesses(Optimizer optimizer) {
  constexpr int kScale = 2, kAdd = 3;  // in place: a tensor, and with another one
  constexpr int kDecayGradient = kAdd, kDecayWeights = kScale, kStep = kAdd;
  constexpr int kFirstMoment = kScale + kAdd, kSecondMoment = kScale + kAdd;
  switch (optimizer) {
    case Optimizer::sgd: return kDecayGradient + kStep;
    case Optimizer::momentum: return kDecayGradient + kScale + kAdd + kStep;
    // Interpolated first moment; root, its correction and epsilon; the step reads three tensors.
    case Optimizer::adam: return kDecayWeights + kAdd + kSecondMoment + 3 * kScale + 4;
    // Copied, scaled, gradient added, sign; the step, and the moment.
    case Optimizer::lion: return kDecayWeights + 2 * kScale + kAdd + kScale + kStep + kFirstMoment;
    // Norm of gradients, which are divided; root, correction, epsilon; quotient of moments, corrected; decay; two
    // norms, whose ratio scales the step.
    case Optimizer::lamb:
      return 1 + kScale + kFirstMoment + kSecondMoment + 3 * kScale + kScale + kAdd + kAdd + 2 + kScale + kStep;
  }
  return 0;
}

MemoryUse stage_memory(const WorkloadTrace& trace, Optimizer optimizer, const StageRange& stage) {
  const std::vector<MemoryMoment> timeline = memory_timeline(trace, optimizer, stage);
  const auto peak =
      std::max_element(timeline.begin(), timeline.end(),
                       [](const MemoryMoment& a, const MemoryMoment& b) { return a.use.total() < b.use.total(); });
  MemoryUse use = peak->use;
  use.moment = std::string(to_string(peak->pass)) + " " + trace.layers[peak->layer].name;
  return use;
}

MemoryUse replica_memory(const WorkloadTrace& trace, Optimizer optimizer) {
  return stage_memory(trace, optimizer, {.first = 0, .last = trace.layers.size() - 1});
}

}  // namespace epocast
