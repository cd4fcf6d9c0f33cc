#pragma once
// Gossip: no server; after some steps every replica averages its parameters with those of one other.
//
// Scope: AD-PSGD (Lian et al. 2018). A device sends its parameters to a neighbour, whose communication thread answers
// with its own at once, whatever it computes; both average. Nobody waits for a neighbour's computation. The neighbour
// is the next in a ring, or (exponential: Assran et al. 2019) 1, 2, 4, .. ranks further, in turn; where devices share
// a replica's layers, each talks to its counterparts. With overlap the exchange runs beside the next step and ends
// before its update. A round has an exchange with each neighbour. What is sent may be
// compressed (Koloskova et al. 2019); the neighbour's thread does its part of it. Limits: who talks to whom is fixed,
// where the paper draws it at random. There is no common version of the parameters, hence no staleness. Validation:
// tests/conformance, tests/unit/gossip_test.cpp.

#include "strategies/step/encoding.hpp"
#include "strategies/step/synchronisation.hpp"

namespace epocast {

class Gossip final : public Synchronisation {
 public:
  explicit Gossip(const ConfigNode& options);
  std::unique_ptr<PlaceSynchronisation> at(const ParameterPlace& place) const override;
  TrainingRound round(int replicas) const override;
  static EntryInfo info();

  struct Settings {
    int period = 1;
    bool exponential = false;
    bool overlap = true;
  };

 private:
  ConfigNode options_;
  Settings settings_;
  Encoding compression_;
};

}  // namespace epocast
