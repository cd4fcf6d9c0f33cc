#include "sim/error.hpp"

#include <string_view>
#include <utility>

#include "sim/text.hpp"

namespace epocast {

namespace {

// A message is one line that a terminal can show, whatever the user's file holds.
std::string shown(std::string_view text) { return abridged(printable(text)); }

std::string message(const Location& where, const std::string& key_path, const std::string& problem) {
  std::string out = printable(to_string(where));
  for (const std::string* part : {&key_path, &problem}) {
    if (part->empty()) continue;
    if (!out.empty()) out += ": ";
    out += shown(*part);
  }
  return out;
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

ConfigError::ConfigError(std::string problem) : std::runtime_error(shown(problem)), problem_(std::move(problem)) {}

}  // namespace epocast
