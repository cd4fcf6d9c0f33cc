#pragma once
// Published results to be regenerated, side by side with the published numbers.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/scenario.hpp"

namespace epocast {

/// What a published number is used for. Never two of these.
enum class Role {
  exact,      ///< a formula must give it
  input,      ///< used to calibrate; never counted
  predicted,  ///< compared with
};

const char* to_string(Role role);

/// One cell of a published table.
struct TargetRow {
  std::string row;       ///< which one, e.g. "N=4 BS=32 Sync DP (1 PS)"
  std::string quantity;  ///< "run time of 10 epochs"
  std::string unit;
  std::optional<double> published;  ///< absent for our own corrected values
  double simulated = 0;
  Role role = Role::predicted;
  double tolerance = 0;  ///< for exact rows: how far apart the two may be, absolute
  std::string note;      ///< e.g. why a cell is off

  /// Relative error in percent; absent without a published number.
  std::optional<double> error_pct() const;
};

struct Target {
  std::string paper;  ///< "eserol2019"
  std::string table;  ///< "table_5_14"
  std::string description;
  std::optional<double> mape_bound;  ///< percent over predicted rows; beyond it the target is missed
  std::function<std::vector<TargetRow>(const Registries&)> run;

  std::string name() const { return paper + "/" + table; }
};

/// All targets that ship with epocast.
std::vector<Target> builtin_targets();

}  // namespace epocast
