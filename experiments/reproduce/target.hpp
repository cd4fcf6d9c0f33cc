#pragma once
// Published results to be regenerated, side by side with the published numbers.

#include <functional>
#include <optional>
#include <string>
#include <utility>
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
  stated,     ///< a fact of the text: an order, or a number to within a factor
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
  double factor = 1;      ///< for stated rows: how far off ours may be, either way
  bool seen = false;      ///< a prediction whose error was known when a setting was chosen
  std::optional<double> trivial = {};                            ///< what the target's trivial rule predicts instead
  std::optional<double> low = {}, high = {};                     ///< of a 90 % interval
  std::vector<std::pair<std::string, std::string>> groups = {};  ///< kind and name, for errors by group: device, V100
  std::string rivals = {};  ///< what it has in common with the rows that it is compared with; empty: with none

  /// What names it within its target: "ROW: QUANTITY".
  std::string name() const { return row + ": " + quantity; }
  /// Relative errors in percent; absent without a published number, or without a trivial rule.
  std::optional<double> error_pct() const;
  std::optional<double> trivial_error_pct() const;
  /// Within the tolerance (for a bound: not above it; for a stated row: within the factor), fitted, or without a
  /// published number. Says nothing about predicted rows.
  bool matches() const;
};

/// What targets run with.
struct TargetContext {
  const Registries& registries;
  int parallel = 1;  ///< scenarios at a time
  Progress progress = {};
  double effort = 1;         ///< of searches; less is quicker, and then promises about what they find are not kept
  std::string keep = {};     ///< a file for results of targets that take long, see KeptResults; "" for none
  std::string figures = {};  ///< a folder for pictures; "" for none
};

/// Something that a target is known not to meet. It stays a miss, and is shown as one with its reason; what is declared
/// is how far off it is.
struct KnownMiss {
  std::string what;    ///< TargetRow::name(), or kMape
  double at_most = 0;  ///< percent: the row's error, either way, or the MAPE; beyond it the miss is a new one
  std::string why;
  bool of_this_machine = false;  ///< a time measured here: missed on one machine, met on another
};
inline constexpr const char* kMape = "MAPE";
inline constexpr const char* kMedian = "median";
inline constexpr const char* kNinetieth = "90th percentile";
inline constexpr const char* kShareOfTrivial = "share of the trivial rule's error";

/// What the errors of predictions must not exceed, in percent, either way; each optional.
struct TargetBounds {
  std::optional<double> median, ninetieth;
  std::optional<double> share_of_trivial;  ///< our median over the trivial rule's
};

/// Between which rows the forecast must know the faster one.
struct WinnerRule {
  std::vector<std::string> equal;  ///< columns whose cells make TargetRow::rivals
  double gap = 3;                  ///< percent: pairs whose published numbers differ by less are not judged
  bool less_is_better = false;
};

struct Target {
  std::string paper;  ///< "eserol2019"
  std::string table;  ///< "table_5_14"
  std::string description;
  std::optional<double> mape_bound;  ///< percent over predicted rows; beyond it the target is missed
  /// Throws ConfigError for data that cannot be read and SimulationError.
  std::function<std::vector<TargetRow>(const TargetContext&)> run;
  std::string trivial_rule = {};  ///< what TargetRow::trivial comes from: "linear scaling"
  std::vector<KnownMiss> known_misses = {};
  TargetBounds bounds = {};  ///< beside mape_bound
  std::optional<WinnerRule> winners = {};

  std::string name() const { return paper + "/" + table; }
};

/// All targets that ship with epocast.
std::vector<Target> builtin_targets();

/// Mean absolute percentage errors over predicted rows.
struct PredictionErrors {
  int cells = 0;
  double mape = 0;                     ///< percent; 0 without cells
  std::optional<double> trivial_mape;  ///< of the target's trivial rule; absent unless it predicts all cells
  /// Of one number for all cells of a quantity, chosen so that this error is least; absent where it would say
  /// nothing, as a quantity has one value only.
  std::optional<double> constant_mape;
};

/// Medians and 90th percentiles over predicted rows [percent]; of the trivial rule over those rows that have it.
struct ErrorQuantiles {
  int cells = 0;
  double median = 0, ninetieth = 0;
  std::optional<double> trivial_median, trivial_ninetieth;

  /// Our median over the trivial rule's [percent].
  std::optional<double> share_of_trivial() const;
};
ErrorQuantiles error_quantiles(const std::vector<TargetRow>& rows);

/// How well a target was met.
struct TargetSummary {
  int exact = 0;  ///< exact rows with a published number
  int exact_matched = 0;
  int stated = 0;
  int stated_matched = 0;
  int inputs = 0;
  int inputs_matched = 0;             ///< an input that does not come back was not what went in
  int fitted = 0;                     ///< inputs that constants were fitted to; not among `inputs`
  std::optional<double> fitted_mape;  ///< percent: what the fit leaves; absent without a fit
  int predicted = 0;
  std::optional<double> mape;  ///< percent, over blind and seen predictions; absent without predictions
  PredictionErrors blind, seen;
  std::optional<TargetRow> worst;  ///< the prediction with the largest error
  std::optional<double> bound;     ///< percent
  ErrorQuantiles quantiles;        ///< over all predictions
  TargetBounds asked;              ///< of the quantiles
  int bounds = 0;                  ///< bound rows
  int bounds_kept = 0;
  std::optional<TargetRow> most_above;  ///< the bound row that exceeds its published number by the most percent

  bool bound_met() const { return !bound || (mape && *mape <= *bound); }
  bool quantiles_met() const;
  bool met() const {
    return exact_matched == exact && stated_matched == stated && inputs_matched == inputs && bounds_kept == bounds &&
           bound_met() && quantiles_met();
  }
};

/// Throws std::logic_error if a cell is there twice, be it in two roles or in one, if a prediction or a bound has no
/// published number, or if anything but a prediction is marked as seen: a mistake in the target.
TargetSummary summarize(const std::vector<TargetRow>& rows, std::optional<double> mape_bound,
                        const TargetBounds& bounds = {});

/// A bound on quantiles: its name as in KnownMiss::what, the bound, and what it was; absent without predictions.
struct QuantileBound {
  const char* what;
  double bound;
  std::optional<double> reached;
  bool met() const { return reached && *reached <= bound; }
};
std::vector<QuantileBound> quantile_bounds(const TargetSummary& summary);

}  // namespace epocast
