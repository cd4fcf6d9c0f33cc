// The report without a script: what can be said and drawn once and for all.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "experiments/line_plot.hpp"
#include "experiments/report/report_columns.hpp"
#include "experiments/report/report_page.hpp"
#include "experiments/svg.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostStaticRows = 1'000;
constexpr std::size_t kMostStaticLines = 12;

const ReportColumn* column_named(const std::vector<ReportColumn>& columns, const std::string& name) {
  const auto found = std::ranges::find(columns, name, &ReportColumn::name);
  return found == columns.end() ? nullptr : &*found;
}

/// "4.659 d".
std::string quantity_text(const ReportRow& row, const std::vector<ReportColumn>& columns, const std::string& name) {
  const ReportColumn* column = column_named(columns, name);
  if (column == nullptr) return "";
  return report_cell(row, *column) + (column->unit.empty() ? "" : " " + column->unit);
}

/// "devices 128, platform h100, ...", in HTML.
std::string choices_text(const ReportData& data, const ReportRow& row, const std::vector<ReportColumn>& columns) {
  std::string text;
  for (const std::string& axis : data.studies[row.study].axes)
    if (const ReportColumn* column = column_named(columns, axis))
      text += fmt::format("{}{} <b>{}</b>", text.empty() ? "" : ", ", markup_text(column->title),
                          markup_text(report_cell(row, *column)));
  return text;
}

std::string conditions_text(const ReportQuestion& question) {
  std::string text;
  if (question.deadline) text += ", done within " + to_string(Seconds(*question.deadline));
  if (question.budget) text += ", for " + report_number(*question.budget) + " at most";
  if (question.fits) text += ", in the devices' memory";
  return text;
}

std::string answer_html(const ReportData& data, const ReportQuestion& question,
                        const std::vector<ReportColumn>& columns) {
  const Objective objective = chosen_objective(data, question);
  const std::vector<const ReportRow*> ranked = report_ranking(data, question);
  const std::string counts =
      fmt::format("{} of {} meet the conditions.", ranked.size(), counted(data.rows.size(), "scenario"));
  std::string html =
      fmt::format("<section><p class=\"asked\">The least {}{}</p>\n",
                  objective_names()[static_cast<std::size_t>(objective)], markup_text(conditions_text(question)));
  if (ranked.empty()) return html + "<p class=\"verdict\">Nothing meets the conditions.</p></section>\n";
  const ReportRow& best = *ranked.front();
  html += fmt::format("<p class=\"verdict\"><strong>{}</strong>",
                      markup_text(quantity_text(best, columns, objective_column(objective))));
  if (objective != Objective::time)
    html += fmt::format(" in <strong>{}</strong>", markup_text(quantity_text(best, columns, "total_s")));
  html += "</p>\n<p>" + choices_text(data, best, columns) + "</p>\n<p class=\"lead\">" + counts + "</p>\n";
  if (const ReportColumn* limit = column_named(columns, "limited_by"))
    html += "<p class=\"limited\"><b>Limited by</b> " + markup_text(report_cell(best, *limit)) + "</p>\n";
  return html + "</section>\n";
}

/// A study's name, with its file if another has the same.
std::string unique_name(const ReportData& data, std::size_t number) {
  const ReportStudy& study = data.studies[number];
  const bool is_alone = std::ranges::count(data.studies, study.name, &ReportStudy::name) == 1;
  return is_alone ? study.name : study.name + " (" + std::filesystem::path(study.source).filename().string() + ")";
}

/// Throughput over the number of devices, or whatever axis has numbers: a line for each combination of the others.
std::string scaling_html(const ReportData& data, const std::vector<ReportColumn>& columns) {
  const ReportColumn* up = column_named(columns, "samples_per_s");
  const ReportColumn* across = column_named(columns, "workers");
  if (across == nullptr || !across->varies || !across->numeric) {
    across = nullptr;
    for (const ReportStudy& study : data.studies)
      for (const std::string& axis : study.axes)
        if (const ReportColumn* column = column_named(columns, axis);
            column != nullptr && column->numeric && column->varies)
          across = across == nullptr ? column : across;
  }
  if (up == nullptr || !up->numeric || across == nullptr) return "";
  std::map<std::string, PlotLine> lines;
  for (const ReportRow& row : data.rows) {
    const ordered_json &x = report_value(row, across->name), &y = report_value(row, up->name);
    if (!x.is_number() || !y.is_number()) continue;
    std::string name = data.studies.size() > 1 ? unique_name(data, row.study) : "";
    for (const std::string& axis : data.studies[row.study].axes)
      if (const ReportColumn* column = column_named(columns, axis); column != nullptr && axis != across->name)
        name += (name.empty() ? "" : ", ") + report_cell(row, *column);
    PlotLine& line = lines[name];
    line.name = name;
    line.points[x.get<double>() / across->factor] = y.get<double>() / up->factor;
  }
  if (lines.empty() || lines.size() > kMostStaticLines) return "";
  std::vector<PlotLine> drawn;
  for (auto& [name, line] : lines) drawn.push_back(std::move(line));
  return "<section><h2>Scaling</h2><figure>" + lines_svg(drawn, across->heading(), up->heading(), true) +
         "</figure></section>\n";
}

/// Those that no other scenario beats in both time and the objective.
std::string front_html(const ReportData& data, const ReportQuestion& question,
                       const std::vector<ReportColumn>& columns) {
  const ReportColumn* across = column_named(columns, "total_s");
  const ReportColumn* up = column_named(columns, objective_column(chosen_objective(data, question)));
  if (across == nullptr || up == nullptr || up->name == across->name) return "";
  std::map<double, double> fastest;  // least of the objective by time
  for (const ReportRow* row : report_ranking(data, {.objective = question.objective, .fits = question.fits})) {
    const ordered_json &x = report_value(*row, across->name), &y = report_value(*row, up->name);
    if (x.is_number()) fastest.try_emplace(x.get<double>() / across->factor, y.get<double>() / up->factor);
  }
  PlotLine front{.name = "no other scenario is better in both", .points = {}};
  double least = INFINITY;
  for (const auto& [x, y] : fastest)
    if (y < least) front.points[x] = least = y;
  if (front.points.size() < 2) return "";
  return "<section><h2>Faster for more</h2><figure>" + lines_svg({front}, across->heading(), up->heading(), true) +
         "</figure></section>\n";
}

std::string table_html(const ReportData& data, const ReportQuestion& question,
                       const std::vector<ReportColumn>& columns) {
  std::vector<const ReportColumn*> shown;
  for (const ReportColumn& column : columns)
    if (column.name != "scenario" && (column.varies || data.rows.size() == 1)) shown.push_back(&column);
  // The best first; then what does not meet the conditions, as it comes.
  std::vector<const ReportRow*> rows = report_ranking(data, question);
  const std::set<const ReportRow*> ranked(rows.begin(), rows.end());
  for (const ReportRow& row : data.rows)
    if (!ranked.contains(&row)) rows.push_back(&row);
  std::string html = "<section><h2>Scenarios</h2>\n";
  if (rows.size() > kMostStaticRows)
    html += fmt::format("<p class=\"note\">The first {} of {}.</p>\n", kMostStaticRows, rows.size());
  html += "<div class=\"scroller\"><table><thead><tr>";
  for (const ReportColumn* column : shown) html += "<th scope=\"col\">" + markup_text(column->heading()) + "</th>";
  html += "</tr></thead><tbody>\n";
  rows.resize(std::min(rows.size(), kMostStaticRows));
  for (const ReportRow* row : rows) {
    html += ranked.contains(row) ? "<tr>" : "<tr class=\"out\">";
    for (const ReportColumn* column : shown)
      html += (column->numeric ? "<td class=\"number\">" : "<td>") + markup_text(report_cell(*row, *column)) + "</td>";
    html += "</tr>\n";
  }
  html += "</tbody></table></div>\n<dl class=\"facts\">";
  for (const ReportColumn& column : columns)
    if (!column.varies && data.rows.size() > 1)
      html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", markup_text(column.heading()),
                          markup_text(report_cell(data.rows.front(), column)));
  return html + "</dl></section>\n";
}

std::string studies_html(const ReportData& data) {
  std::string html = "<section><h2>Studies</h2>\n";
  for (const ReportStudy& study : data.studies) {
    html += fmt::format("<h3>{}</h3><p>from {}</p>\n", markup_text(study.name), markup_text(study.source));
    if (!study.run) continue;
    html += fmt::format("<p>run {}, started {}, by {}; {} of {} scenarios</p>\n", study.run->id,
                        markup_text(study.run->started), markup_text(study.run->program), study.run->stored,
                        study.run->scenarios);
    if (!study.run->text.empty()) html += "<pre>" + markup_text(study.run->text, true) + "</pre>\n";
    for (const auto& [name, print] : study.inputs)
      html += "<p class=\"mono\">" + markup_text(name + " " + print) + "</p>\n";
  }
  return html + "</section>\n";
}

}  // namespace

std::string report_static(const ReportData& data, const ReportQuestion& question) {
  std::string html;
  if (!data.rows.empty()) {
    const std::vector<ReportColumn> columns = report_columns(data);
    html += answer_html(data, question, columns) + front_html(data, question, columns) + scaling_html(data, columns) +
            table_html(data, question, columns);
  }
  if (data.timelines.size() + data.passes.size() + data.details.size() > 0)
    html +=
        "<p class=\"note\">Timelines, memory by purpose and communication matrices are drawn with JavaScript "
        "only.</p>\n";
  if (!data.studies.empty()) html += studies_html(data);
  return html;
}

}  // namespace epocast
