#include "experiments/result_stream.hpp"

#include <algorithm>
#include <ostream>

#include "experiments/default_strategy.hpp"
#include "experiments/sweep/axes.hpp"

namespace epocast {
namespace {

/// What every study has, and what people look for beside results, swept or not.
const std::vector<std::string> kStudyColumns{"platform", "model", "strategy"};

std::string what_study_says(const ConfigNode& study, const std::string& key) {
  if (study.is_map() && study.has(key)) return axis_label(study.at(key));
  return key == "strategy" ? kDefaultStrategy : "";
}

}  // namespace

ResultStream::ResultStream(std::ostream& out, OutputFormat format, const std::string& columns,
                           const std::vector<Scenario>& scenarios, const std::vector<ScenarioResult>& results)
    : out_(out), format_(format), scenarios_(scenarios), results_(results), there_(scenarios.size()) {
  std::vector<std::string> axes;
  for (const Scenario& scenario : scenarios)
    for (const auto& [axis, value] : scenario.axes) add_name(axes, axis);
  chosen_ = chosen_columns(columns, axes, kStudyColumns);
  columns_ = chosen_.empty() ? result_columns(axes) : chosen_;
}

bool ResultStream::add(std::size_t index) {
  there_[index] = true;
  any_good_ |= results_[index].error.empty();
  if (!streams() || !any_good_) return false;
  const std::size_t first = next_;
  for (; next_ < there_.size() && there_[next_]; ++next_) print_row(row(next_));
  out_.flush();
  return next_ > first;
}

void ResultStream::print_row(const ScenarioResult& result) {
  if (format_ == OutputFormat::jsonl) return write_json_line(out_, chosen_, result);
  if (!has_head_) write_csv_head(out_, columns_);
  has_head_ = true;
  write_csv_row(out_, columns_, result);
}

void ResultStream::finish() {
  if (!any_good_) return;
  if (!streams()) {
    std::vector<ScenarioResult> rows;
    for (std::size_t i = 0; i < there_.size(); ++i)
      if (there_[i]) rows.push_back(row(i));
    return write_results(out_, rows, format_, chosen_);
  }
  for (; next_ < there_.size(); ++next_)
    if (there_[next_]) print_row(row(next_));
  out_.flush();
}

ScenarioResult ResultStream::row(std::size_t index) const {
  ScenarioResult out = results_[index];
  if (!out.error.empty()) return out;  // its study may be what is wrong
  for (const std::string& key : kStudyColumns) {
    const bool asked = std::ranges::find(chosen_, key) != chosen_.end();
    const bool swept = std::ranges::any_of(out.axes, [&](const auto& axis) { return axis.first == key; });
    if (asked && !swept) out.axes.emplace_back(key, what_study_says(scenarios_[index].config(), key));
  }
  return out;
}

std::vector<ScenarioResult> ResultStream::ended() const {
  std::vector<ScenarioResult> out;
  for (std::size_t i = 0; i < there_.size(); ++i)
    if (there_[i]) out.push_back(results_[i]);
  return out;
}

}  // namespace epocast
