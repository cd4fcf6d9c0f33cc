#pragma once
// How the devices of a team compute a run of layers together: what each of them has of every layer, and what they send
// each other because of that.

#include <memory>
#include <string>
#include <vector>

#include "sim/model.hpp"
#include "sim/registry.hpp"
#include "strategies/step/exchange.hpp"

namespace epocast {

/// An exchange whose size goes with the samples.
struct SampleExchange {
  const char* name = "";
  CollectiveOp op = CollectiveOp::all_reduce;
  double values = 0;            ///< per sample: of the whole vector, as Collective::bytes counts it
  bool full_precision = false;  ///< fp32 whatever the network's precision
};

/// Those of one layer, along the team.
struct SampleExchanges {
  std::vector<SampleExchange> before_forward, after_forward, before_backward, after_backward;
};

/// A network as one device of a team sees it.
struct DividedModel {
  std::shared_ptr<const Model> part;
  std::vector<SampleExchanges> exchanges;  ///< by layer
  std::vector<bool> shared;                ///< by layer: its output is the same on all devices of the team
};

class Body {
 public:
  virtual ~Body() = default;
  /// The axis of the mesh along which layers are divided.
  virtual std::string axis() const = 0;
  /// Divides a network over a team of so many, at least two. Throws ConfigError at `place` if it cannot be divided.
  virtual DividedModel divide(const Model& model, int parts, const ConfigNode& place) const = 0;
};

using BodyRegistry = Registry<Body>;

}  // namespace epocast
