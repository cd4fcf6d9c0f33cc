#pragma once
// What the devices that share the work of a layer must send each other.

#include <vector>

#include "sim/axis.hpp"
#include "sim/cluster.hpp"
#include "sim/collective.hpp"
#include "sim/quantity.hpp"

namespace epocast {

/// The devices of a stage: a grid whose ranks along `replicas` hold the same parameters, and along `tensor` parts of
/// the same layers. Extent 1: there is no such axis. Replicas differ in their samples or, along `context`, in the
/// positions of the same samples. Along `expert` they have different experts, of which those along `expert_replicas`
/// have the same.
struct StageRanks {
  std::vector<DeviceId> devices;
  Axis replicas{}, tensor{}, context{}, expert{}, expert_replicas{};
};

struct Exchange {
  const char* name = "";  ///< "all-reduce", ...
  CollectiveOp op = CollectiveOp::all_reduce;
  Bytes bytes;               ///< as Collective::bytes
  Axis StageRanks::*axis{};  ///< along which
};

/// Before and after a layer's passes, in order, and what goes on during them: block by block, each of which is computed
/// when it has come (ring attention). `during`: as many blocks as ranks along the axis, the first of them there.
/// Beside the gradient of a layer's input travels what only that of its weights reads; beside that of its weights, the
/// gradient of its input.
struct LayerExchanges {
  std::vector<Exchange> before_forward, during_forward, after_forward, before_backward, during_backward,
      beside_backward_data, beside_backward_weights, after_backward;
};

}  // namespace epocast
