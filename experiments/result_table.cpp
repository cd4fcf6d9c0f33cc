#include "experiments/result_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <span>
#include <string>
#include <utility>

#include "experiments/terminal.hpp"
#include "experiments/text_table.hpp"
#include "sim/quantity.hpp"

namespace epocast {
namespace {

/// Columns that make room for others, the first first.
const std::vector<std::string> kDispensable{"sent/epoch", "sent/iter", "exposed comm", "CO2",   "energy", "staleness",
                                            "efficiency", "batch",     "speedup",      "total", "memory", "samples/s"};

std::string percent(const std::optional<double>& share) { return share ? fmt::format("{:.0f} %", 100 * *share) : "-"; }

std::string cost_text(double cost) { return cost < 1 ? fmt::format("{:.4g}", cost) : fmt::format("{:.2f}", cost); }

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
      {"cost", r.cost ? fmt::format("{} {}", cost_text(*r.cost), r.currency) : "-"},
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
    text += fmt::format("; {} without waiting for shared links, queues and devices", to_string(Seconds(*r.bound_s)));
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

/// A scenario among those of its study; with one axis its name is in the head of the table.
std::string label_of(const ScenarioResult& r) { return r.axes.size() == 1 ? r.axes.front().second : r.scenario; }

std::string interval_text(const ScenarioResult& r) {
  if (!r.iteration_low_s || !r.iteration_high_s) return "";
  if (*r.iteration_low_s == *r.iteration_high_s) return "nothing that the iteration depends on has a range";
  return fmt::format("iteration from {} to {} with a probability of 90 %, by the ranges of stack {}",
                     to_string(Seconds(*r.iteration_low_s)), to_string(Seconds(*r.iteration_high_s)), r.stack);
}

/// Warnings, each once, and of whom in brackets.
std::vector<std::string> warning_texts(std::span<const ScenarioResult> results) {
  std::vector<std::pair<std::string, std::vector<std::string>>> warnings;  // text, scenarios
  bool named = false;
  for (const ScenarioResult& r : results)
    if (r.error.empty()) {
      named |= !label_of(r).empty();
      for (const std::string& warning : r.warnings) {
        auto same = std::find_if(warnings.begin(), warnings.end(), [&](const auto& w) { return w.first == warning; });
        if (same == warnings.end()) same = warnings.insert(warnings.end(), {warning, {}});
        same->second.push_back(label_of(r));
      }
    }
  std::vector<std::string> out;
  for (const auto& [text, of] : warnings) {
    const std::string who = of.size() == results.size() ? "all"
                            : of.size() == 1            ? of.front()
                                                        : fmt::format("{} scenarios", of.size());
    out.push_back("warning: " + text + (named ? "  [" + who + "]" : ""));
  }
  return out;
}

void write_aligned(std::ostream& out, std::span<const ScenarioResult> results, Cells rows, std::size_t width) {
  if (width == 0) width = std::string::npos;
  const std::vector<std::string> left_out = fit_columns(rows, width, kDispensable);
  std::size_t widest = 0;
  for (const ScenarioResult& r : results)
    if (r.error.empty()) widest = std::max(widest, display_width(label_of(r)));
  const std::string table = align_columns(rows);
  const std::size_t head = std::min(table.find('\n'), table.size());
  out << results.front().study << '\n'
      << styled(table.substr(0, head), Style::heading, has_colours(out)) << table.substr(head);
  if (!left_out.empty())
    out << wrapped(fmt::format("  no room for {}: choose with --columns, or see all with --format csv",
                               fmt::join(left_out, ", ")),
                   width, 4)
        << '\n';
  bool first = true;
  for (const ScenarioResult& r : results) {
    if (!r.error.empty()) continue;
    if (first) out << (widest > 0 ? "\n  limited by\n" : "\n");
    first = false;
    const std::string label =
        widest > 0 ? "    " + label_of(r) + std::string(widest - display_width(label_of(r)) + 2, ' ') : "  limited by ";
    out << wrapped(label + limit_text(r), width, 6) << '\n';
    if (const std::string interval = interval_text(r); !interval.empty()) out << "    " << interval << '\n';
    if (!r.explanation.empty()) out << indented(r.explanation) << '\n';
  }
  const std::vector<std::string> warnings = warning_texts(results);
  if (!warnings.empty()) out << '\n';
  for (const std::string& warning : warnings) out << wrapped("  " + warning, width, 4) << '\n';
}

void write_markdown(std::ostream& out, std::span<const ScenarioResult> results, const Cells& rows) {
  out << "### " << markdown(results.front().study) << "\n\n" << markdown_table(rows) << "\nLimited by:\n\n";
  for (const ScenarioResult& r : results) {
    if (!r.error.empty()) continue;
    const std::string label = label_of(r);
    out << "- " << (label.empty() ? "" : "**" + markdown(label) + "**: ") << markdown(limit_text(r)) << '\n';
    if (const std::string interval = interval_text(r); !interval.empty()) out << "  - " << markdown(interval) << '\n';
    if (!r.explanation.empty()) out << "\n" << indented("```\n" + r.explanation + "\n```") << '\n';
  }
  const std::vector<std::string> warnings = warning_texts(results);
  if (!warnings.empty()) out << '\n';
  for (const std::string& warning : warnings) out << "- " << markdown(warning) << '\n';
}

}  // namespace

void write_tables(std::ostream& out, const std::vector<ScenarioResult>& results, TableStyle style, std::size_t width) {
  const std::span<const ScenarioResult> all(results);
  for (std::size_t begin = 0, end = 0; begin < results.size(); begin = end) {
    while (end < results.size() && same_table(results[begin], results[end])) ++end;
    if (begin > 0) out << '\n';
    const std::span<const ScenarioResult> study = all.subspan(begin, end - begin);
    Cells rows{table_header(study)};
    for (const ScenarioResult& r : study) rows.push_back(table_row(r, rows.front()));
    if (style == TableStyle::markdown)
      write_markdown(out, study, rows);
    else
      write_aligned(out, study, std::move(rows), width);
  }
}

}  // namespace epocast
