#include "experiments/store/condition.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "sim/config.hpp"
#include "sim/text.hpp"

namespace epocast {
namespace {

bool begins_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool continues_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

}  // namespace

std::string sql_name(const std::string& name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string quoted_names(const std::string& condition, const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t at = 0; at < condition.size();) {
    const char c = condition[at];
    if (c == '\'' || c == '"') {
      const std::size_t end = std::min(condition.find(c, at + 1), condition.size() - 1);
      out += condition.substr(at, end + 1 - at);
      at = end + 1;
      continue;
    }
    if (!begins_word(c)) {
      const bool in_number = std::isdigit(static_cast<unsigned char>(c)) != 0;
      do out += condition[at++];
      while (in_number && at < condition.size() && continues_word(condition[at]));
      continue;
    }
    std::size_t end = at;
    while (end < condition.size() && continues_word(condition[end])) ++end;
    const std::string word = condition.substr(at, end - at);
    const bool known = std::find(names.begin(), names.end(), word) != names.end();
    if (!known && word.find('.') != std::string::npos)
      throw ConfigError("no column '" + word + "'" + name_hint(word, names));
    out += known ? sql_name(word) : word;
    at = end;
  }
  return out;
}

std::string condition_problem(const std::string& problem, const std::vector<std::string>& names) {
  constexpr std::string_view kUnknown = "no such column: ";
  const std::size_t at = problem.find(kUnknown);
  if (at == std::string::npos) return problem;
  const std::string name = problem.substr(at + kUnknown.size());
  return "no column '" + name + "'" + name_hint(name, names) + "; texts stand in single quotes";
}

Condition::Condition(const std::string& text, const std::vector<std::string>& names)
    : database_(std::make_shared<Database>("", Database::Access::memory)) {
  std::string columns;
  for (std::size_t n = 0; n < names.size(); ++n)
    columns += (n == 0 ? "" : ", ") + ("?" + std::to_string(n + 1)) + " AS " + sql_name(names[n]);
  database_->only_select();
  try {
    statement_ = std::make_shared<Statement>(*database_, "SELECT (" + quoted_names(text, names) + "\n) FROM (SELECT " +
                                                             (columns.empty() ? "1" : columns) + ")");
  } catch (const ConfigError& error) {
    throw ConfigError("'" + abridged(printable(text)) + "': " + condition_problem(error.what(), names));
  }
}

bool Condition::holds(const std::vector<std::string>& values) {
  for (std::size_t v = 0; v < values.size(); ++v) {
    const std::string& text = values[v];
    double number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    const auto parameter = static_cast<int>(v);
    if (status != std::errc() || end != text.data() + text.size())
      statement_->bind(parameter, text);
    else if (std::abs(number) < 1e15 && number == std::trunc(number))
      statement_->bind(parameter, static_cast<std::int64_t>(number));
    else
      statement_->bind(parameter, number);
  }
  const bool holds = statement_->step() && statement_->integer(0) != 0;
  while (statement_->step()) {
  }
  return holds;
}

}  // namespace epocast
