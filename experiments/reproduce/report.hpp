#pragma once
// Reproduced targets as a table for people, CSV or JSON, and what they missed.

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "experiments/reproduce/target.hpp"
#include "experiments/reproduce/winners.hpp"

namespace epocast {

/// Something declared that did not come out.
struct Miss {
  std::string text;
  std::string known = {};  ///< why, if the target declares it as known and it is no worse than declared; else empty
};

struct TargetResult {
  std::string paper;
  std::string table;
  std::string description;
  std::vector<TargetRow> rows;
  TargetSummary summary;
  std::string trivial_rule = {};
  std::vector<Miss> misses = {};
  std::optional<WinnerRule> winners = {};
  std::vector<WinnerPair> pairs = {};  ///< by that rule

  std::string name() const { return paper + "/" + table; }
  /// Misses nothing but what it is known to miss.
  bool as_declared() const;
};

/// Runs a target. Throws what the target throws, and std::logic_error for a mistake in it.
TargetResult reproduce(const Target& target, const TargetContext& context);

/// What was missed, marked where it is known. A known miss that no longer is one counts as a new one, so that none is
/// declared for longer than it is true.
std::vector<Miss> find_misses(const std::vector<TargetRow>& rows, const TargetSummary& summary,
                              const std::vector<WinnerPair>& pairs, const std::vector<KnownMiss>& known);

/// A miss as a line: "missed: ..." or "known miss: ...: REASON".
std::string describe(const Miss& miss);

/// A row with its documented columns, as a JSON object.
nlohmann::ordered_json columns_of(const TargetResult& result, const TargetRow& row);

/// Writes targets one after the other, each as soon as it is given, and flushes.
class TargetWriter {
 public:
  static const std::vector<std::string>& formats();

  /// `format` is one of formats(). csv: a header line, then a line per row. json: a list with an object per row, one a
  /// line: the columns of csv and `note`. table: rows and summary of each target, columns aligned.
  TargetWriter(std::ostream& out, const std::string& format);
  /// Closes the list of json, also when a later target failed.
  ~TargetWriter();
  TargetWriter(const TargetWriter&) = delete;
  TargetWriter& operator=(const TargetWriter&) = delete;

  void write(const TargetResult& result);

 private:
  void write_table(const TargetResult& result);
  void write_csv(const TargetResult& result);
  void write_json(const TargetResult& result);

  std::ostream& out_;
  std::string format_;
  bool first_ = true;  ///< nothing has been written but a header
};

}  // namespace epocast
