#include "experiments/report/report_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "costmodels/csv_table.hpp"
#include "experiments/output.hpp"
#include "experiments/result.hpp"
#include "sim/error.hpp"
#include "sim/input_file.hpp"

namespace epocast {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kWanted =
    "; give a store of `sweep`, results of `run` in CSV or JSON, or what `run --trace`, `run --details` or `trace "
    "--memory` wrote";

/// The number of the study of this name in this file.
std::size_t study_number(ReportData& data, const std::string& file, const std::string& name) {
  for (std::size_t s = 0; s < data.studies.size(); ++s)
    if (data.studies[s].name == name && data.studies[s].source == file) return s;
  data.studies.push_back({.name = name, .source = file});
  return data.studies.size() - 1;
}

void read_store(const std::string& file, ReportData& data) {
  ResultStore store(file, ResultStore::Use::read);
  const std::vector<StoredRow> rows = store.rows(0, "");
  if (rows.empty()) throw ConfigError(Location{file}, "", "has no rows yet; `epocast sweep` stores them");
  for (const StoredRow& stored : rows) {
    const ScenarioResult result = stored.result();
    const std::size_t number = study_number(data, file, result.study);
    ReportStudy& study = data.studies[number];
    if (!study.run) study.run = store.last_run(result.study);
    for (const auto& [axis, value] : result.axes) add_name(study.axes, axis);
    const json inputs = json::parse(stored.inputs);
    for (const auto& [name, print] : inputs.items()) study.inputs[name] = print.get<std::string>();
    if (!result.currency.empty()) {
      if (!data.currency.empty() && result.currency != data.currency)
        throw ConfigError(Location{file}, "",
                          "has prices in " + result.currency + " beside others in " + data.currency +
                              "; a report compares prices in one currency");
      data.currency = result.currency;
    }
    data.rows.push_back({number, to_json(result), result.error});
  }
}

std::string text_of(const ordered_json& object, const char* key) {
  return object.contains(key) && object.at(key).is_string() ? object.at(key).get<std::string>() : "";
}

/// A value that the page can show.
ordered_json plain(const ordered_json& value) {
  const bool texts = value.is_array() && std::ranges::all_of(value, [](const auto& v) { return v.is_string(); });
  if (value.is_primitive() || texts) return value;
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

/// Which columns are axes: those that are no result, and results whose values the scenario's name tells.
void note_axes(ReportStudy& study, const ordered_json& row, const std::string& scenario) {
  static const ordered_json results = columns_of(ScenarioResult{});
  for (const auto& [name, value] : row.items()) {
    if (name == "study" || name == "scenario") continue;
    const std::string setting = name + "=";
    if (!results.contains(name) || scenario.starts_with(setting) || scenario.find(", " + setting) != std::string::npos)
      add_name(study.axes, name);
  }
}

void add_row(ReportData& data, const std::string& file, int line, const ordered_json& row) {
  const auto text = [&](const char* key) {
    if (!row.is_object() || !row.contains(key) || !row.at(key).is_string())
      throw ConfigError(Location{file, line}, "",
                        std::string("has no text '") + key + "', so this is no result of epocast" + kWanted);
    return row.at(key).get<std::string>();
  };
  const std::size_t number = study_number(data, file, text("study"));
  note_axes(data.studies[number], row, text("scenario"));
  ReportRow& added = data.rows.emplace_back(ReportRow{.study = number, .values = ordered_json::object()});
  for (const auto& [name, value] : row.items()) added.values[name] = plain(value);
  if (row.contains("total_s") && row["total_s"].is_null()) added.error = "has no result";
}

bool is_matrix(const ordered_json& traffic) {
  const auto list = [](const ordered_json& value, std::size_t size, auto test) {
    return value.is_array() && value.size() == size && std::ranges::all_of(value, test);
  };
  if (!traffic.is_object() || !traffic.contains("names") || !traffic["names"].is_array() || !traffic.contains("bytes"))
    return false;
  const std::size_t size = traffic["names"].size();
  const auto text = [](const ordered_json& v) { return v.is_string(); };
  const auto number = [](const ordered_json& v) { return v.is_number(); };
  return list(traffic["names"], size, text) &&
         list(traffic["bytes"], size, [&](const ordered_json& row) { return list(row, size, number); });
}

void add_details(ReportData& data, const std::string& file, const ordered_json& entry) {
  const ordered_json& phases = entry.at("phases");
  for (std::size_t p = 0; p < phases.size(); ++p) {
    const ordered_json& phase = phases[p];
    if (!phase.is_object() || !phase.contains("memory") || !phase["memory"].is_array())
      throw ConfigError(Location{file}, fmt::format("phases[{}]", p), "has no list 'memory'" + std::string(kWanted));
    std::string title = text_of(entry, "scenario");
    if (title.empty()) title = text_of(entry, "study");
    if (title.empty()) title = file;
    if (phases.size() > 1) title += fmt::format(", phase {}", p + 1);
    ordered_json traffic;
    if (phase.contains("traffic")) {
      traffic = phase["traffic"];
      if (!is_matrix(traffic))
        throw ConfigError(Location{file}, fmt::format("phases[{}].traffic", p),
                          "is no square matrix of bytes with a name for each row" + std::string(kWanted));
    }
    data.details.push_back({title, phase["memory"], traffic});
  }
}

void add_json(ReportData& data, const std::string& file, int line, const ordered_json& entry) {
  if (entry.is_object() && entry.contains("phases") && entry["phases"].is_array())
    add_details(data, file, entry);
  else
    add_row(data, file, line, entry);
}

/// Discarded if it is no JSON. Throws ConfigError for what is nested deeper than any result.
ordered_json parse_shallow(const std::string& text, const std::string& file) {
  constexpr int kDeepest = 32;
  const auto check = [&](int depth, ordered_json::parse_event_t, ordered_json&) {
    if (depth > kDeepest)
      throw ConfigError(Location{file}, "", "is nested deeper than any result" + std::string(kWanted));
    return true;
  };
  return ordered_json::parse(text, check, false);
}

void read_json(const std::string& file, const std::string& text, ReportData& data) {
  const ordered_json whole = parse_shallow(text, file);
  if (whole.is_object() && whole.contains("traceEvents")) {
    data.timelines.push_back(read_timeline(whole, file));
    return;
  }
  if (whole.is_array()) {
    for (const ordered_json& entry : whole) add_json(data, file, 0, entry);
    return;
  }
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \r\t") == std::string::npos) continue;
    const ordered_json entry = parse_shallow(line, file);
    if (entry.is_discarded()) throw ConfigError(Location{file, number}, "", "is no JSON" + std::string(kWanted));
    add_json(data, file, number, entry);
  }
}

/// A CSV field as the number or truth value that it is, or as text; empty is null.
ordered_json csv_json(const std::string& column, const std::string& text) {
  if (text.empty()) return column == "warnings" ? ordered_json::array() : ordered_json();
  if (column == "warnings") {
    ordered_json list = ordered_json::array();
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(" | ", at), text.size());
      list.push_back(text.substr(at, end - at));
      at = end + 3;
    }
    return list;
  }
  if (text == "true" || text == "false") return text == "true";
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = status == std::errc() && end == text.data() + text.size() && std::isfinite(number);
  return is_number ? ordered_json(number) : ordered_json(text);
}

void read_passes(const CsvTable& table, ReportData& data) {
  constexpr Range kAnyBytes{.min = 0, .max = 1e18};
  ReportPasses passes{.title = table.file()};
  for (const std::string& column : table.columns())
    if (column.ends_with("_bytes") && column != "total_bytes")
      passes.parts.emplace_back(column.substr(0, column.size() - 6), std::vector<double>());
  for (const CsvRow& row : table.rows()) {
    passes.passes.push_back(row.text("pass") + " " + row.text("layer"));
    for (auto& [name, bytes] : passes.parts) bytes.push_back(row.number(name + "_bytes", kAnyBytes));
  }
  if (passes.passes.empty()) throw table.error(table.columns_line(), "", "is followed by no rows");
  data.passes.push_back(std::move(passes));
}

void read_csv(const std::string& file, const std::string& text, ReportData& data) {
  std::istringstream in(text);
  const CsvTable table = CsvTable::read(in, file);
  if (table.has("pass") && table.has("layer") && table.has("total_bytes")) return read_passes(table, data);
  if (!table.has("study") || !table.has("scenario"))
    throw table.error(table.columns_line(), "", "has no columns 'study' and 'scenario'" + std::string(kWanted));
  for (const CsvRow& row : table.rows()) {
    ordered_json values;
    for (const std::string& column : table.columns())
      values[column] = column == "study" || column == "scenario" ? ordered_json(row.text(column))
                                                                 : csv_json(column, row.text(column));
    add_row(data, file, row.line(), values);
  }
}

/// Rows in CSV and JSON do not say in which currency their costs are. Those of several files are not compared then.
void set_costs_apart(ReportData& data) {
  std::vector<std::string> files;
  for (const ReportRow& row : data.rows) {
    const ReportStudy& study = data.studies[row.study];
    if (!row.values.contains("cost") || !row.values["cost"].is_number()) continue;
    add_name(files, study.source);
    if (!study.run) add_name(data.no_currency, study.source);
  }
  data.costs_apart = files.size() > 1 && !data.no_currency.empty();
  if (!data.costs_apart) return;
  for (ReportRow& row : data.rows) {
    ordered_json values = ordered_json::object();
    for (const auto& [name, value] : row.values.items())
      values[name == "cost" ? "cost (" + data.studies[row.study].source + ")" : name] = value;
    row.values = std::move(values);
  }
}

}  // namespace

void read_report_text(const std::string& text, const std::string& file, ReportData& data) {
  const auto things = [&] {
    return data.rows.size() + data.timelines.size() + data.details.size() + data.passes.size();
  };
  const std::size_t before = things(), start = text.find_first_not_of(" \t\r\n");
  if (start == std::string::npos) throw ConfigError(Location{file}, "", "is empty" + std::string(kWanted));
  if (text[start] == '#')  // of Markdown, YAML and CSV that is not ours
    throw ConfigError(Location{file}, "", "is no result of epocast" + std::string(kWanted));
  if (text[start] == '{' || text[start] == '[')
    read_json(file, text, data);
  else
    read_csv(file, text, data);
  if (things() == before) throw ConfigError(Location{file}, "", "holds no results" + std::string(kWanted));
}

ReportData read_report_data(const std::vector<std::filesystem::path>& files) {
  ReportData data;
  for (const std::filesystem::path& file : files) {
    const std::string text = read_input_file(file);
    if (text.starts_with("SQLite format 3"))
      read_store(file.string(), data);
    else
      read_report_text(text, file.string(), data);
  }
  set_costs_apart(data);
  return data;
}

}  // namespace epocast
