#include "experiments/text_table.hpp"

#include <algorithm>
#include <charconv>

namespace epocast {
namespace {

/// A number, alone or before a unit, or the dash that stands for none: "12", "2.980 s", "82 %", "-", but not "2x Xeon".
bool is_numeric(const std::string& cell) {
  if (cell == "-") return true;
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return error == std::errc{} && (end == cell.data() + cell.size() || *end == ' ');
}

/// By column: whether all of its cells below the first are numbers.
std::vector<bool> numeric_columns(const Cells& rows) {
  std::vector<bool> numeric;
  for (const auto& row : rows) {
    numeric.resize(std::max(numeric.size(), row.size()), true);
    for (std::size_t c = 0; c < row.size(); ++c)
      if (&row != &rows.front() && !is_numeric(row[c])) numeric[c] = false;
  }
  return numeric;
}

std::vector<std::size_t> column_widths(const Cells& rows) {
  std::vector<std::size_t> width;
  for (const auto& row : rows) {
    width.resize(std::max(width.size(), row.size()), 0);
    for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], display_width(row[c]));
  }
  return width;
}

}  // namespace

// UTF-8 continues a character with bytes 10xxxxxx.
std::size_t display_width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string markdown(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '<' || c == '*' || c == '`' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::vector<std::string> fit_columns(Cells& rows, std::size_t width, const std::vector<std::string>& dispensable) {
  std::vector<std::string> out;
  for (const std::string& name : dispensable) {
    std::size_t all = 0;
    for (const std::size_t column : column_widths(rows)) all += 2 + column;
    if (all <= width || rows.empty()) break;
    const auto found = std::find(rows.front().begin(), rows.front().end(), name);
    if (found == rows.front().end()) continue;
    const std::ptrdiff_t at = found - rows.front().begin();
    for (auto& row : rows)
      if (at < std::ssize(row)) row.erase(row.begin() + at);
    out.push_back(name);
  }
  return out;
}

std::string wrapped(const std::string& line, std::size_t width, std::size_t indent) {
  std::string out, current;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t gap = line.find_first_not_of(' ', at);
    const std::size_t end = gap == std::string::npos ? line.size() : std::min(line.find(' ', gap), line.size());
    const std::string next = line.substr(at, end - at);  // a word and the spaces before it
    if (display_width(current + next) > width && current.find_first_not_of(' ') != std::string::npos) {
      out += current + '\n';
      current = std::string(indent, ' ') + line.substr(gap, end - gap);
    } else {
      current += next;
    }
    at = end;
  }
  return out + current;
}

std::string align_columns(const Cells& rows) {
  const std::vector<std::size_t> width = column_widths(rows);
  const std::vector<bool> right = numeric_columns(rows);
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

std::string markdown_table(const Cells& rows) {
  const std::vector<bool> right = numeric_columns(rows);
  std::string out;
  for (const auto& row : rows) {
    out += '|';
    for (std::size_t c = 0; c < right.size(); ++c) out += ' ' + (c < row.size() ? markdown(row[c]) : "") + " |";
    out += '\n';
    if (&row != &rows.front()) continue;
    out += '|';
    for (const bool is_right : right) out += is_right ? " --: |" : " :-- |";
    out += '\n';
  }
  return out;
}

}  // namespace epocast
