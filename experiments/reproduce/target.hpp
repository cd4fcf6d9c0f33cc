#pragma once
// Published results to be regenerated, side by side with the published numbers.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/run_study.hpp"
#include "experiments/scenario.hpp"

namespace epocast {

/// What a published number is used for. Never two of these.
enum class Role {
  exact,      ///< a formula must give it
  input,      ///< used to calibrate; never counted
  predicted,  ///< compared with
  bound,      ///< a result of somebody's heuristic; ours should be no larger
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
  double tolerance = 0;   ///< for exact, input and bound rows: how far off ours may be, absolute
  std::string note = {};  ///< e.g. why a cell is off
  bool fitted = false;    ///< an input that constants were fitted to: what is left of its error is shown, not judged

  /// Relative error in percent; absent without a published number.
  std::optional<double> error_pct() const;
  /// Within the tolerance (for a bound: not above it), fitted, or without a published number. Says nothing about
  /// predicted rows.
  bool matches() const;
};

/// What targets run with.
struct TargetContext {
  const Registries& registries;
  int parallel = 1;  ///< scenarios at a time
  Progress progress = {};
};

/// What a target promises about its bound rows.
struct BoundRule {
  double least_share = 1;  ///< of the rows, no larger than the published number
  double most_above = 0;   ///< percent by which any row may exceed it; infinity: not limited
};

struct Target {
  std::string paper;  ///< "eserol2019"
  std::string table;  ///< "table_5_14"
  std::string description;
  std::optional<double> mape_bound;  ///< percent over predicted rows; beyond it the target is missed
  /// Throws ConfigError for data that cannot be read and SimulationError.
  std::function<std::vector<TargetRow>(const TargetContext&)> run;
  std::optional<BoundRule> bounds = {};  ///< required if there are bound rows

  std::string name() const { return paper + "/" + table; }
};

/// All targets that ship with epocast.
std::vector<Target> builtin_targets();

/// How well a target was met.
struct TargetSummary {
  int exact = 0;  ///< exact rows with a published number
  int exact_matched = 0;
  int inputs = 0;
  int inputs_matched = 0;             ///< an input that does not come back was not what went in
  int fitted = 0;                     ///< inputs that constants were fitted to; not among `inputs`
  std::optional<double> fitted_mape;  ///< percent: what the fit leaves; absent without a fit
  int predicted = 0;
  std::optional<double> mape;      ///< percent; absent without predictions
  std::optional<TargetRow> worst;  ///< the prediction with the largest error
  std::optional<double> bound;     ///< percent
  int bounds = 0;                  ///< bound rows
  int bounds_kept = 0;
  std::optional<TargetRow> most_above;  ///< the bound row that exceeds its published number by the most percent
  std::optional<BoundRule> bound_rule;

  bool bound_met() const { return !bound || (mape && *mape <= *bound); }
  bool bounds_met() const;
  bool met() const { return exact_matched == exact && inputs_matched == inputs && bound_met() && bounds_met(); }
};

/// Throws std::logic_error if a cell is there twice, be it in two roles or in one, if a prediction or a bound has no
/// published number, or if there are bounds without a rule: a mistake in the target.
TargetSummary summarize(const std::vector<TargetRow>& rows, std::optional<double> mape_bound,
                        std::optional<BoundRule> bounds = {});

}  // namespace epocast
