#include "platforms/units.hpp"

#include <charconv>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "platforms/xml_source.hpp"
#include "sim/config.hpp"

namespace epocast {

namespace {

struct Dimension {
  std::string noun;
  std::string usual;     // the unit to propose when none was given
  std::string accepted;  // for people
  double min, max;       // SI
  std::string range;     // the same for people
  std::map<std::string, double, std::less<>> units;
};

std::map<std::string, double, std::less<>> scaled(const std::string& unit, double value, bool binary) {
  std::map<std::string, double, std::less<>> out{{unit, value}};
  double decimal_factor = value;
  for (const char* prefix : {"k", "M", "G", "T", "P", "E", "Z", "Y"}) out[prefix + unit] = decimal_factor *= 1e3;
  double binary_factor = value;
  if (binary)
    for (const char* prefix : {"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}) out[prefix + unit] = binary_factor *= 0x1p10;
  return out;
}

const Dimension& speed_dimension() {
  static const Dimension dimension = [] {
    Dimension d{"a speed", "Gf", "f, kf, Mf, Gf, Tf, Pf", 1e3, 1e18, "1kf to 1Ef", scaled("f", 1, false)};
    double factor = 1;
    for (const char* prefix : {"", "kilo", "mega", "giga", "tera", "peta", "exa"}) {
      d.units[prefix + std::string("flops")] = factor;
      factor *= 1e3;
    }
    return d;
  }();
  return dimension;
}

const Dimension& bandwidth_dimension() {
  static const Dimension dimension = [] {
    Dimension d{"a bandwidth",
                "GBps",
                "Bps, kBps, MBps, GBps, TBps, MiBps, GiBps, or bits: Mbps, Gbps, Tbps",
                1,
                1e15,
                "1Bps to 1PBps",
                scaled("Bps", 1, true)};
    d.units.merge(scaled("bps", 0.125, true));
    return d;
  }();
  return dimension;
}

const Dimension& latency_dimension() {
  static const Dimension dimension{"a latency",
                                   "us",
                                   "ps, ns, us, ms, s",
                                   0,
                                   10,
                                   "0 to 10s",
                                   {{"s", 1},
                                    {"ms", 1e-3},
                                    {"us", 1e-6},
                                    {"ns", 1e-9},
                                    {"ps", 1e-12},
                                    {"m", 60},
                                    {"h", 3600},
                                    {"d", 86400},
                                    {"w", 604800}}};
  return dimension;
}

// The unit in SimGrid's spelling if it is one in the usual spelling of people: " GB/s" is GBps, "TFLOP/s" is Tf.
std::string respell(std::string_view unit) {
  std::string out;
  for (const char c : unit)
    if (c != ' ' && c != '\t') out += c;
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"FLOP/s", "f"},
                                 {"FLOPS", "f"},
                                 {"FLOPs", "f"},
                                 {"flop/s", "f"},
                                 {"Flops", "f"},
                                 {"/s", "ps"}})
    if (out.ends_with(from)) out.replace(out.size() - from.size(), from.size(), to);
  if (out.starts_with("K") && !out.starts_with("Ki")) out[0] = 'k';
  return out;
}

double parse(const Dimension& wanted, std::string_view text) {
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status == std::errc::invalid_argument)
    throw std::invalid_argument(
        fmt::format("expected {} such as '1{}', got {}", wanted.noun, wanted.usual, quote(text)));
  if (status != std::errc() || !std::isfinite(number))
    throw std::invalid_argument(fmt::format("number out of range in {}", quote(text)));
  const std::string_view digits(text.data(), static_cast<std::size_t>(end - text.data()));
  const std::string_view unit = text.substr(digits.size());

  double factor = 1;
  if (const auto found = wanted.units.find(unit); found != wanted.units.end()) {
    factor = found->second;
  } else if (unit.empty()) {
    if (number != 0)
      throw std::invalid_argument(fmt::format("missing unit: write '{0}{1}', not '{0}'", text, wanted.usual));
  } else if (const std::string spelling = respell(unit); wanted.units.contains(spelling)) {
    throw std::invalid_argument(fmt::format("unknown unit {}: SimGrid writes '{}{}'", quote(unit), digits, spelling));
  } else {
    std::vector<std::string> names;
    for (const auto& [name, value] : wanted.units) names.push_back(name);
    const std::string nearest = nearest_name(unit, names);
    const std::string hint = nearest.empty() ? "accepted: " + wanted.accepted : "did you mean '" + nearest + "'?";
    throw std::invalid_argument(fmt::format("unknown unit {} of {} ({})", quote(unit), wanted.noun, hint));
  }
  const double value = number * factor;
  if (!(value >= wanted.min && value <= wanted.max))
    throw std::invalid_argument(
        fmt::format("{} is no {} (accepted: {})", quote(text), wanted.noun.substr(2), wanted.range));
  return value;
}

}  // namespace

FlopPerSecond parse_simgrid_speed(std::string_view text) { return FlopPerSecond(parse(speed_dimension(), text)); }
BytesPerSecond parse_simgrid_bandwidth(std::string_view text) {
  return BytesPerSecond(parse(bandwidth_dimension(), text));
}
Seconds parse_simgrid_latency(std::string_view text) { return Seconds(parse(latency_dimension(), text)); }

}  // namespace epocast
