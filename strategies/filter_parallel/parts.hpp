#pragma once
// Which device has which channels of each layer, and what devices must send each other because of that.

#include <cstddef>
#include <vector>

#include "sim/config.hpp"
#include "sim/workload_trace.hpp"

namespace epocast {

/// How activations get from the filters that make them to those that read them.
enum class FilterExchange {
  direct,  ///< each device sends what it made to every other that reads it (connectivity - 1)
  root,    ///< gathered on the device with the layer's last filters, pooled there, and sent on to those that read them
         ///< (like gather_broadcast of partitioners/communication_volume.hpp, whose root differs if a layer ends with a
         ///< part)
};

/// Shares of every layer's channels by device, in contiguous ranges, device after device.
class FilterParts {
 public:
  /// `parts` is the option of that name: a map from layers to lists of shares, one per device, of any sum; nothing if
  /// there is no such option, and then all layers are divided evenly. Layers without weights of their own are where
  /// their first input is, unless the map has them. Throws ConfigError for unknown or missing layers, lists of another
  /// length, negative shares or only zeros.
  FilterParts(const WorkloadTrace& trace, int devices, FilterExchange exchange, const ConfigNode* parts);

  /// The same shares of every layer; they are made to sum up to 1. REQUIRES: not empty, positive.
  FilterParts(const WorkloadTrace& trace, std::vector<double> shares);

  int devices() const { return devices_; }
  double share(std::size_t layer, int device) const { return shares_[layer][static_cast<std::size_t>(device)]; }
  /// Devices that have a share, in order.
  std::vector<int> holders(std::size_t layer) const;
  int root(std::size_t layer) const { return holders(layer).back(); }
  /// Share of `source`'s channels that are in both ranges: of `source` on `from`, of `layer` on `to`.
  double overlap(std::size_t source, int from, std::size_t layer, int to) const;

 private:
  double begin(std::size_t layer, int device) const;
  int devices_;
  std::vector<std::vector<double>> shares_;  ///< by layer and device; sums to 1
};

/// Whether each of the layer's channels depends on all channels of its input.
bool mixes_channels(LayerKind kind);

/// Shares of consecutive layers on one device that nothing comes to or leaves in between, or a place where a layer is
/// gathered.
struct FilterNode {
  std::vector<std::size_t> layers;
  int device = 0;
  bool gathers = false;
};

/// A node's output goes to some nodes of one device: with a message, unless that is its own. Gradients come back the
/// same way, summed over those nodes.
struct FilterLink {
  std::size_t from = 0;         ///< node
  std::vector<std::size_t> to;  ///< nodes of one device
  Bytes bytes;                  ///< of the trace's batch; 0 on the same device
};

struct SpreadNetwork {
  std::vector<FilterNode> nodes;  ///< all layers but the input, in the network's order
  std::vector<FilterLink> links;  ///< in the order of `from`

  Bytes volume() const;  ///< of all messages in one direction
};

/// The network as it is spread over the devices. Input data is on every device.
SpreadNetwork spread(const WorkloadTrace& trace, const FilterParts& parts, FilterExchange exchange);

/// A network of which no more is known than each device's share of the work and how much is sent: part after part, each
/// passing on an equal share of `volume` to the next.
SpreadNetwork chain_of_parts(const WorkloadTrace& trace, int devices, Bytes volume);

}  // namespace epocast
