#include "sim/cluster.hpp"

#include <algorithm>

namespace epocast {

FlopPerSecond Device::matrix_rate(Precision precision) const {
  if (precision == Precision::fp32) return peak_rate;
  const auto found = other_rates.find(precision);
  return found == other_rates.end() ? FlopPerSecond() : found->second;
}

bool Cluster::homogeneous() const {
  const auto equals_first = [this](const Device& device) {
    const Device& first = devices.front();
    return device.model == first.model && device.cores == first.cores && device.peak_rate == first.peak_rate &&
           device.memory_bandwidth == first.memory_bandwidth && device.memory == first.memory &&
           device.other_rates == first.other_rates;
  };
  return std::ranges::all_of(devices, equals_first);
}

}  // namespace epocast
