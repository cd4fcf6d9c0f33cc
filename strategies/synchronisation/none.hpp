#pragma once
// Nobody to agree with: one replica of the parameters, updated at the end of the step.
//
// Scope: the strategy `single`, the baseline of every speedup, and pipelines or divided layers without replicas.
// Validation: the iteration time of one device is the sum of the trace's times (tests/conformance).

#include "strategies/step/synchronisation.hpp"

namespace epocast {

class None final : public Synchronisation {
 public:
  explicit None(const ConfigNode& options) : options_(options) {}
  std::unique_ptr<PlaceSynchronisation> at(const ParameterPlace& place) const override;
  static EntryInfo info();

 private:
  ConfigNode options_;
};

}  // namespace epocast
