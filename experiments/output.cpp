#include "experiments/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string_view>
#include <utility>

#include "experiments/result_table.hpp"
#include "experiments/terminal.hpp"
#include "experiments/text_table.hpp"
#include "sim/config.hpp"
#include "sim/text.hpp"

namespace epocast {
namespace {

using nlohmann::ordered_json;

// Names from a user's file may not be UTF-8; replacing is better than failing at the very end.
constexpr auto kReplace = ordered_json::error_handler_t::replace;

std::string csv_value(const ordered_json& row, const std::string& column) {
  if (!row.contains(column) || row.at(column).is_null()) return "";
  const ordered_json& value = row.at(column);
  if (value.is_array()) return csv_field(fmt::format("{}", fmt::join(value.get<std::vector<std::string>>(), " | ")));
  return csv_field(value.is_string() ? value.get<std::string>() : value.dump());
}

/// What the heads of tables for people are called elsewhere.
constexpr std::pair<std::string_view, std::string_view> kHeads[] = {{"batch", "global_batch"},
                                                                    {"iteration", "iteration_s"},
                                                                    {"epoch", "epoch_s"},
                                                                    {"samples/s", "samples_per_s"},
                                                                    {"exposed comm", "exposed_comm_s"},
                                                                    {"sent/iter", "comm_bytes_per_iteration"},
                                                                    {"sent/epoch", "comm_bytes_per_epoch"},
                                                                    {"memory", "peak_memory_bytes"},
                                                                    {"staleness", "mean_staleness"},
                                                                    {"total", "total_s"},
                                                                    {"energy", "energy_j"},
                                                                    {"CO2", "co2_kg"}};

/// The columns of a result that were asked for; all if none were.
ordered_json chosen(const ScenarioResult& result, const std::vector<std::string>& columns) {
  ordered_json row = to_json(result);
  if (columns.empty()) return row;
  ordered_json out;
  for (const std::string& column : columns) out[column] = row.contains(column) ? row.at(column) : ordered_json(nullptr);
  return out;
}

/// A value for people.
std::string cell(const ordered_json& value) {
  if (value.is_null() || (value.is_array() && value.empty())) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) return fmt::format("{}", fmt::join(value.get<std::vector<std::string>>(), " | "));
  return value.is_number_float() ? fmt::format("{:.6g}", value.get<double>()) : value.dump();
}

}  // namespace

std::vector<std::string> output_format_names() { return {"table", "markdown", "csv", "json", "jsonl"}; }

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

void add_name(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

std::vector<std::string> axis_names(const std::vector<ScenarioResult>& results) {
  std::vector<std::string> axes;
  for (const ScenarioResult& result : results)
    for (const auto& [axis, value] : result.axes) add_name(axes, axis);
  return axes;
}

std::vector<std::string> result_columns(const std::vector<std::string>& axes) {
  std::vector<std::string> columns{"study", "scenario"};
  for (const std::string& axis : axes) add_name(columns, axis);
  const ordered_json fixed = to_json(ScenarioResult{});
  for (const auto& [key, value] : fixed.items()) add_name(columns, key);
  return columns;
}

void write_csv_head(std::ostream& out, const std::vector<std::string>& columns) {
  for (std::size_t c = 0; c < columns.size(); ++c) out << (c == 0 ? "" : ",") << csv_field(columns[c]);
  out << '\n';
}

void write_csv_row(std::ostream& out, const std::vector<std::string>& columns, const ScenarioResult& result) {
  const ordered_json row = to_json(result);
  for (std::size_t c = 0; c < columns.size(); ++c) out << (c == 0 ? "" : ",") << csv_value(row, columns[c]);
  out << '\n';
}

void write_json_line(std::ostream& out, const std::vector<std::string>& columns, const ScenarioResult& result) {
  out << chosen(result, columns).dump(-1, ' ', false, kReplace) << '\n';
}

std::vector<std::string> chosen_columns(const std::string& text, const std::vector<std::string>& axes,
                                        const std::vector<std::string>& keys) {
  std::vector<std::string> columns;
  if (text.empty()) return columns;
  const std::vector<std::string> all = result_columns(axes);
  const auto among = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    std::string name = trimmed(text.substr(at, end - at));
    if (!among(all, name) && !among(keys, name)) {
      const auto* const head = std::ranges::find(kHeads, name, [](const auto& pair) { return pair.first; });
      if (head == std::end(kHeads)) throw ConfigError("--columns: no column '" + name + "'" + name_hint(name, all));
      name = head->second;
    }
    columns.push_back(std::move(name));
    at = end + 1;
  }
  return columns;
}

void write_results(std::ostream& out, const std::vector<ScenarioResult>& results, OutputFormat format,
                   const std::vector<std::string>& columns) {
  switch (format) {
    case OutputFormat::table:
    case OutputFormat::markdown: {
      const bool aligned = format == OutputFormat::table;
      if (columns.empty())
        return write_tables(out, results, aligned ? TableStyle::aligned : TableStyle::markdown, line_width(out));
      Cells rows{columns};
      for (const ScenarioResult& result : results) {
        std::vector<std::string>& cells = rows.emplace_back();
        const ordered_json row = chosen(result, columns);
        for (const std::string& column : columns) cells.push_back(cell(row.at(column)));
      }
      out << (aligned ? align_columns(rows) : markdown_table(rows));
      return;
    }
    case OutputFormat::csv: {
      const std::vector<std::string> all = columns.empty() ? result_columns(axis_names(results)) : columns;
      write_csv_head(out, all);
      for (const ScenarioResult& result : results) write_csv_row(out, all, result);
      return;
    }
    case OutputFormat::jsonl:
      for (const ScenarioResult& result : results) write_json_line(out, columns, result);
      return;
    case OutputFormat::json: {
      std::vector<ordered_json> rows;
      for (const ScenarioResult& result : results) rows.push_back(chosen(result, columns));
      out << ordered_json(rows).dump(2, ' ', false, kReplace) << '\n';
    }
  }
}

void write_details(std::ostream& out, const std::vector<ScenarioResult>& results) {
  ordered_json list = ordered_json::array();
  for (const ScenarioResult& result : results) {
    if (result.details.empty()) continue;
    ordered_json entry{{"study", result.study}, {"scenario", result.scenario}};
    entry.update(ordered_json::parse(result.details));
    list.push_back(std::move(entry));
  }
  out << list.dump(2, ' ', false, kReplace) << '\n';
}

}  // namespace epocast
