#pragma once
// What strategies and cost models know about the machine: its devices. Links and routes are for the simulator.

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/name.hpp"
#include "sim/network_graph.hpp"
#include "sim/precision.hpp"
#include "sim/quantity.hpp"

namespace epocast {

/// Index of a device in Cluster::devices.
using DeviceId = int;

/// A peak of matrix products for each precision; 0: unknown.
class MatrixRates {
 public:
  FlopPerSecond& operator[](Precision precision) { return rates_[static_cast<std::size_t>(precision)]; }
  FlopPerSecond operator[](Precision precision) const { return rates_[static_cast<std::size_t>(precision)]; }
  bool none() const {
    return std::ranges::none_of(rates_, [](FlopPerSecond rate) { return rate.value > 0; });
  }
  bool operator==(const MatrixRates&) const = default;

 private:
  std::array<FlopPerSecond, std::size(kPrecisions)> rates_{};
};

/// One device: a CPU node, a GPU, or the processors of a node of GPUs. One per host of the platform file.
struct Device {
  std::string name;  ///< host name in the platform file
  Name node;         ///< the machine it sits in; devices of one node share it
  Name model;        ///< hardware, e.g. "2x Intel Xeon Platinum 8180"
  int cores = 1;
  FlopPerSecond peak_rate;          ///< fp32 peak
  BytesPerSecond memory_bandwidth;  ///< device memory, sustained or nominal as the platform file says
  Bytes memory;                     ///< capacity usable for training
  MatrixRates other_rates = {};     ///< of other precisions than fp32
  Name board = {};                  ///< that it shares with others of its node, and power with it; empty: its own
  double shared_speed = 1;          ///< of its speed, the share that is left while others of its board train
  bool trains = true;  ///< false: processors of a node beside the devices that train; parameter servers may be there
  Name kernels_like = {};    ///< model of a device whose kernels reach like shares of its rates; empty: not said
  double product_share = 1;  ///< of its peak rates, the share that products reach, over what they reach on that device

  /// The peak of matrix products; 0 if it is unknown.
  FlopPerSecond matrix_rate(Precision precision) const;
};

/// Whether two devices are alike in everything that computing depends on.
bool same_kind(const Device& a, const Device& b);

/// A loaded and validated platform.
struct Cluster {
  std::string name;
  std::string description;
  std::filesystem::path platform_file;
  std::vector<Device> devices;                       ///< those that train first
  std::map<std::string, std::string> sources;        ///< property -> where its number comes from
  std::shared_ptr<const NetworkGraph> network = {};  ///< of the file; null where only SimGrid can tell

  /// How many devices can train, which are the first.
  int trainers() const;
  /// True if all that can train have the same hardware figures.
  bool homogeneous() const;
  /// Hosts of the devices: the processors of their nodes, each once, or a device that shares its node with none itself.
  std::vector<DeviceId> hosts_of(const std::vector<DeviceId>& devices) const;
};

}  // namespace epocast
