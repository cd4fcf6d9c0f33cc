#include "experiments/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>

#include "sim/config.hpp"
#include "sim/quantity.hpp"

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

std::string percent(const std::optional<double>& share) { return share ? fmt::format("{:.0f} %", 100 * *share) : "-"; }

/// Characters rather than bytes: UTF-8 continues a character with bytes 10xxxxxx.
std::size_t display_width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

bool same_table(const ScenarioResult& a, const ScenarioResult& b) {
  return a.study == b.study && std::equal(a.axes.begin(), a.axes.end(), b.axes.begin(), b.axes.end(),
                                          [](const auto& x, const auto& y) { return x.first == y.first; });
}

std::vector<std::string> table_header(std::span<const ScenarioResult> results) {
  std::vector<std::string> header;
  for (const auto& [axis, value] : results.front().axes)
    if (axis != "workers") header.push_back(axis);
  header.insert(header.end(), {"workers", "batch", "iteration", "epoch", "samples/s", "speedup", "efficiency",
                               "exposed comm", "sent/iter", "sent/epoch", "memory"});
  const auto any = [&](auto has) { return std::any_of(results.begin(), results.end(), has); };
  if (any([](const auto& r) { return r.mean_staleness.has_value(); })) header.push_back("staleness");
  if (any([](const auto& r) { return r.cost || r.energy_j || r.goodput; })) header.push_back("total");
  if (any([](const auto& r) { return r.goodput.has_value(); })) header.push_back("goodput");
  if (any([](const auto& r) { return r.cost.has_value(); })) header.push_back("cost");
  if (any([](const auto& r) { return r.energy_j.has_value(); })) header.push_back("energy");
  if (any([](const auto& r) { return r.co2_kg.has_value(); })) header.push_back("CO2");
  return header;
}

std::vector<std::string> table_row(const ScenarioResult& r, const std::vector<std::string>& header) {
  std::vector<std::string> row;
  for (const auto& [axis, value] : r.axes)
    if (axis != "workers") row.push_back(value);
  if (!r.error.empty()) {  // stderr says why
    const auto workers =
        std::find_if(r.axes.begin(), r.axes.end(), [](const auto& axis) { return axis.first == "workers"; });
    row.push_back(workers == r.axes.end() ? "-" : workers->second);
    row.resize(header.size(), "-");
    return row;
  }
  row.insert(
      row.end(),
      {fmt::format("{}", r.workers), fmt::format("{}", r.global_batch), to_string(Seconds(r.iteration_s)),
       to_string(Seconds(r.epoch_s)), fmt::format("{:.1f}", r.samples_per_s),
       r.speedup ? fmt::format("{:.2f}", *r.speedup) : "-", percent(r.efficiency), to_string(Seconds(r.exposed_comm_s)),
       to_string(Bytes(r.comm_bytes_per_iteration)), to_string(Bytes(r.comm_bytes_per_epoch)),
       r.peak_memory_bytes ? to_string(Bytes(*r.peak_memory_bytes)) + (*r.fits_memory ? "" : " !") : "-"});
  const std::string tail[][2] = {
      {"staleness", r.mean_staleness ? fmt::format("{:.2f}", *r.mean_staleness) : "-"},
      {"total", to_string(Seconds(r.total_s))},
      {"goodput", r.goodput ? fmt::format("{:.1f} %", 100 * *r.goodput) : "-"},
      {"cost", r.cost ? fmt::format("{:.2f} {}", *r.cost, r.currency) : "-"},
      {"energy", r.energy_j ? fmt::format("{:.4g} kWh", *r.energy_j / 3.6e6) : "-"},
      {"CO2", r.co2_kg ? fmt::format("{:.4g} kg", *r.co2_kg) : "-"},
  };
  for (const auto& [name, text] : tail)
    if (std::find(header.begin(), header.end(), name) != header.end()) row.push_back(text);
  return row;
}

/// What limits a scenario, and what it would take if nothing had to wait.
std::string limit_text(const ScenarioResult& r) {
  std::string text = r.limited_by;
  if (r.bound_s && *r.bound_s < r.iteration_s * (1 - 1e-3))
    text += fmt::format("; {} without waiting for shared links and queues", to_string(Seconds(*r.bound_s)));
  return text;
}

std::string indented(const std::string& lines) {
  std::string out = "    ";
  for (const char c : lines) {
    out += c;
    if (c == '\n') out += "    ";
  }
  return out.substr(0, out.find_last_not_of(" \n") + 1) + '\n';
}

/// The columns that people compare first, then a line for each scenario on what limits it; everything is in the other
/// formats.
void write_study(std::ostream& out, std::span<const ScenarioResult> results) {
  const std::vector<std::string> header = table_header(results);
  std::vector<std::vector<std::string>> rows{header};
  std::size_t widest = 0;
  const auto label = [](const ScenarioResult& r) {  // with one axis its name is in the head of the table
    return r.axes.size() == 1 ? r.axes.front().second : r.scenario;
  };
  for (const ScenarioResult& r : results) {
    rows.push_back(table_row(r, header));
    if (r.error.empty()) widest = std::max(widest, display_width(label(r)));
  }
  out << results.front().study << '\n' << align_columns(rows);

  std::vector<std::pair<std::string, std::vector<std::string>>> warnings;  // text, scenarios
  bool first = true;
  for (const ScenarioResult& r : results) {
    if (!r.error.empty()) continue;
    if (first) out << "\n  limited by" << (widest > 0 ? "\n" : " ");
    first = false;
    if (widest > 0) out << "    " << label(r) << std::string(widest - display_width(label(r)) + 2, ' ');
    out << limit_text(r) << '\n';
    if (r.iteration_low_s && r.iteration_high_s)
      out << fmt::format("    iteration from {} to {} with a probability of 90 %, by the ranges of stack {}\n",
                         to_string(Seconds(*r.iteration_low_s)), to_string(Seconds(*r.iteration_high_s)), r.stack);
    if (!r.explanation.empty()) out << indented(r.explanation) << '\n';
    for (const std::string& warning : r.warnings) {
      auto same = std::find_if(warnings.begin(), warnings.end(), [&](const auto& w) { return w.first == warning; });
      if (same == warnings.end()) same = warnings.insert(warnings.end(), {warning, {}});
      same->second.push_back(label(r));
    }
  }
  if (!warnings.empty()) out << '\n';
  for (const auto& [text, of] : warnings) {
    const std::string who = of.size() == 1 ? of.front() : fmt::format("{} scenarios", of.size());
    out << "  warning: " << text
        << (widest == 0                   ? ""
            : of.size() == results.size() ? "  [all]"
                                          : "  [" + who + "]")
        << '\n';
  }
}

void write_table(std::ostream& out, std::span<const ScenarioResult> results) {
  for (std::size_t begin = 0, end = 0; begin < results.size(); begin = end) {
    while (end < results.size() && same_table(results[begin], results[end])) ++end;
    if (begin > 0) out << '\n';
    write_study(out, results.subspan(begin, end - begin));
  }
}

/// A number, alone or before a unit, or the dash that stands for none: "12", "2.980 s", "82 %", "-", but not "2x Xeon".
bool is_numeric(const std::string& cell) {
  if (cell == "-") return true;
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return error == std::errc{} && (end == cell.data() + cell.size() || *end == ' ');
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
      width[c] = std::max(width[c], display_width(row[c]));
      if (&row != &rows.front() && !is_numeric(row[c])) right[c] = false;
    }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string padding(width[c] - display_width(row[c]), ' ');
      line += "  " + (right[c] ? padding + row[c] : row[c] + padding);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + '\n';
  }
  return out;
}

void add_name(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
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

void write_json_line(std::ostream& out, const ScenarioResult& result) {
  out << to_json(result).dump(-1, ' ', false, kReplace) << '\n';
}

void write_results(std::ostream& out, const std::vector<ScenarioResult>& results, OutputFormat format) {
  if (format == OutputFormat::table) return write_table(out, results);
  if (format == OutputFormat::csv) {
    std::vector<std::string> axes;
    for (const ScenarioResult& result : results)
      for (const auto& [axis, value] : result.axes) add_name(axes, axis);
    const std::vector<std::string> columns = result_columns(axes);
    write_csv_head(out, columns);
    for (const ScenarioResult& result : results) write_csv_row(out, columns, result);
    return;
  }
  if (format == OutputFormat::jsonl) {
    for (const ScenarioResult& result : results) write_json_line(out, result);
    return;
  }
  std::vector<ordered_json> rows;
  for (const ScenarioResult& result : results) rows.push_back(to_json(result));
  out << ordered_json(rows).dump(2, ' ', false, kReplace) << '\n';
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
