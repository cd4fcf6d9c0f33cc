#pragma once
// Reproduced targets as a table for people, CSV or JSON.

#include <iosfwd>
#include <string>
#include <vector>

#include "experiments/reproduce/target.hpp"

namespace epocast {

struct TargetResult {
  std::string paper;
  std::string table;
  std::string description;
  std::vector<TargetRow> rows;
  TargetSummary summary;

  std::string name() const { return paper + "/" + table; }
};

/// Runs a target. Throws what the target throws, and std::logic_error for a mistake in it.
TargetResult reproduce(const Target& target, const TargetContext& context);

/// Rows and summary of one target, columns aligned.
void write_target_table(std::ostream& out, const TargetResult& result);
/// One line per row of all targets, with a header line.
void write_targets_csv_head(std::ostream& out);
void write_target_csv(std::ostream& out, const TargetResult& result);
/// A list with one object per row: the columns of the CSV and `note`.
void write_targets_json(std::ostream& out, const std::vector<TargetResult>& results);

/// What was missed, one line each; none if the target was met.
std::vector<std::string> misses(const TargetResult& result);

}  // namespace epocast
