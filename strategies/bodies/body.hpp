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
  double values = 0;                             ///< per sample: of the whole vector, as Collective::bytes counts it
  bool full_precision = false;                   ///< fp32 whatever the network's precision
  Axis StageRanks::*axis = &StageRanks::tensor;  ///< along which
};

/// Those of one layer; see LayerExchanges.
struct SampleExchanges {
  std::vector<SampleExchange> before_forward, during_forward, after_forward, before_backward, during_backward,
      beside_backward_data, beside_backward_weights, after_backward;

  /// Calls visit(exchange) for all of them.
  template <class Visit>
  void for_each(Visit visit) {
    for (auto* some : {&before_forward, &during_forward, &after_forward, &before_backward, &during_backward,
                       &beside_backward_data, &beside_backward_weights, &after_backward})
      for (SampleExchange& exchange : *some) visit(exchange);
  }
};

/// A network as one device of a team sees it.
struct DividedModel {
  std::shared_ptr<const Model> part;
  std::vector<SampleExchanges> exchanges;  ///< by layer
  std::vector<bool> shared;                ///< by layer: its output is the same on all devices along the tensor axis
  /// By layer: if its experts are divided (its first tensor of parameters), how often each position is there, once for
  /// every expert that it goes to; else 0.
  std::vector<double> dispatched;
  std::vector<std::string> notes = {};  ///< what was padded, for people

  /// A network that nothing divides yet.
  static DividedModel whole(const Model& model) {
    const std::size_t layers = model.layers.size();
    return {std::make_shared<Model>(model),
            std::vector<SampleExchanges>(layers),
            std::vector<bool>(layers, false),
            std::vector<double>(layers, 0),
            {}};
  }
};

class Body {
 public:
  virtual ~Body() = default;
  /// The axis of the mesh along which layers are divided.
  virtual std::string axis() const = 0;
  /// Divides what each device has so far over a team of so many, at least two. Bodies follow one another in the order
  /// context, expert, tensor. Throws ConfigError at `place` if it cannot be divided.
  virtual DividedModel divide(DividedModel model, int parts, const ConfigNode& place) const = 0;
};

using BodyRegistry = Registry<Body>;

}  // namespace epocast
