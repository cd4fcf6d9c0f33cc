#include "experiments/result_stream.hpp"

#include <ostream>

namespace epocast {

ResultStream::ResultStream(std::ostream& out, OutputFormat format, const std::string& columns,
                           const std::vector<Scenario>& scenarios, const std::vector<ScenarioResult>& results)
    : out_(out), format_(format), results_(results), there_(scenarios.size()) {
  std::vector<std::string> axes;
  for (const Scenario& scenario : scenarios)
    for (const auto& [axis, value] : scenario.axes) add_name(axes, axis);
  chosen_ = chosen_columns(columns, axes);
  columns_ = chosen_.empty() ? result_columns(axes) : chosen_;
}

bool ResultStream::add(std::size_t index) {
  there_[index] = true;
  any_good_ |= results_[index].error.empty();
  if (!streams() || !any_good_) return false;
  const std::size_t first = next_;
  for (; next_ < there_.size() && there_[next_]; ++next_) print_row(results_[next_]);
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
  if (!streams()) return write_results(out_, ended(), format_, chosen_);
  for (; next_ < there_.size(); ++next_)
    if (there_[next_]) print_row(results_[next_]);
  out_.flush();
}

std::vector<ScenarioResult> ResultStream::ended() const {
  std::vector<ScenarioResult> out;
  for (std::size_t i = 0; i < there_.size(); ++i)
    if (there_[i]) out.push_back(results_[i]);
  return out;
}

}  // namespace epocast
