#include "experiments/reproduce/measured_runs/runs_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "costmodels/csv_table.hpp"
#include "sim/data_directory.hpp"
#include "sim/data_file.hpp"

namespace epocast {
namespace {

struct Measurement {
  const char* column;
  const char* quantity;  ///< the column of a result that it is compared with
  const char* unit;
  double factor;  ///< to that
};
constexpr Measurement kMeasurements[] = {{"samples_per_s", "samples_per_s", "1/s", 1},
                                         {"iteration_s", "iteration_s", "s", 1},
                                         {"iteration_ms", "iteration_s", "s", 1e-3}};

const Measurement& find_measurement(const CsvTable& table) {
  const Measurement* found = nullptr;
  for (const Measurement& candidate : kMeasurements) {
    if (!table.has(candidate.column)) continue;
    if (found != nullptr)
      throw table.error(table.columns_line(), "",
                        fmt::format("both '{}' and '{}' are measurements; keep one", found->column, candidate.column));
    found = &candidate;
  }
  if (found == nullptr)
    throw table.error(table.columns_line(), "",
                      "no column has the measurement; add samples_per_s, iteration_s or iteration_ms");
  return *found;
}

RunRole read_role(const CsvRow& row) {
  const std::string& word = row.text("role");
  if (word == "baseline") return RunRole::baseline;
  if (word == "run") return RunRole::run;
  if (word == "fitted") return RunRole::fitted;
  if (word == "left_out") return RunRole::left_out;
  throw row.error("role", "unknown role '" + word + "'" + name_hint(word, {"baseline", "run", "fitted", "left_out"}));
}

class Reader {
 public:
  Reader(const ConfigNode& root, const CsvTable& table, std::filesystem::path study, std::vector<Override> changes)
      : table_(table),
        study_(std::move(study)),
        changes_(std::move(changes)),
        measurement_(find_measurement(table)),
        described_{"series", "role", "note", "source", measurement_.column} {
    if (root.has("groups")) groups_ = read_columns(root.at("groups"));
    described_.insert(groups_.begin(), groups_.end());
    if (root.has("winners")) {
      const ConfigNode rule = root.at("winners");
      winners_ = WinnerRule{read_columns(rule.at("equal")), rule.get("gap", 3.0, Range{0, 100}),
                            std::string_view(measurement_.quantity) == "iteration_s"};
    }
    table_.check_header({"source"}, {"date", "note"});
    for (const char* column : {"series", "role"})
      if (!table_.has(column)) throw table_.error(table_.columns_line(), "", fmt::format("no column '{}'", column));
  }

  std::vector<MeasuredRun> read() {
    for (const CsvRow& row : table_.rows()) add(row);
    for (std::size_t r = 0; r < runs_.size(); ++r) runs_[r].settings = settings_of(r);
    check_series();
    return std::move(runs_);
  }

  const Measurement& measurement() const { return measurement_; }
  const std::optional<WinnerRule>& winners() const { return winners_; }

 private:
  std::vector<std::string> read_columns(const ConfigNode& list) const {
    std::vector<std::string> out;
    for (const ConfigNode& column : list.items()) {
      out.push_back(column.as_string());
      if (!table_.has(out.back()))
        throw column.error("the table has no column '" + out.back() + "'" + name_hint(out.back(), table_.columns()));
    }
    return out;
  }

  void add(const CsvRow& row) {
    const RunRole role = read_role(row);
    const std::string note = table_.has("note") ? row.text("note") : "";
    if (row.empty("series")) throw row.error("series", "is empty; name the series");
    if (role == RunRole::left_out && note.empty()) throw row.error("note", "must say why this run is left out");
    std::vector<std::pair<std::string, std::string>> groups;
    for (const std::string& group : groups_) groups.emplace_back(group, row.text(group));
    std::string rivals;
    if (winners_)
      for (const std::string& column : winners_->equal) rivals += row.text(column) + '\n';
    std::vector<Override> changes;
    for (const std::string& column : table_.columns())
      if (!described_.contains(column) && !row.empty(column)) changes.push_back({column, row.text(column)});
    changes.insert(changes.end(), changes_.begin(), changes_.end());
    const Study study = load_users_study(study_, changes);
    if (study.scenarios.size() != 1)
      throw row.error("", "the study sweeps, so this is no single run; give each axis a column");
    const double measured = row.number(measurement_.column, Range{1e-9, 1e15}) * measurement_.factor;
    runs_.push_back({row.text("series"), role, "", std::move(groups), std::move(rivals), note, measured,
                     study.scenarios.front(), Location{table_.file(), row.line(), 0}});
  }

  /// The cells in which the runs of its series differ.
  std::string settings_of(std::size_t r) const {
    std::string out;
    for (const std::string& column : table_.columns()) {
      if (described_.contains(column)) continue;
      bool differs = false;
      for (std::size_t s = 0; s < runs_.size(); ++s)
        differs |= runs_[s].series == runs_[r].series && table_.rows()[s].text(column) != table_.rows()[r].text(column);
      const std::string& cell = table_.rows()[r].text(column);
      if (differs && !cell.empty()) out += (out.empty() ? "" : ", ") + column + "=" + cell;
    }
    return out;
  }

  void check_series() const {
    std::map<std::string, const MeasuredRun*> baselines;
    std::set<std::pair<std::string, std::string>> seen;
    std::set<std::string> with_runs;
    for (const MeasuredRun& run : runs_) {
      if (run.role == RunRole::left_out) continue;
      if (!seen.emplace(run.series, run.settings).second)
        throw ConfigError(run.where, "", "this run of series '" + run.series + "' is there twice; keep one");
      if (run.role == RunRole::run || run.role == RunRole::fitted) with_runs.insert(run.series);
      if (run.role == RunRole::baseline && !baselines.emplace(run.series, &run).second)
        throw ConfigError(run.where, "role",
                          fmt::format("series '{}' has a baseline already, in line {}; keep one", run.series,
                                      baselines.at(run.series)->where.line));
    }
    for (const auto& [series, baseline] : baselines)
      if (!with_runs.contains(series))
        throw ConfigError(baseline->where, "role", "series '" + series + "' has a baseline and no run");
  }

  const CsvTable& table_;
  std::filesystem::path study_;
  std::vector<Override> changes_;
  const Measurement& measurement_;
  std::set<std::string> described_;
  std::vector<std::string> groups_;
  std::optional<WinnerRule> winners_;
  std::vector<MeasuredRun> runs_;
};

std::optional<double> percent(const ConfigNode& node, const char* key) {
  if (!node.has(key)) return std::nullopt;
  return node.at(key).as_double(Range{0, 1000});
}

}  // namespace

RunsFile read_runs_file(const std::filesystem::path& file, const std::vector<Override>& changes) {
  const ConfigNode root = ConfigNode::load_file(file);
  if (!root.is_map() || !root.has("target"))
    throw root.error("no target of measured runs; it begins with `target: PAPER/TABLE`, see docs/reproduce.md");
  RunsFile out;
  const ConfigNode name = root.at("target");
  const std::string text = name.as_string();
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == text.size())
    throw name.error("write two names, as in ours/cluster_a");
  out.paper = text.substr(0, slash);
  out.table = text.substr(slash + 1);
  out.description = root.get("description", "");
  out.seen = root.get("seen", true);
  out.intervals = root.get("intervals", false);

  const auto beside = [&](const char* key, const char* extension) {
    return find_data_file(root.at(key), {key, std::filesystem::path(file).parent_path(), extension});
  };
  const CsvTable table = CsvTable::load(beside("runs", ".csv"));
  Reader reader(root, table, beside("study", ".yaml"), changes);
  out.quantity = reader.measurement().quantity;
  out.unit = reader.measurement().unit;
  out.winners = reader.winners();
  out.runs = reader.read();

  if (root.has("bounds")) {
    const ConfigNode bounds = root.at("bounds");
    out.mape_bound = percent(bounds, "mape");
    out.bounds = {.median = percent(bounds, "median"),
                  .ninetieth = percent(bounds, "ninetieth"),
                  .share_of_trivial = percent(bounds, "share_of_trivial")};
  }
  if (root.has("known_misses"))
    for (const ConfigNode& miss : root.at("known_misses").items())
      out.known_misses.push_back(
          {miss.at("what").as_string(), miss.at("at_most").as_double(Range{0, 1e6}), miss.at("why").as_string()});
  root.check_all_read();
  return out;
}

}  // namespace epocast
