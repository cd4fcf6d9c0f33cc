#include <algorithm>

#include "experiments/report/report_columns.hpp"
#include "experiments/report/report_page.hpp"

namespace epocast {
namespace {

using nlohmann::ordered_json;

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json json_of(const ReportStudy& study) {
  const bool stored = study.run.has_value();
  const StoredRun run = study.run.value_or(StoredRun{});
  const auto of_run = [&](const auto& value) { return stored ? ordered_json(value) : ordered_json(nullptr); };
  return {{"name", study.name},
          {"source", study.source},
          {"axes", study.axes},
          {"run", of_run(run.id)},
          {"program", of_run(run.program)},
          {"started", of_run(run.started)},
          {"stored", of_run(run.stored)},
          {"scenarios", of_run(run.scenarios)},
          {"text", of_run(run.text)},
          {"inputs", study.inputs}};
}

ordered_json json_of(const ReportTimeline& timeline) {
  ordered_json lanes = ordered_json::array(), slices = ordered_json::array();
  std::int64_t end = 0;
  for (const ReportTimeline::Lane& lane : timeline.lanes)
    lanes.push_back({{"device", lane.device}, {"name", lane.name}});
  for (const ReportTimeline::Slice& slice : timeline.slices) {
    for (const std::int64_t part :
         {static_cast<std::int64_t>(slice.lane), static_cast<std::int64_t>(slice.name), slice.start, slice.duration})
      slices.push_back(part);
    end = std::max(end, slice.start + slice.duration);
  }
  return {{"title", timeline.title}, {"notes", timeline.notes}, {"lanes", lanes},
          {"names", timeline.names}, {"slices", slices},        {"end", end}};
}

ordered_json json_of(const ReportPasses& passes) {
  ordered_json parts = ordered_json::object();
  for (const auto& [name, bytes] : passes.parts) parts[name] = bytes;
  return {{"title", passes.title}, {"passes", passes.passes}, {"parts", parts}};
}

template <class Things>
ordered_json list_of(const Things& things) {
  ordered_json list = ordered_json::array();
  for (const auto& thing : things) list.push_back(json_of(thing));
  return list;
}

/// The values of all rows by column.
ordered_json columns_of_rows(const ReportData& data, const std::vector<ReportColumn>& columns) {
  ordered_json all = ordered_json::object();
  ordered_json studies = ordered_json::array(), errors = ordered_json::array();
  for (const ReportColumn& column : columns) {
    ordered_json values = ordered_json::array();
    for (const ReportRow& row : data.rows) values.push_back(report_value(row, column.name));
    all[column.name] = std::move(values);
  }
  for (const ReportRow& row : data.rows) {
    studies.push_back(row.study);
    errors.push_back(row.error.empty() ? ordered_json(nullptr) : ordered_json(row.error));
  }
  all["study_number"] = std::move(studies);
  all["error"] = std::move(errors);
  return all;
}

}  // namespace

std::string report_document(const ReportData& data, const ReportQuestion& question) {
  ordered_json document;
  document["settings"] = {
      {"minimise",
       data.rows.empty() ? ordered_json(nullptr) : ordered_json(objective_column(chosen_objective(data, question)))},
      {"under_s", or_null(question.deadline)},
      {"budget", or_null(question.budget)},
      {"fits", question.fits}};
  const std::vector<ReportColumn> columns = report_columns(data);
  document["columns"] = ordered_json::array();
  for (const ReportColumn& column : columns)
    document["columns"].push_back({{"name", column.name},
                                   {"title", column.title},
                                   {"unit", column.unit},
                                   {"factor", column.factor},
                                   {"kind", column.numeric ? "number" : "text"}});
  document["studies"] = list_of(data.studies);
  document["row_count"] = data.rows.size();
  document["rows"] = columns_of_rows(data, columns);
  document["timelines"] = list_of(data.timelines);
  document["memory_of_passes"] = list_of(data.passes);
  document["details"] = ordered_json::array();
  for (const ReportDetails& details : data.details)
    document["details"].push_back({{"title", details.title}, {"memory", details.memory}, {"traffic", details.traffic}});
  // In a script element, `</script` ends it and `<!--` begins something else; "\u003c" is the same text.
  std::string text = document.dump(-1, ' ', false, ordered_json::error_handler_t::replace), safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  }
  return safe;
}

}  // namespace epocast
