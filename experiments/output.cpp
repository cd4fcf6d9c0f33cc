#include "experiments/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "sim/config.hpp"
#include "sim/quantity.hpp"

namespace epocast {
namespace {

using nlohmann::ordered_json;

/// Columns of all results: study, scenario, axes, then the rest, each once.
std::vector<std::string> columns_of(const std::vector<ordered_json>& rows) {
  std::vector<std::string> columns{"study", "scenario"};
  const auto add = [&](const std::string& key) {
    if (std::find(columns.begin(), columns.end(), key) == columns.end()) columns.push_back(key);
  };
  const ordered_json fixed = to_json(ScenarioResult{});
  for (const auto& row : rows)
    for (const auto& [key, value] : row.items())
      if (!fixed.contains(key)) add(key);
  for (const auto& row : rows)
    for (const auto& [key, value] : row.items()) add(key);
  return columns;
}

std::string csv_value(const ordered_json& row, const std::string& column) {
  if (!row.contains(column) || row.at(column).is_null()) return "";
  const ordered_json& value = row.at(column);
  return csv_field(value.is_string() ? value.get<std::string>() : value.dump());
}

void write_csv(std::ostream& out, const std::vector<ordered_json>& rows) {
  const std::vector<std::string> columns = columns_of(rows);
  for (std::size_t c = 0; c < columns.size(); ++c) out << (c == 0 ? "" : ",") << csv_field(columns[c]);
  out << '\n';
  for (const ordered_json& row : rows) {
    for (std::size_t c = 0; c < columns.size(); ++c) out << (c == 0 ? "" : ",") << csv_value(row, columns[c]);
    out << '\n';
  }
}

std::string percent(const std::optional<double>& share) { return share ? fmt::format("{:.0f} %", 100 * *share) : "-"; }

/// The columns that people compare first; everything is in the other formats.
void write_table(std::ostream& out, const std::vector<ScenarioResult>& results) {
  std::string study;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> notes;
  const auto flush = [&] {
    if (!rows.empty()) out << align_columns(rows);
    for (const std::string& note : notes) out << note << '\n';
    rows.clear();
    notes.clear();
  };
  for (const ScenarioResult& r : results) {
    if (r.study != study || rows.empty()) {
      flush();
      if (!study.empty()) out << '\n';
      study = r.study;
      out << study << '\n';
      rows.push_back({});
      for (const auto& [axis, value] : r.axes) rows.front().push_back(axis);
      rows.front().insert(rows.front().end(), {"workers", "batch", "iteration", "epoch", "samples/s", "speedup", "efficiency",
                                               "exposed comm", "sent/iter", "sent/epoch", "memory"});
      if (std::any_of(results.begin(), results.end(), [](const auto& x) { return x.mean_staleness.has_value(); }))
        rows.front().push_back("staleness");
    }
    std::vector<std::string> row;
    for (const auto& [axis, value] : r.axes) row.push_back(value);
    const std::string which = r.scenario.empty() ? "" : r.scenario + ": ";
    if (!r.error.empty()) {
      row.resize(rows.front().size(), "-");
      rows.push_back(row);
      notes.push_back("  " + which + "error: " + r.error);
      continue;
    }
    row.insert(row.end(), {fmt::format("{}", r.workers), fmt::format("{}", r.global_batch), to_string(Seconds(r.iteration_s)),
                           to_string(Seconds(r.epoch_s)), fmt::format("{:.1f}", r.samples_per_s),
                           r.speedup ? fmt::format("{:.2f}", *r.speedup) : "-", percent(r.efficiency),
                           to_string(Seconds(r.exposed_comm_s)), to_string(Bytes(r.comm_bytes_per_iteration)),
                           to_string(Bytes(r.comm_bytes_per_epoch)),
                           r.peak_memory_bytes ? to_string(Bytes(*r.peak_memory_bytes)) + (*r.fits_memory ? "" : " !") : "-"});
    if (row.size() < rows.front().size()) row.push_back(r.mean_staleness ? fmt::format("{:.2f}", *r.mean_staleness) : "-");
    rows.push_back(row);
    notes.push_back("  " + which + "limited by " + r.limited_by);
    if (r.bound_s && *r.bound_s < r.iteration_s * (1 - 1e-3))
      notes.back() += fmt::format("; without waiting for shared links and queues: {}", to_string(Seconds(*r.bound_s)));
    for (const std::string& warning : r.warnings) notes.push_back("  " + which + "warning: " + warning);
    if (!r.explanation.empty()) notes.push_back(r.explanation);
  }
  flush();
}

bool is_numeric(const std::string& cell) {
  return !cell.empty() && (cell.front() == '-' || cell.front() == '+' || (cell.front() >= '0' && cell.front() <= '9'));
}

}  // namespace

std::vector<std::string> output_format_names() { return {"table", "csv", "json", "jsonl"}; }

OutputFormat parse_output_format(const std::string& name) {
  const std::vector<std::string> names = output_format_names();
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) throw ConfigError("--format: unknown format '" + name + "'" + name_hint(name, names));
  return static_cast<OutputFormat>(it - names.begin());
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string align_columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width;
  std::vector<bool> right;
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c >= width.size()) {
        width.resize(c + 1, 0);
        right.resize(c + 1, true);
      }
      width[c] = std::max(width[c], row[c].size());
      if (&row != &rows.front() && !is_numeric(row[c])) right[c] = false;
    }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string padding(width[c] - row[c].size(), ' ');
      line += "  " + (right[c] ? padding + row[c] : row[c] + padding);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + '\n';
  }
  return out;
}

void write_results(std::ostream& out, const std::vector<ScenarioResult>& results, OutputFormat format) {
  if (format == OutputFormat::table) return write_table(out, results);
  std::vector<ordered_json> rows;
  for (const ScenarioResult& result : results) rows.push_back(to_json(result));
  if (format == OutputFormat::csv) return write_csv(out, rows);
  if (format == OutputFormat::json) {
    out << ordered_json(rows).dump(2, ' ', false, ordered_json::error_handler_t::replace) << '\n';
    return;
  }
  for (const ordered_json& row : rows) out << row.dump(-1, ' ', false, ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace epocast
