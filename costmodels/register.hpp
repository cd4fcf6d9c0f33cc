#pragma once
// The table of cost models, and how a study's `compute:` map becomes one.

#include <filesystem>
#include <memory>
#include <vector>

#include "costmodels/host_launches.hpp"
#include "sim/config.hpp"
#include "sim/cost_model.hpp"
#include "sim/memory.hpp"

namespace epocast {

/// What factories of cost models may need beside their options. Model and device may be null where nothing is made, as
/// for `epocast list`; both must outlive make_cost_model, not the cost model.
struct CostModelContext {
  std::filesystem::path data_dir;  ///< the folder that holds costmodels/timings
  const Model* model = nullptr;
  const Device* device = nullptr;  ///< the one that timings and step times are of: usually the first worker
  Optimizer optimizer = Optimizer::sgd;
  bool fused_updates = false;
  int update_accesses = 0;  ///< of each parameter's values; 0: the optimizer's, fused
  Precision precision = Precision::fp32;
  /// Other kinds of devices that train, of which measurements may be as well; empty if `device` is meant in any case.
  std::vector<const Device*> others = {};
};

/// All cost models with their documented parameters, of which `scale`, the overheads and `step_time` are common to all.
CostModelRegistry make_cost_model_registry(const CostModelContext& context);

/// Makes the cost model that a study's `compute:` map describes: `cost_model` (default roofline), its parameters, and
/// those common to all. Keys that nobody knows stay unread for check_all_read(). REQUIRES context.model and
/// context.device. Throws ConfigError.
std::unique_ptr<CostModel> make_cost_model(const ConfigNode& compute, const CostModelContext& context);

/// What a `compute:` map says of the host's launches. Throws ConfigError.
LaunchSettings read_launches(const ConfigNode& compute);

}  // namespace epocast
