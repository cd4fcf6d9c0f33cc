#pragma once
// Measured: each layer takes the time that was measured for it, on the device it was measured on.
//
// Scope and limits: answers for the network and the device of the timings file, whatever the platform's device is, with
// a caveat; the platform's rates are used only for updates that were not measured. Between measured batch sizes times
// are linear; outside them extrapolated (see interpolation.hpp), which caveats() reports. Gradients that a network does
// not make, behind frozen layers or in an evaluation, take no time. Validation: at a measured
// batch size it returns the file's numbers exactly (tests/unit/cost_model_test.cpp).

#include <map>
#include <string>
#include <vector>

#include "costmodels/interpolation.hpp"
#include "costmodels/roofline.hpp"
#include "costmodels/timings_file.hpp"
#include "sim/cost_model.hpp"
#include "sim/memory.hpp"

namespace epocast {

class MeasuredTable : public CostModel {
 public:
  /// `device_model`: what hardware the study is for, for a caveat if it is not what was measured; empty for none.
  MeasuredTable(TimingsFile file, Optimizer optimizer, std::string device_model = "", UpdateKernels updates = {});

  /// Throws ConfigError if the file has rows for layers that the model does not have or that are of another kind there,
  /// or lacks layers that it needs.
  void check_covers(const Model& model) const;

  PassTimes times(const Layer& layer, std::int64_t batch, const Device& device) const override;
  bool knows_parts() const override { return false; }
  std::vector<std::string> caveats(std::int64_t batch) const override;

 private:
  struct LayerTimes {
    TimeByBatch forward, backward_data, backward_weights;
    std::map<std::int64_t, std::optional<Seconds>> update;
    TimingRow first;  ///< for kind and place
  };

  bool may_be_absent(const Layer& layer) const;
  [[noreturn]] void fail_absent(const Layer& layer) const;

  TimingsFile file_;
  int update_accesses_;
  std::string device_model_;
  std::map<std::string, LayerTimes> layers_;
};

}  // namespace epocast
