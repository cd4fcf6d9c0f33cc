#include "sim/error.hpp"

#include <cstdio>
#include <string_view>
#include <utility>

namespace epocast {

namespace {

// A message is one line that a terminal can show, whatever the user's file holds.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7F) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", byte);
      out += escape;
    } else {
      out += c;
    }
  }
  return out;
}

std::string message(const Location& where, const std::string& key_path, const std::string& problem) {
  std::string out = to_string(where);
  for (const std::string* part : {&key_path, &problem}) {
    if (part->empty()) continue;
    if (!out.empty()) out += ": ";
    out += *part;
  }
  return printable(out);
}

}  // namespace

std::string to_string(const Location& where) {
  std::string out = where.file;
  // A column means nothing without its line.
  if (where.line <= 0) return out;
  if (!out.empty()) out += ':';
  out += std::to_string(where.line);
  if (where.column > 0) out += ':' + std::to_string(where.column);
  return out;
}

ConfigError::ConfigError(Location where, std::string key_path, std::string problem)
    : std::runtime_error(message(where, key_path, problem)),
      where_(std::move(where)),
      key_path_(std::move(key_path)),
      problem_(std::move(problem)) {}

ConfigError::ConfigError(std::string problem) : std::runtime_error(printable(problem)), problem_(std::move(problem)) {}

}  // namespace epocast
