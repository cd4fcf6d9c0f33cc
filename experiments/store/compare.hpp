#pragma once
// What differs between two lists of results.

#include <string>
#include <vector>

#include "experiments/store/result_store.hpp"

namespace epocast {

/// A column that may not get worse by more than a share of what it was: "iteration_s 1 %". More is worse, but in
/// columns that count what is wanted, such as samples_per_s.
struct RegressionRule {
  std::string column;
  double tolerance = 0;  ///< share
};
/// Throws ConfigError.
RegressionRule parse_regression_rule(const std::string& text);

struct Difference {
  std::string study, scenario, column;
  std::string before, after;  ///< as JSON
  bool worse = false;         ///< by a rule
};

/// Rows are paired by study and scenario. Numbers that differ by no more than 1e-9 of them are equal; the columns
/// iterations_simulated and warnings are left out. A row that is gone or that fails now is worse.
std::vector<Difference> compare(const std::vector<StoredRow>& before, const std::vector<StoredRow>& after,
                                const std::vector<RegressionRule>& rules);

}  // namespace epocast
