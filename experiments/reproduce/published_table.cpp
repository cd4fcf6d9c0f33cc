#include "experiments/reproduce/published_table.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <utility>

#include "sim/error.hpp"
#include "sim/input_file.hpp"
#include "sim/text.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

const std::vector<std::string> kLastColumns{"quantity", "unit", "value"};

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    fields.push_back(trimmed(line.substr(begin, end - begin)));
    begin = end + 1;
  }
  return fields;
}

double number(const std::string& text, const Location& where) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    throw ConfigError(where, "value", "must be a number, not '" + text + "'");
  return value;
}

/// Whether a comment says where the numbers come from.
bool is_source(const std::string& comment, const Location& where) {
  const std::string text = trimmed(comment.substr(1));
  if (text.starts_with("note:")) return false;
  if (!text.starts_with("source:") || trimmed(text.substr(7)).empty())
    throw ConfigError(where, "", "a comment must be '# source: ...' or '# note: ...'");
  return true;
}

}  // namespace

PublishedTable PublishedTable::load(const std::filesystem::path& file, const std::vector<std::string>& keys) {
  std::istringstream in(read_input_file(file));
  return read(in, file.string(), keys);
}

PublishedTable PublishedTable::read(std::istream& in, std::string name, const std::vector<std::string>& keys) {
  PublishedTable table;
  table.key_columns_ = keys;
  std::vector<std::string> columns = keys;
  columns.insert(columns.end(), kLastColumns.begin(), kLastColumns.end());
  table.file_ = std::move(name);
  Location where{table.file_};
  bool sourced = false, headed = false;
  for (std::string line; std::getline(in, line);) {
    ++where.line;
    line = trimmed(line);
    if (line.empty()) continue;
    if (line.front() == '#') {
      sourced |= is_source(line, where);
      continue;
    }
    std::vector<std::string> fields = split(line);
    if (!headed) {
      if (fields != columns)
        throw ConfigError(where, "", fmt::format("the columns must be {}", fmt::join(columns, ",")));
      headed = true;
      continue;
    }
    if (fields.size() != columns.size())
      throw ConfigError(where, "",
                        fmt::format("has {} instead of {}", counted(fields.size(), "field"), columns.size()));
    if (std::find(fields.begin(), fields.end(), "") != fields.end()) throw ConfigError(where, "", "has an empty field");
    const auto keys_end = fields.end() - static_cast<std::ptrdiff_t>(kLastColumns.size());
    PublishedCell cell{{fields.begin(), keys_end}, *keys_end, *(keys_end + 1), number(fields.back(), where)};
    if (table.find(cell.keys, cell.quantity) != nullptr)
      throw ConfigError(where, "", "this cell is there twice; remove one");
    table.cells_.push_back(std::move(cell));
  }
  if (in.bad()) throw ConfigError(where, "", "cannot be read to its end");
  where.line = 1;
  if (!sourced) throw ConfigError(where, "", "has no line '# source: ...'");
  if (table.cells_.empty()) throw ConfigError(where, "", "has no numbers");
  return table;
}

double PublishedTable::value(const std::vector<std::string>& keys, const std::string& quantity) const {
  if (const PublishedCell* cell = find(keys, quantity)) return cell->value;
  throw ConfigError(
      Location{file_}, "",
      fmt::format("has no cell {} of {} = {}", quantity, fmt::join(key_columns_, ","), fmt::join(keys, ",")));
}

const PublishedCell* PublishedTable::find(const std::vector<std::string>& keys, const std::string& quantity) const {
  const auto cell = std::find_if(cells_.begin(), cells_.end(), [&](const PublishedCell& candidate) {
    return candidate.keys == keys && candidate.quantity == quantity;
  });
  return cell == cells_.end() ? nullptr : &*cell;
}

}  // namespace epocast
