#pragma once
// Expert parallelism: the experts of a layer divided over a team, each of whose devices has samples of its own.
//
// Every position is sent to the devices that have its experts, in an all-to-all, and what these made comes back in
// another; backward the same way (Lepikhin et al. 2021, GShard, section 3; Fedus et al. 2022, Switch Transformer,
// section 2.2). All else is on all devices, which are replicas of it; experts have replicas along the data axis only.
//
// With a capacity factor every expert works on as many positions as that times the mean, some of which are padding or
// left out. Without one all positions are computed, and the device whose experts are asked most, `imbalance` times the
// mean, is waited for: all devices are taken to be as busy.
//
// Limits: routers are taken to choose independently of where a position is; no bias from their training.

#include "strategies/bodies/body.hpp"

namespace epocast {

class ExpertBody final : public Body {
 public:
  explicit ExpertBody(const ConfigNode& options);
  std::string axis() const override { return "expert"; }
  DividedModel divide(DividedModel model, int parts, const ConfigNode& place) const override;
  static EntryInfo info();

 private:
  double load_;        ///< positions of an expert over the mean
  bool is_imbalance_;  ///< none is left out
};

}  // namespace epocast
