#pragma once
// The `sweep` block of a study: what varies, what varies together, and which combinations are left out.
//
//     sweep:
//       workers: [1, 2, 4, 8]
//       batch.per_worker: {from: 16, to: 128, times: 2}       # 16, 32, 64, 128; or step: 16
//       zip:                                                  # the first with the first, the second with the second
//         platform: [skylake_10gbe, skylake_opa]
//         price.node_hour: [2 $, 3 $]
//       where:
//         - workers * batch.per_worker <= 512
//         - {keep: workers > 1 or batch.per_worker = 16, because: one batch is enough for one worker}

#include <map>
#include <string>
#include <vector>

#include "sim/config.hpp"

namespace epocast {

/// A key of the study and its values.
struct SweepAxis {
  std::string key;
  std::vector<ConfigNode> values;
};

/// Axes that vary together: all have equally many values.
using AxisTie = std::vector<SweepAxis>;

/// Combinations that stay.
struct KeepRule {
  std::string condition;
  std::string reason;  ///< for leaving the others out
  ConfigNode place;
};

struct SweepPlan {
  std::vector<AxisTie> ties;  ///< their product is swept, the last varying fastest
  std::vector<KeepRule> rules;
};

/// Whether two keys are ways to say the same, so that setting one drops the other: sizes of the batch.
bool replace_each_other(const std::string& a, const std::string& b);

/// Throws ConfigError for what is no axis, a key that has two, keys that replace each other, ties of unequal length,
/// empty products.
SweepPlan read_sweep(const ConfigNode& sweep);

/// Adds an axis, or gives the one of this key other values; those of one that is tied must be as many. `where`: the
/// rules become these.
void set_axis(SweepPlan& plan, const std::string& key, const ConfigNode& values);

/// A short label for an axis value: "4", "data_parallel", "parameter_server(mode=async)"; of a cluster that is
/// described in place, its name.
std::string axis_label(const ConfigNode& value);

/// Adds all numbers, words and truth values of a configuration, by their paths: for conditions.
void add_scalars(const ConfigNode& config, const std::string& path, std::map<std::string, std::string>& values);

}  // namespace epocast
