#include "sim/cluster.hpp"

#include <algorithm>

namespace epocast {

FlopPerSecond Device::matrix_rate(Precision precision) const {
  if (precision == Precision::fp32) return peak_rate;
  const auto found = other_rates.find(precision);
  return found == other_rates.end() ? FlopPerSecond() : found->second;
}

bool same_kind(const Device& a, const Device& b) {
  return a.peak_rate == b.peak_rate && a.memory_bandwidth == b.memory_bandwidth && a.memory == b.memory &&
         a.cores == b.cores && a.model == b.model && a.other_rates == b.other_rates;
}

bool Cluster::homogeneous() const {
  return std::ranges::all_of(devices, [this](const Device& device) { return same_kind(device, devices.front()); });
}

}  // namespace epocast
