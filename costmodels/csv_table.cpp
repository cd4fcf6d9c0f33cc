#include "costmodels/csv_table.hpp"
#include "sim/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <utility>

#include "sim/input_file.hpp"
#include "sim/text.hpp"

namespace epocast {
namespace {

constexpr std::size_t kLongestLine = 1 << 20;

/// Fields of a line and the bytes at which they start; false if a quote is left open.
bool split(const std::string& line, std::vector<std::string>& fields, std::vector<int>& starts) {
  fields.assign(1, "");
  const auto start_from = [&](std::size_t i) {
    while (i < line.size() && (line[i] == ' ' || line[i] == '\t')) ++i;
    return static_cast<int>(i);
  };
  starts.assign(1, start_from(0));
  bool quoted = false;
  bool was_quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += '"';
      ++i;
    } else if (c == '"' && (quoted || fields.back().empty())) {
      quoted = !quoted;
      was_quoted = true;
    } else if (c == ',' && !quoted) {
      if (!was_quoted) fields.back() = trimmed(fields.back());
      was_quoted = false;
      fields.emplace_back();
      starts.push_back(start_from(i + 1));
    } else {
      fields.back() += c;
    }
  }
  if (!was_quoted) fields.back() = trimmed(fields.back());
  return !quoted;
}

std::string shown(const std::string& text) { return "'" + text.substr(0, 60) + (text.size() > 60 ? "...'" : "'"); }

}  // namespace

const std::string& CsvRow::text(const std::string& column) const {
  const auto& names = table_->columns();
  const auto found = std::find(names.begin(), names.end(), column);
  return fields_.at(static_cast<std::size_t>(found - names.begin()));
}

ConfigError CsvRow::error(const std::string& column, const std::string& problem) const {
  const auto& names = table_->columns();
  const auto found = std::ranges::find(names, column);
  const int start = found == names.end() ? 0 : starts_[static_cast<std::size_t>(found - names.begin())];
  return ConfigError(Location{table_->file(), line_, start}, column, problem);
}

double CsvRow::number(const std::string& column, Range range) const {
  const std::string& cell = text(column);
  double value = 0;
  const auto [end, failed] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (failed != std::errc{} || end != cell.data() + cell.size() || !std::isfinite(value) || value < range.min ||
      value > range.max)
    throw error(column, fmt::format("must be a number from {:g} to {:g} without a unit, not {}", range.min, range.max,
                                    shown(cell)));
  return value;
}

double CsvRow::seconds(const std::string& column, double unit) const {
  const double value = number(column, {0, 1e6 / unit}) * unit;
  if (value == 0) throw error(column, "is 0, which nothing takes; give the measured time or remove the row");
  return value;
}

std::int64_t CsvRow::whole(const std::string& column, Range range) const {
  const double value = number(column, range);
  if (value != std::floor(value)) throw error(column, "must be a whole number, not " + shown(text(column)));
  return static_cast<std::int64_t>(value);
}

CsvTable CsvTable::load(const std::filesystem::path& file) {
  std::istringstream in(read_input_file(file));
  return CsvTable(in, file.string());
}

CsvTable CsvTable::read(std::istream& in, std::string name) { return CsvTable(in, std::move(name)); }

CsvTable::CsvTable(std::istream& in, std::string name) : file_(std::move(name)) {
  std::string line;
  std::vector<std::string> fields;
  std::vector<int> starts;
  int number = 0;
  while (std::getline(in, line)) {
    ++number;
    if (in.eof()) throw error(number, "", "the last line does not end: is the file cut off? If not, add a line break");
    if (line.size() > kLongestLine) throw error(number, "", "is longer than any honest row");
    const std::string text = trimmed(line);
    if (text.empty()) continue;
    if (text.front() == '#' && columns_.empty()) {
      read_header_line(trimmed(text.substr(1)), number);
      continue;
    }
    if (!split(text, fields, starts)) throw error(number, "", "a quote is not closed; is the file cut off?");
    for (int& start : starts) start += static_cast<int>(line.find_first_not_of(" \t\r")) + 1;  // columns count from 1
    if (columns_.empty()) {
      columns_ = fields;
      starts_ = starts;
      columns_line_ = number;
      for (const std::string& column : columns_)
        if (std::ranges::count(columns_, column) > 1) throw error(number, "", "column '" + column + "' appears twice");
      continue;
    }
    if (fields.size() != columns_.size())
      throw error(
          number, "",
          fmt::format("has {} instead of {}; is the file cut off?", counted(fields.size(), "field"), columns_.size()));
    rows_.emplace_back(*this, std::move(fields), std::move(starts), number);
  }
  if (in.bad()) throw error(number, "", "cannot be read to its end");
  if (rows_.empty())
    throw error(std::max(number, 1), "", "there are no data; a line of column names and at least one row are needed");
}

void CsvTable::read_header_line(const std::string& text, int number) {
  const auto colon = text.find(':');
  if (colon == std::string::npos) throw error(number, "", "a comment must be '# KEY: VALUE'");
  const std::string key = trimmed(text.substr(0, colon));
  const std::string value = trimmed(text.substr(colon + 1));
  if (!header_.emplace(key, HeaderValue{value, number}).second && key != "note")
    throw error(number, key, "is given twice; keep one");
}

bool CsvTable::has(const std::string& column) const { return std::ranges::find(columns_, column) != columns_.end(); }

void CsvTable::check_columns(const std::vector<std::string>& required, const std::vector<std::string>& optional) const {
  std::vector<std::string> known = required;
  known.insert(known.end(), optional.begin(), optional.end());
  for (std::size_t c = 0; c < columns_.size(); ++c)
    if (std::ranges::find(known, columns_[c]) == known.end())
      throw ConfigError(Location{file_, columns_line_, starts_[c]}, "",
                        "unknown column " + shown(columns_[c]) + name_hint(columns_[c], known));
  for (const std::string& column : required)
    if (!has(column)) throw error(columns_line_, "", "column '" + column + "' is missing");
}

void CsvTable::check_header(const std::vector<std::string>& required, const std::vector<std::string>& optional) const {
  std::vector<std::string> known = required;
  known.insert(known.end(), optional.begin(), optional.end());
  for (const auto& [key, value] : header_)
    if (std::ranges::find(known, key) == known.end())
      throw error(value.line, "", "unknown key '" + key.substr(0, 60) + "'" + name_hint(key, known));
  for (const std::string& key : required)
    if (!header_.contains(key)) throw error(1, key, "is missing; add a line '# " + key + ": ...' at the top");
}

ConfigError CsvTable::error(int line, const std::string& key, const std::string& problem) const {
  return ConfigError(Location{file_, line, 0}, key, problem);
}

}  // namespace epocast
