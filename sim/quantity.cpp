#include "sim/quantity.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/config.hpp"
#include "sim/quantity_unit.hpp"

namespace epocast {

namespace {

// SI value = number * multiply / divide. Dividing by an exact power of ten rounds once, so "2.5 us" is the
// double 2.5e-6; multiplying by 1e-6, which no double holds exactly, would round twice.
struct Unit {
  std::string name;
  double multiply = 1;
  double divide = 1;
};

// What one physical dimension is called and how it is written.
struct Dimension {
  std::string noun;      // "a data rate"
  std::string usual;     // the unit to propose when none was given
  std::string accepted;  // for people
  std::vector<Unit> units;
};

using Prefix = std::pair<const char*, double>;
constexpr std::array<Prefix, 8> kDecimalPrefixes = {
    {{"", 1}, {"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}, {"E", 1e18}}};
constexpr std::array<Prefix, 5> kBinaryPrefixes = {
    {{"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}}};

std::vector<Unit> data_units(const std::string& suffix) {
  std::vector<Unit> units;
  for (const auto& [base, per_byte] : {std::pair<const char*, double>{"B", 1}, {"b", 8}}) {
    for (const auto& [prefix, factor] : kDecimalPrefixes) units.push_back({prefix + (base + suffix), factor, per_byte});
    for (const auto& [prefix, factor] : kBinaryPrefixes) units.push_back({prefix + (base + suffix), factor, per_byte});
  }
  return units;
}

std::vector<Unit> flop_units(const std::string& suffix) {
  std::vector<Unit> units;
  for (const auto& [prefix, factor] : kDecimalPrefixes) units.push_back({prefix + ("FLOP" + suffix), factor});
  return units;
}

const Dimension& time_dimension() {
  static const Dimension dimension{"a time",
                                   "s",
                                   "ns, us, ms, s, min, h, d",
                                   {{"s"},
                                    {"ms", 1, 1e3},
                                    {"us", 1, 1e6},
                                    {"\u00b5s", 1, 1e6},
                                    {"\u03bcs", 1, 1e6},
                                    {"ns", 1, 1e9},
                                    {"min", 60},
                                    {"h", 3600},
                                    {"d", 86400}}};
  return dimension;
}

const Dimension& data_dimension() {
  static const Dimension dimension{"an amount of data", "GB",
                                   "B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB, or bits: b, kb, Mb, Gb, Tb",
                                   data_units("")};
  return dimension;
}

const Dimension& data_rate_dimension() {
  static const Dimension dimension{
      "a data rate", "GB/s", "B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, or bits: b/s, kb/s, Mb/s, Gb/s, Tb/s",
      data_units("/s")};
  return dimension;
}

const Dimension& flop_dimension() {
  static const Dimension dimension{"an amount of computation", "GFLOP",
                                   "FLOP, kFLOP, MFLOP, GFLOP, TFLOP, PFLOP, EFLOP", flop_units("")};
  return dimension;
}

const Dimension& flop_rate_dimension() {
  static const Dimension dimension{"a computation rate", "GFLOP/s",
                                   "FLOP/s, kFLOP/s, MFLOP/s, GFLOP/s, TFLOP/s, PFLOP/s, EFLOP/s", flop_units("/s")};
  return dimension;
}

const Unit* find_unit(const Dimension& dimension, std::string_view name) {
  const auto it = std::ranges::find(dimension.units, name, &Unit::name);
  return it == dimension.units.end() ? nullptr : &*it;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

[[noreturn]] void fail_unit(const Dimension& wanted, std::string_view unit) {
  // FLOPS is read as both an amount and a rate, so it is never guessed.
  for (const std::string_view tail : {"FLOPS", "FLOPs", "Flops", "flops"}) {
    if (!unit.ends_with(tail) || unit.size() > tail.size() + 1) continue;
    const std::string prefix(unit.substr(0, unit.size() - tail.size()));
    throw std::invalid_argument(fmt::format(
        "unit '{}' is ambiguous: write '{}FLOP/s' for a rate, '{}FLOP' for an amount", unit, prefix, prefix));
  }
  for (const Dimension* other :
       {&time_dimension(), &data_dimension(), &data_rate_dimension(), &flop_dimension(), &flop_rate_dimension()}) {
    if (find_unit(*other, unit) != nullptr)
      throw std::invalid_argument(
          fmt::format("unit '{}' is for {}, expected {} ({})", unit, other->noun, wanted.noun, wanted.accepted));
  }
  std::vector<std::string> names;
  std::vector<std::string> other_case;  // 'gb' may mean GB or Gb: name both, guess neither
  for (const Unit& candidate : wanted.units) {
    names.push_back(candidate.name);
    if (equal_ignoring_case(candidate.name, unit)) other_case.push_back("'" + candidate.name + "'");
  }
  std::string hint;
  if (!other_case.empty()) {
    hint = fmt::format("did you mean {}?", fmt::join(other_case, " or "));
  } else if (const std::string nearest = nearest_name(unit, names); !nearest.empty()) {
    hint = fmt::format("did you mean '{}'?", nearest);
  } else {
    hint = "accepted: " + wanted.accepted;
  }
  throw std::invalid_argument(fmt::format("unknown unit '{}' ({})", unit, hint));
}

double parse(const Dimension& wanted, std::string_view text, std::string_view usual) {
  const std::string_view whole = trim(text);
  if (whole.empty())
    throw std::invalid_argument(fmt::format("expected {} such as '16 {}', got nothing", wanted.noun, usual));

  constexpr std::size_t kLongest = 60;  // messages below repeat the text
  if (whole.size() > kLongest)
    throw std::invalid_argument(
        fmt::format("expected {} such as '16 {}', got {} characters", wanted.noun, usual, whole.size()));

  // from_chars takes no '+' of its own; "+-1" must stay an error.
  const std::string_view digits = whole.starts_with('+') && !whole.starts_with("+-") ? whole.substr(1) : whole;
  double number = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (status == std::errc::invalid_argument)
    throw std::invalid_argument(fmt::format("expected {} such as '16 {}', got '{}'", wanted.noun, usual, whole));
  if (status == std::errc::result_out_of_range)
    throw std::invalid_argument(fmt::format("number out of range in '{}'", whole));
  if (!std::isfinite(number)) throw std::invalid_argument(fmt::format("'{}' is not a finite number", whole));

  const std::string_view unit = trim(std::string_view(end, digits.data() + digits.size()));
  if (unit.empty())
    throw std::invalid_argument(fmt::format("missing unit: write '{} {}', not '{}'", whole, usual, whole));
  // "1,000 GB" and "1 2 GB" are broken numbers rather than strange units.
  if (unit.find_first_of("0123456789,_.") != std::string_view::npos)
    throw std::invalid_argument(fmt::format("'{}' is not one number and one unit, such as '16 {}'", whole, usual));
  const Unit* found = find_unit(wanted, unit);
  if (found == nullptr) fail_unit(wanted, unit);
  const double value = number * found->multiply / found->divide;
  if (!std::isfinite(value)) throw std::invalid_argument(fmt::format("number out of range in '{}'", whole));
  return value;
}

double parse(const Dimension& wanted, std::string_view text) { return parse(wanted, text, wanted.usual); }

// One step of a human-readable scale, in SI units.
struct Step {
  double size;
  const char* name;
};

// `whole_base`: the first step counts things, so whole numbers of it are printed without decimals.
template <std::size_t N>
std::string human(double value, const std::array<Step, N>& steps, bool whole_base) {
  const char* base = steps[0].name;
  for (const Step& step : steps)
    if (step.size == 1) base = step.name;
  if (!std::isfinite(value) || value == 0) return fmt::format("{:g} {}", value == 0 ? 0.0 : value, base);

  // The step is chosen after rounding to four digits: 999.97 ms is 1.000 s, not 1000 ms.
  const auto rounded_in = [&](const Step& step) {
    const double scaled = std::abs(value) / step.size;
    const double unit = std::pow(10.0, std::floor(std::log10(scaled)) - 3);
    return unit > 0 && std::isfinite(unit) ? std::round(scaled / unit) * unit : scaled;
  };
  const Step* step = &steps[0];
  for (const Step& candidate : steps)
    if (rounded_in(candidate) >= 1 - 1e-9) step = &candidate;

  const double scaled = value / step->size;
  const double shown = rounded_in(*step);
  if (shown < 1e-3 || shown >= 1e5) return fmt::format("{:.4g} {}", scaled, step->name);
  if (whole_base && step == &steps[0] && scaled == std::round(scaled))
    return fmt::format("{:.0f} {}", scaled, step->name);
  const int decimals = std::max(0, 3 - static_cast<int>(std::floor(std::log10(shown * (1 + 1e-9)))));
  return fmt::format("{:.{}f} {}", scaled, decimals, step->name);
}

}  // namespace

Seconds parse_seconds(std::string_view text) { return Seconds(parse(time_dimension(), text)); }
Bytes parse_bytes(std::string_view text) { return Bytes(parse(data_dimension(), text)); }
Seconds parse_seconds(std::string_view text, std::string_view usual) {
  return Seconds(parse(time_dimension(), text, usual));
}
Bytes parse_bytes(std::string_view text, std::string_view usual) { return Bytes(parse(data_dimension(), text, usual)); }
double parse_quantity(std::string_view text, const std::string& noun, const std::vector<UnitFactor>& units) {
  Dimension dimension{noun, units.front().name, "", {}};
  for (const UnitFactor& unit : units) {
    dimension.accepted += (dimension.accepted.empty() ? "" : ", ") + unit.name;
    dimension.units.push_back({unit.name, unit.factor});
  }
  return parse(dimension, text);
}

const std::vector<UnitFactor>& power_units() {
  static const std::vector<UnitFactor> units{{"W", 1}, {"kW", 1e3}, {"MW", 1e6}};
  return units;
}

const std::vector<UnitFactor>& emission_units() {
  static const std::vector<UnitFactor> units{{"g/kWh", 1}, {"kg/kWh", 1e3}, {"kg/MWh", 1}};
  return units;
}

std::optional<AnyQuantity> any_quantity(std::string_view text) {
  const std::string_view whole = trim(text);
  double number = 0;
  const auto [end, status] = std::from_chars(whole.data(), whole.data() + whole.size(), number);
  if (status != std::errc() || !std::isfinite(number)) return std::nullopt;
  const std::string_view rest(end, whole.data() + whole.size()), unit = trim(rest);
  if (unit.empty()) return std::nullopt;
  for (const Dimension* dimension :
       {&time_dimension(), &data_dimension(), &data_rate_dimension(), &flop_dimension(), &flop_rate_dimension()})
    if (const Unit* found = find_unit(*dimension, unit))
      return AnyQuantity{dimension->noun, number * found->multiply / found->divide};
  for (const auto& [noun, units] : {std::pair("a power", &power_units()), {"emitted CO2", &emission_units()}})
    if (const auto found = std::ranges::find(*units, unit, &UnitFactor::name); found != units->end())
      return AnyQuantity{noun, number * found->factor};
  const auto first = static_cast<unsigned char>(unit.front());
  const bool is_word = std::isalpha(first) != 0, is_symbol = unit.front() == '$' || first >= 0x80;
  const bool plain = unit.find_first_of("0123456789,_.") == std::string_view::npos;
  if (!plain || !(is_symbol || (is_word && rest.front() == ' '))) return std::nullopt;
  return AnyQuantity{"a number of " + std::string(unit), number};
}

BytesPerSecond parse_bytes_per_second(std::string_view text) {
  return BytesPerSecond(parse(data_rate_dimension(), text));
}
Flop parse_flop(std::string_view text) { return Flop(parse(flop_dimension(), text)); }
FlopPerSecond parse_flop_per_second(std::string_view text) { return FlopPerSecond(parse(flop_rate_dimension(), text)); }

std::string to_string(Seconds t) {
  static constexpr std::array<Step, 7> kSteps = {
      {{1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"}, {60, "min"}, {3600, "h"}, {86400, "d"}}};
  return human(t.value, kSteps, false);
}

std::string to_string(Bytes b) {
  static constexpr std::array<Step, 6> kSteps = {
      {{1, "B"}, {0x1p10, "KiB"}, {0x1p20, "MiB"}, {0x1p30, "GiB"}, {0x1p40, "TiB"}, {0x1p50, "PiB"}}};
  return human(b.value, kSteps, true);
}

std::string to_string(BytesPerSecond r) {
  static constexpr std::array<Step, 6> kSteps = {
      {{1, "B/s"}, {1e3, "kB/s"}, {1e6, "MB/s"}, {1e9, "GB/s"}, {1e12, "TB/s"}, {1e15, "PB/s"}}};
  return human(r.value, kSteps, false);
}

std::string to_string(Flop f) {
  static constexpr std::array<Step, 7> kSteps = {
      {{1, "FLOP"}, {1e3, "kFLOP"}, {1e6, "MFLOP"}, {1e9, "GFLOP"}, {1e12, "TFLOP"}, {1e15, "PFLOP"}, {1e18, "EFLOP"}}};
  return human(f.value, kSteps, true);
}

std::string to_string(FlopPerSecond r) {
  static constexpr std::array<Step, 7> kSteps = {{{1, "FLOP/s"},
                                                  {1e3, "kFLOP/s"},
                                                  {1e6, "MFLOP/s"},
                                                  {1e9, "GFLOP/s"},
                                                  {1e12, "TFLOP/s"},
                                                  {1e15, "PFLOP/s"},
                                                  {1e18, "EFLOP/s"}}};
  return human(r.value, kSteps, false);
}

}  // namespace epocast
