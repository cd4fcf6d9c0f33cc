#include "workloads/integer_expression.hpp"

#include <cctype>
#include <charconv>
#include <stdexcept>

#include "workloads/shape_inference.hpp"

namespace epocast {
namespace {

constexpr int kMaxNesting = 50;

/// Recursive descent: a sum of products of factors.
class Parser {
 public:
  Parser(std::string_view text, const std::function<std::int64_t(const std::string&)>& lookup)
      : text_(text), lookup_(lookup) {}

  std::int64_t parse() {
    const std::int64_t value = sum();
    if (peek() != '\0') fail("'" + std::string(1, peek()) + "' cannot stand there");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw std::invalid_argument("$(" + std::string(text_) + "): " + problem);
  }

  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  std::int64_t checked(std::int64_t value) const {
    if (value > kMaxCount || value < -kMaxCount) fail("the result exceeds 2^53");
    return value;
  }

  std::int64_t sum() {
    std::int64_t value = product();
    for (;;) {
      if (accept('+')) {
        value = checked(value + product());
      } else if (accept('-')) {
        value = checked(value - product());
      } else {
        return value;
      }
    }
  }

  std::int64_t product() {
    std::int64_t value = factor();
    for (;;) {
      if (accept('*')) {
        const std::int64_t other = factor();
        // Neither exceeds 2^53, so that doubles tell safely whether the product does.
        if (static_cast<double>(value) * static_cast<double>(other) > 1e16 ||
            static_cast<double>(value) * static_cast<double>(other) < -1e16)
          fail("the result exceeds 2^53");
        value = checked(value * other);
      } else if (accept('/')) {
        const std::int64_t other = factor();
        if (other == 0) fail("division by zero");
        if (value % other != 0) fail(std::to_string(value) + " / " + std::to_string(other) + " is not a whole number");
        value /= other;
      } else {
        return value;
      }
    }
  }

  std::int64_t factor() {
    if (++nesting_ > kMaxNesting) fail("nests too deeply");
    const std::int64_t value = unary();
    --nesting_;
    return value;
  }

  std::int64_t unary() {
    if (accept('-')) return -factor();
    if (accept('(')) {
      const std::int64_t value = sum();
      if (!accept(')')) fail("a parenthesis is not closed");
      return value;
    }
    const char c = peek();
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) return number();
    if (is_name_character(c)) return checked(lookup_(name()));
    if (c == '\0') fail("ends where a number or a name is due");
    fail("'" + std::string(1, c) + "' cannot stand there");
  }

  static bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

  std::int64_t number() {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc{}) fail("a number exceeds 2^53");
    at_ = static_cast<std::size_t>(end - text_.data());
    return checked(value);
  }

  std::string name() {
    const std::size_t first = at_;
    while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
    return std::string(text_.substr(first, at_ - first));
  }

  std::string_view text_;
  const std::function<std::int64_t(const std::string&)>& lookup_;
  std::size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace

std::int64_t evaluate_expression(std::string_view text, const std::function<std::int64_t(const std::string&)>& lookup) {
  return Parser(text, lookup).parse();
}

}  // namespace epocast
