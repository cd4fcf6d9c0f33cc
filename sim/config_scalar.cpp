// Typed scalars of ConfigNode.

#include <charconv>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "sim/config.hpp"
#include "sim/config_tree.hpp"
#include "sim/quantity_unit.hpp"

namespace epocast {

using NodeKind = detail::ConfigTree::Kind;

namespace {

// A limit as a person writes it: "0", "65536", "0.05".
std::string plain_number(double value) {
  return value == std::round(value) && std::abs(value) < 1e15 ? fmt::format("{:.0f}", value) : fmt::format("{}", value);
}

// A limit with its unit and no idle zeros: "1.500 GB/s" becomes "1.5 GB/s".
template <class Q>
std::string plain_quantity(double value) {
  std::string text = to_string(Q(value));
  const std::size_t space = text.find(' ');
  const std::string number = text.substr(0, space);
  if (number.find('.') == std::string::npos) return text;
  const std::size_t last = number.find_last_not_of('0');
  return number.substr(0, number[last] == '.' ? last : last + 1) + text.substr(space);
}

template <class Format>
void check_range(const ConfigNode& node, double value, std::string_view written, Range range, Format format) {
  if (value >= range.min && value <= range.max) return;
  const Range unlimited;
  std::string allowed;
  if (range.min > unlimited.min && range.max < unlimited.max) {
    allowed = fmt::format("between {} and {}", format(range.min), format(range.max));
  } else if (value < range.min) {
    allowed = fmt::format(">= {}", format(range.min));
  } else {
    allowed = fmt::format("<= {}", format(range.max));
  }
  throw node.error(fmt::format("must be {}, got {}", allowed, detail::shorten(written)));
}

template <class Parse>
auto as_quantity(const ConfigNode& node, const std::string& text, Parse parse, Range range) {
  using Q = decltype(parse(std::string_view()));
  Q value;
  try {
    value = parse(text);
  } catch (const std::invalid_argument& e) {
    throw node.error(e.what());
  }
  check_range(node, value.value, text, range, plain_quantity<Q>);
  return value;
}

// As objects, because there are two functions of each name.
constexpr auto kSeconds = [](auto... arguments) { return parse_seconds(arguments...); };
constexpr auto kBytes = [](auto... arguments) { return parse_bytes(arguments...); };

/// A parser that proposes the unit of the value that the key has if it is left out: who writes `bucket: 25` means MiB.
template <class Q, class Parse>
auto like(Q fallback, Parse parse) {
  return [=](std::string_view text) {
    return fallback.value > 0 ? parse(text, std::string_view(unit_of(fallback))) : parse(text);
  };
}

// from_chars takes no '+' of its own.
std::string_view without_plus(std::string_view text) {
  return text.starts_with('+') && !text.starts_with("+-") ? text.substr(1) : text;
}

/// The whole number that 1.28e6 is. No exponent: none, as 4.0 may be meant as a measure.
std::optional<double> scientific_whole_number(std::string_view digits) {
  if (digits.find_first_of("eE") == std::string_view::npos) return std::nullopt;
  double value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (status != std::errc{} || end != digits.data() + digits.size() || value != std::floor(value)) return std::nullopt;
  return value;
}

}  // namespace

const std::string& ConfigNode::scalar(std::string_view expected) const {
  if (is_null()) throw error(fmt::format("has no value, expected {}", expected));
  if (!is_scalar()) throw error(fmt::format("expected {}, got {}", expected, detail::describe(tree_->kind)));
  return tree_->text;
}

std::string ConfigNode::as_string() const { return scalar("text"); }

bool ConfigNode::as_bool() const {
  const std::string& text = scalar("true or false");
  if (!tree_->quoted && (text == "true" || text == "True" || text == "TRUE")) return true;
  if (!tree_->quoted && (text == "false" || text == "False" || text == "FALSE")) return false;
  throw error(fmt::format("expected true or false, got {}{}", detail::quote(text), tree_->quoted ? " in quotes" : ""));
}

std::int64_t ConfigNode::as_int(Range range) const {
  const std::string& text = scalar("a whole number");
  const std::string_view digits = without_plus(text);
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const std::optional<double> scientific = scientific_whole_number(digits);
  const bool plain = status != std::errc::invalid_argument && end == digits.data() + digits.size();
  if (tree_->quoted || (!plain && !scientific))
    throw error(
        fmt::format("expected a whole number, got {}{}", detail::quote(text), tree_->quoted ? " in quotes" : ""));
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (plain ? status == std::errc::result_out_of_range : std::abs(*scientific) >= kTwoTo63)
    throw error(fmt::format("{} does not fit into 64 bits", detail::quote(text)));
  if (!plain) value = static_cast<std::int64_t>(*scientific);
  check_range(*this, static_cast<double>(value), text, range, plain_number);
  return value;
}

double ConfigNode::as_double(Range range) const {
  const std::string& text = scalar("a number");
  const std::string_view digits = without_plus(text);
  double value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (tree_->quoted || status == std::errc::invalid_argument || end != digits.data() + digits.size() ||
      !std::isfinite(value))
    throw error(fmt::format("expected a number, got {}{}", detail::quote(text), tree_->quoted ? " in quotes" : ""));
  if (status == std::errc::result_out_of_range)
    throw error(fmt::format("{} is beyond what a double holds", detail::quote(text)));
  check_range(*this, value, text, range, plain_number);
  return value;
}

Seconds ConfigNode::as_seconds(Range range) const {
  return as_quantity(*this, scalar("a time such as '16 s'"), kSeconds, range);
}

Bytes ConfigNode::as_bytes(Range range) const {
  return as_quantity(*this, scalar("an amount of data such as '16 GB'"), kBytes, range);
}

BytesPerSecond ConfigNode::as_bytes_per_second(Range range) const {
  return as_quantity(*this, scalar("a data rate such as '16 GB/s'"), parse_bytes_per_second, range);
}

FlopPerSecond ConfigNode::as_flop_per_second(Range range) const {
  return as_quantity(*this, scalar("a computation rate such as '16 GFLOP/s'"), parse_flop_per_second, range);
}

Flop ConfigNode::as_flop(Range range) const {
  return as_quantity(*this, scalar("an amount of computation such as '16 GFLOP'"), parse_flop, range);
}

// has() alone would take `noise: 3` for a map that leaves every key at its default.
std::string ConfigNode::get(std::string_view key, const char* fallback) const {
  return has_in_map(key) ? at(key).as_string() : fallback;
}

bool ConfigNode::get(std::string_view key, bool fallback) const {
  return has_in_map(key) ? at(key).as_bool() : fallback;
}

std::int64_t ConfigNode::get(std::string_view key, std::int64_t fallback, Range range) const {
  return has_in_map(key) ? at(key).as_int(range) : fallback;
}

std::int64_t ConfigNode::get(std::string_view key, int fallback, Range range) const {
  return get(key, std::int64_t{fallback}, range);
}

double ConfigNode::get(std::string_view key, double fallback, Range range) const {
  return has_in_map(key) ? at(key).as_double(range) : fallback;
}

Seconds ConfigNode::get(std::string_view key, Seconds fallback, Range range) const {
  if (!has_in_map(key)) return fallback;
  const ConfigNode node = at(key);
  return as_quantity(node, node.scalar("a time such as '16 s'"), like(fallback, kSeconds), range);
}

Bytes ConfigNode::get(std::string_view key, Bytes fallback, Range range) const {
  if (!has_in_map(key)) return fallback;
  const ConfigNode node = at(key);
  return as_quantity(node, node.scalar("an amount of data such as '16 GB'"), like(fallback, kBytes), range);
}

bool ConfigNode::has_in_map(std::string_view key) const {
  if (is_null()) throw error("has no value, expected a map");
  if (!is_map()) throw error(fmt::format("expected a map, got {}", detail::describe(tree_->kind)));
  return has(key);
}

}  // namespace epocast
