#pragma once
// Gossip: no server; after some steps every worker averages its parameters with those of one other.
//
// Scope: AD-PSGD (Lian et al. 2018). The worker sends its parameters to a neighbour, whose communication thread answers
// with its own at once, whatever it computes; both average. Nobody waits for a neighbour's computation. The neighbour
// is the next in a ring, or (exponential: Assran et al. 2019) 1, 2, 4, .. ranks further, in turn. With overlap the
// exchange runs beside the next step and ends before its update. One iteration of the graph is one round of all
// neighbours. Limits: who talks to whom is fixed, where the paper draws it at random. There is no common version of the
// parameters, hence no staleness. Validation: tests/conformance, tests/unit/gossip_test.cpp.

#include "sim/strategy.hpp"

namespace epocast {

class Gossip final : public Strategy {
 public:
  explicit Gossip(const ConfigNode& options);
  TrainingStep compile(const StrategyContext& context) const override;
  static EntryInfo info();

 private:
  ConfigNode options_;
  int period_;
  bool exponential_;
  bool overlap_;
};

}  // namespace epocast
