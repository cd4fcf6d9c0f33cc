#include "experiments/store/condition.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include "sim/config.hpp"
#include "sim/quantity_unit.hpp"
#include "sim/text.hpp"

namespace epocast {
namespace {

struct ConditionToken {
  enum Is { word, literal, quoted, number, sign, space } is = space;  ///< quoted: a name in double quotes
  std::string text;
};

bool begins_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool continues_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

/// All of a condition, piece by piece.
std::vector<ConditionToken> split_condition(const std::string& condition) {
  std::vector<ConditionToken> out;
  for (std::size_t at = 0; at < condition.size();) {
    const char c = condition[at];
    std::size_t end = at + 1;
    ConditionToken::Is is = ConditionToken::sign;
    if (c == '\'' || c == '"') {
      is = c == '"' ? ConditionToken::quoted : ConditionToken::literal;
      end = std::min(condition.find(c, at + 1), condition.size() - 1) + 1;
    } else if (begins_word(c) || std::isdigit(static_cast<unsigned char>(c)) != 0) {
      is = begins_word(c) ? ConditionToken::word : ConditionToken::number;
      while (end < condition.size() && continues_word(condition[end])) ++end;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      is = ConditionToken::space;
    } else if (std::string_view("<>=!").find(c) != std::string_view::npos) {
      while (end < condition.size() && std::string_view("<>=").find(condition[end]) != std::string_view::npos) ++end;
    }
    out.push_back({is, condition.substr(at, end - at)});
    at = end;
  }
  return out;
}

bool is_among(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

bool is_keyword(const ConditionToken& token, std::string_view word) {
  return token.is == ConditionToken::word &&
         std::ranges::equal(token.text, word, {}, [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
}

constexpr const char* kPlainNumber = "a number";

/// "a number", the kind of a quantity, or "" of other texts.
std::string sort_of_value(const std::string& text) {
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status == std::errc() && end == text.data() + text.size()) return kPlainNumber;
  const std::optional<AnyQuantity> quantity = any_quantity(text);
  return quantity ? quantity->kind : "";
}

/// Refuses what SQL would answer, but not as meant: a quantity, which is a text to it, compared with a number or a
/// quantity of another kind, or computed with.
class KindCheck {
 public:
  KindCheck(const std::string& condition, const std::vector<std::string>& names,
            const std::vector<std::vector<std::string>>& values)
      : names_(names), values_(values) {
    for (ConditionToken& token : split_condition(condition))
      if (token.is != ConditionToken::space) tokens_.push_back(std::move(token));
  }

  void check() const {
    for (std::size_t at = 0; at < tokens_.size(); ++at) {
      const auto is_one_of = [&](std::string_view signs) {
        return tokens_[at].is == ConditionToken::sign && signs.find(tokens_[at].text.front()) != std::string_view::npos;
      };
      if (is_one_of("<>=!")) check_pair(before(at), after(at));
      if (is_one_of("+-*/%"))
        for (const Operand operand : {before(at), after(at)}) check_computed(operand);
      if (is_keyword(tokens_[at], "between")) {
        std::size_t end = at;
        while (end < tokens_.size() && !is_keyword(tokens_[end], "and")) ++end;
        check_pair(before(at), after(at));
        check_pair(before(at), after(end));
      }
      if (is_keyword(tokens_[at], "in"))
        for (std::size_t in = at + 1; in < tokens_.size() && tokens_[in].text != ")"; ++in)
          check_pair(before(at), after(in));
    }
  }

 private:
  using Operand = const ConditionToken*;  // null: nothing of which anything is known

  Operand operand_at(std::size_t at) const {
    if (at >= tokens_.size()) return nullptr;
    const ConditionToken& token = tokens_[at];
    const bool is_any = token.is == ConditionToken::literal || token.is == ConditionToken::quoted ||
                        token.is == ConditionToken::number ||
                        (token.is == ConditionToken::word && is_among(names_, token.text));
    return is_any ? &token : nullptr;
  }
  Operand before(std::size_t at) const {
    do --at;
    while (at < tokens_.size() && (tokens_[at].text == ")" || is_keyword(tokens_[at], "not")));
    return operand_at(at);
  }
  Operand after(std::size_t at) const {
    do ++at;
    while (at < tokens_.size() && (tokens_[at].text == "(" || tokens_[at].text == "+" || tokens_[at].text == "-"));
    return operand_at(at);
  }

  /// What the operand may be.
  std::set<std::string> sorts(const ConditionToken& token) const {
    if (token.is == ConditionToken::number) return {kPlainNumber};
    const std::string inside =
        token.is == ConditionToken::word ? token.text : token.text.substr(1, token.text.size() - 2);
    if (token.is == ConditionToken::literal) return {sort_of_value(inside)};
    std::set<std::string> out;
    const auto n = static_cast<std::size_t>(std::ranges::find(names_, inside) - names_.begin());
    if (n < values_.size())
      for (const std::string& value : values_[n]) out.insert(sort_of_value(value));
    return out;
  }

  static bool is_quantity(const std::string& sort) { return !sort.empty() && sort != kPlainNumber; }

  void check_computed(Operand operand) const {
    if (operand == nullptr) return;
    for (const std::string& sort : sorts(*operand))
      if (is_quantity(sort))
        throw ConfigError("computes with " + operand->text + ", " + sort + "; a quantity can only be compared");
  }
  void check_pair(Operand left, Operand right) const {
    if (left == nullptr || right == nullptr) return;
    for (const std::string& a : sorts(*left))
      for (const std::string& b : sorts(*right))
        if (a != b && !a.empty() && !b.empty() && (is_quantity(a) || is_quantity(b)))
          throw ConfigError("compares " + left->text + ", " + a + ", with " + right->text + ", " + b +
                            "; compare what is of one kind, as in strategy.bucket > '2 MiB' or total_s > 3600");
  }

  const std::vector<std::string>& names_;
  const std::vector<std::vector<std::string>>& values_;
  std::vector<ConditionToken> tokens_;
};

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
  for (const ConditionToken& token : split_condition(condition)) {
    const bool known = token.is == ConditionToken::word && is_among(names, token.text);
    if (token.is == ConditionToken::word && !known && token.text.find('.') != std::string::npos)
      throw ConfigError("no column '" + token.text + "'" + name_hint(token.text, names));
    out += known ? sql_name(token.text) : token.text;
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

Condition::Condition(const std::string& text, const std::vector<std::string>& names,
                     const std::vector<std::vector<std::string>>& values)
    : database_(std::make_shared<Database>("", Database::Access::memory)) {
  std::string columns;
  for (std::size_t n = 0; n < names.size(); ++n)
    columns += (n == 0 ? "" : ", ") + ("?" + std::to_string(n + 1)) + " COLLATE quantity AS " + sql_name(names[n]);
  database_->only_select();
  try {
    statement_ = std::make_shared<Statement>(*database_, "SELECT (" + quoted_names(text, names) + "\n) FROM (SELECT " +
                                                             (columns.empty() ? "1" : columns) + ")");
    KindCheck(text, names, values).check();
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
