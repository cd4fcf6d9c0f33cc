#pragma once
// What the devices that share the work of a layer must send each other.

#include <vector>

#include "sim/axis.hpp"
#include "sim/cluster.hpp"
#include "sim/collective.hpp"
#include "sim/quantity.hpp"

namespace epocast {

/// The devices of a stage: a grid whose ranks along `replicas` hold the same layers' parameters, and along the other
/// axes share the work on them. Extent 1: there is no such axis.
struct StageRanks {
  std::vector<DeviceId> devices;
  Axis replicas{}, tensor{};

  bool shares_layers() const { return tensor.extent > 1; }
};

struct Exchange {
  const char* name = "";  ///< "all-reduce", ...
  CollectiveOp op = CollectiveOp::all_reduce;
  Bytes bytes;               ///< as Collective::bytes
  Axis StageRanks::*axis{};  ///< along which
};

/// Before and after a layer's passes, in order.
struct LayerExchanges {
  std::vector<Exchange> before_forward, after_forward, before_backward, after_backward;
};

}  // namespace epocast
