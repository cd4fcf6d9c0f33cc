#pragma once
// Prints results while a study still runs.

#include <iosfwd>
#include <string>
#include <vector>

#include "experiments/output.hpp"
#include "experiments/study.hpp"

namespace epocast {

/// Rows of CSV and JSON lines are printed in the order of the scenarios, each as soon as it and all before it are
/// there; tables and JSON at the end. Nothing is printed unless at least one scenario has a result.
class ResultStream {
 public:
  /// `results`: one for each scenario, filled in by run_study(); outlives this object, as do the scenarios. `columns`:
  /// as chosen_columns() reads them, or platform, model and strategy of a study that does not sweep them; "" for what
  /// is usual. Throws as chosen_columns() does.
  ResultStream(std::ostream& out, OutputFormat format, const std::string& columns,
               const std::vector<Scenario>& scenarios, const std::vector<ScenarioResult>& results);

  /// `results[index]` is there. True if rows were printed.
  bool add(std::size_t index);
  /// Prints what is there and has not been printed: the end of a study, or what there is of one that was interrupted.
  void finish();
  /// Results that are there, in order.
  std::vector<ScenarioResult> ended() const;

 private:
  bool streams() const { return format_ == OutputFormat::csv || format_ == OutputFormat::jsonl; }
  /// The result with what its study says of columns that were asked for.
  ScenarioResult row(std::size_t index) const;
  void print_row(const ScenarioResult& result);

  std::ostream& out_;
  OutputFormat format_;
  const std::vector<Scenario>& scenarios_;
  const std::vector<ScenarioResult>& results_;
  std::vector<bool> there_;
  std::vector<std::string> chosen_;   ///< columns; none: what is usual
  std::vector<std::string> columns_;  ///< of CSV
  bool any_good_ = false;
  bool has_head_ = false;
  std::size_t next_ = 0;
};

}  // namespace epocast
