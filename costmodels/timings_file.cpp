#include "costmodels/timings_file.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <sstream>
#include <utility>

#include "sim/config.hpp"
#include "sim/input_file.hpp"
#include "sim/text.hpp"

namespace epocast {
namespace {

const std::vector<std::string> kColumns{
    "layer", "kind", "batch", "forward_s", "backward_data_s", "backward_weights_s", "update_s"};
const std::vector<std::string> kHeaderKeys{"device", "source",      "precision", "threads", "library",
                                           "date",   "repetitions", "spread",    "note",    "other_layers"};
constexpr double kMaxSeconds = 1e6;  // one layer of one batch; beyond that a unit was mistaken

class TimingsReader {
 public:
  TimingsReader(std::istream& in, std::string name) : in_(in) { out_.file = std::move(name); }

  TimingsFile read() {
    std::string text;
    while (std::getline(in_, text)) {
      ++line_;
      const std::string line = trimmed(text);
      if (line.empty()) continue;
      if (line.front() == '#') {
        read_header(line.substr(1));
      } else if (columns_.empty()) {
        read_columns(split(text));
      } else {
        read_row(split(text));
      }
    }
    if (in_.bad()) fail("", "cannot be read to its end");
    check_complete();
    return std::move(out_);
  }

 private:
  /// In the current line, at the field of `column` if there is such a column.
  [[noreturn]] void fail(const std::string& column, const std::string& problem) const {
    const auto at = static_cast<std::size_t>(std::ranges::find(columns_, column) - columns_.begin());
    throw ConfigError(Location{out_.file, std::max(line_, 1), at < columns_.size() ? starts_[at] : 0}, column, problem);
  }

  std::vector<std::string> split(const std::string& line) {
    std::vector<std::string> fields{""};
    starts_.clear();
    for (const char c : line + ",") {
      if (c != ',') fields.back() += c;
      if (c == ',') fields.emplace_back();
    }
    fields.pop_back();
    std::size_t from = 0;
    for (auto& field : fields) {
      const std::size_t blanks = std::min(field.find_first_not_of(" \t\r"), field.size());
      starts_.push_back(static_cast<int>(from + blanks + 1));
      from += field.size() + 1;
      field = trimmed(field);
    }
    return fields;
  }

  void read_header(const std::string& text) {
    const auto colon = text.find(':');
    const std::string key = trimmed(text.substr(0, colon));
    if (colon == std::string::npos || std::ranges::find(kHeaderKeys, key) == kHeaderKeys.end())
      fail("", "a comment must be '# KEY: VALUE'; unknown key '" + key + "'" + name_hint(key, kHeaderKeys));
    const std::string value = trimmed(text.substr(colon + 1));
    if (key == "note") return;
    if (!out_.header.emplace(key, value).second) fail(key, "is given twice; keep one");
    if (key == "precision" && value != "fp32")
      fail(key, "'" + value + "' is not supported; only fp32 timings can be used");
    if (key == "other_layers" && value != "zero") fail(key, "must be 'zero', or left out");
    if (key == "other_layers") out_.other_layers_zero = true;
  }

  void read_columns(const std::vector<std::string>& names) {
    for (const auto& name : names) {
      if (std::ranges::find(kColumns, name) == kColumns.end())
        fail("", "unknown column '" + name + "'" + name_hint(name, kColumns));
      if (std::ranges::count(names, name) > 1) fail("", "column '" + name + "' appears twice");
    }
    for (const auto& name : kColumns)
      if (std::ranges::find(names, name) == names.end()) fail("", "column '" + name + "' is missing");
    columns_ = names;
  }

  void read_row(const std::vector<std::string>& fields) {
    if (fields.size() != columns_.size())
      fail("", "has " + std::to_string(fields.size()) + " fields instead of " + std::to_string(columns_.size()));
    std::map<std::string, std::string> values;
    for (std::size_t i = 0; i < fields.size(); ++i) values[columns_[i]] = fields[i];

    TimingRow row{.layer = values["layer"],
                  .kind = read_kind(values["kind"]),
                  .batch = read_batch(values["batch"]),
                  .forward = {},
                  .backward_data = {},
                  .backward_weights = {},
                  .update = {},
                  .line = line_};
    if (row.layer.empty()) fail("layer", "is empty");
    row.forward = read_time("forward_s", values["forward_s"], true);
    row.backward_data = read_time("backward_data_s", values["backward_data_s"], false);
    row.backward_weights = read_time("backward_weights_s", values["backward_weights_s"], multiplies_weights(row.kind));
    if (!values["update_s"].empty()) row.update = read_time("update_s", values["update_s"], false);
    if (!seen_.emplace(row.layer, row.batch).second)
      fail("layer",
           "there is already a row for '" + row.layer + "' at batch " + std::to_string(row.batch) + "; remove one");
    out_.rows.push_back(std::move(row));
  }

  LayerKind read_kind(const std::string& text) const {
    std::vector<std::string> names;
    for (int i = 0; i <= static_cast<int>(kLastLayerKind); ++i) {
      names.emplace_back(to_string(static_cast<LayerKind>(i)));
      if (names.back() == text) return static_cast<LayerKind>(i);
    }
    fail("kind", "unknown layer kind '" + text + "'" + name_hint(text, names));
  }

  std::int64_t read_batch(const std::string& text) const {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > 1'000'000'000)
      fail("batch", "must be a whole number of samples from 1 to 1,000,000,000, not '" + text + "'");
    return value;
  }

  Seconds read_time(const std::string& column, const std::string& text, bool positive) const {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) || value < 0 ||
        value > kMaxSeconds)
      fail(column, "must be a time in seconds without a unit, from 0 to 1e6, not '" + text + "'");
    if (positive && value == 0) fail(column, "is 0, which no kernel takes; give the measured time or remove the row");
    return Seconds(value);
  }

  void check_complete() const {
    for (const char* key : {"device", "source", "precision"})
      if (!out_.header.contains(key))
        throw ConfigError(Location{out_.file, 1, 0}, key,
                          "is missing; add a line '# " + std::string(key) + ": ...' at the top");
    if (out_.rows.empty()) fail("", "there are no timings; a line of column names and at least one row are needed");
  }

  std::istream& in_;
  TimingsFile out_;
  int line_ = 0;
  std::vector<std::string> columns_;
  std::vector<int> starts_;  ///< of the current line's fields, in bytes from 1
  std::set<std::pair<std::string, std::int64_t>> seen_;
};

}  // namespace

TimingsFile read_timings(std::istream& in, std::string name) { return TimingsReader(in, std::move(name)).read(); }

TimingsFile load_timings(const std::filesystem::path& file) {
  std::istringstream in(read_input_file(file));
  return read_timings(in, file.string());
}

}  // namespace epocast
