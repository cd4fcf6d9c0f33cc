#pragma once
// Results that are kept in a file as they are made, so that an interrupted command goes on where it was.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/result.hpp"
#include "experiments/run_study.hpp"
#include "experiments/study.hpp"

namespace epocast {

/// A line of JSON for each result, with all that it learned, which a store has no columns for. A scenario's whole
/// configuration is its key. Files that it names and this program are not: after a change of those, take another file.
class KeptResults {
 public:
  /// Reads what there is. "": keeps nothing. Half a line, as a killed run leaves it, is passed over.
  explicit KeptResults(std::string file);

  std::optional<ScenarioResult> find(const Scenario& scenario) const;
  /// Failures are not kept. Throws ConfigError if the file cannot be written.
  void add(const Scenario& scenario, const ScenarioResult& result) const;

 private:
  std::string file_;
  std::map<std::string, std::string> known_;
};

/// As run_study(), but for what is kept already; what is not is kept as it is made.
std::vector<ScenarioResult> run_study_keeping(const std::vector<Scenario>& scenarios, const Registries& registries,
                                              int parallel, const KeptResults& kept, const Progress& progress);

}  // namespace epocast
