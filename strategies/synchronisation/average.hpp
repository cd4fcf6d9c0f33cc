#pragma once
// Local SGD: every replica takes `period` steps by itself, then all average their parameters.
//
// Scope: Stich 2019, "Local SGD converges fast and communicates little"; McMahan et al. 2017. Parameters are averaged
// by all-reduce after the last local step's updates, in buckets. With overlap (Shen et al. 2019, CoCoD-SGD; Wang et al.
// 2020, Overlap-Local-SGD) a round's average travels during the next round and is mixed in at its end. Period 1 without
// overlap moves the bytes of all_reduce. What is sent may be compressed, as gradients are. What it does to the number
// of epochs is not modelled. Validation: tests/conformance, tests/unit/local_sgd_test.cpp (timelines by hand).

#include "strategies/step/encoding.hpp"
#include "strategies/step/synchronisation.hpp"

namespace epocast {

class Average final : public Synchronisation {
 public:
  struct Settings {
    int period = 8;
    Bytes bucket{25.0 * (1 << 20)};
    bool overlap = false;
  };

  explicit Average(const ConfigNode& options);
  std::unique_ptr<PlaceSynchronisation> at(const ParameterPlace& place) const override;
  TrainingRound round(int /*replicas*/) const override {
    return {.steps = settings_.period, .quiet = true, .one_version = true, .data_only = true};
  }
  static EntryInfo info();

 private:
  Settings settings_;
  Encoding compression_;
};

}  // namespace epocast
