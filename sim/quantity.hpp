#pragma once
// Physical quantities with their dimension in the type. Everything is SI inside: seconds, bytes, FLOP.

#include <compare>
#include <string>
#include <string_view>

namespace epocast {

/// A double that carries its dimension. `Tag` names the dimension; same-tag arithmetic only.
template <class Tag>
struct Quantity {
  double value = 0.0;

  constexpr Quantity() = default;
  constexpr explicit Quantity(double v) : value(v) {}

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value + b.value); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value - b.value); }
  friend constexpr Quantity operator*(Quantity a, double k) { return Quantity(a.value * k); }
  friend constexpr Quantity operator*(double k, Quantity a) { return Quantity(a.value * k); }
  friend constexpr Quantity operator/(Quantity a, double k) { return Quantity(a.value / k); }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value / b.value; }
  constexpr Quantity& operator+=(Quantity o) {
    value += o.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    value -= o.value;
    return *this;
  }
  constexpr Quantity& operator*=(double k) {
    value *= k;
    return *this;
  }
};

using Seconds = Quantity<struct SecondsTag>;
using Bytes = Quantity<struct BytesTag>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;
using Flop = Quantity<struct FlopTag>;
using FlopPerSecond = Quantity<struct FlopPerSecondTag>;

constexpr Seconds operator/(Bytes b, BytesPerSecond rate) { return Seconds(b.value / rate.value); }
constexpr Seconds operator/(Flop f, FlopPerSecond rate) { return Seconds(f.value / rate.value); }
constexpr BytesPerSecond operator/(Bytes b, Seconds t) { return BytesPerSecond(b.value / t.value); }
constexpr FlopPerSecond operator/(Flop f, Seconds t) { return FlopPerSecond(f.value / t.value); }
constexpr Bytes operator*(BytesPerSecond rate, Seconds t) { return Bytes(rate.value * t.value); }

/// Parses "16 GB", "2.5us", "100 Gb/s", "1.9 s", "8.96 TFLOP/s". Decimal prefixes are powers of 1000, binary ones
/// (KiB, MiB, GiB, TiB) powers of 1024; `b` is a bit and `B` a byte. The unit is required.
/// Throws std::invalid_argument naming the problem and the accepted units when the text is not a quantity of the
/// wanted dimension or the number is not finite.
Seconds parse_seconds(std::string_view text);
Bytes parse_bytes(std::string_view text);
BytesPerSecond parse_bytes_per_second(std::string_view text);
Flop parse_flop(std::string_view text);
FlopPerSecond parse_flop_per_second(std::string_view text);

/// Human-readable text with three to four significant digits, e.g. "1.234 s", "527.8 MiB", "12.50 GB/s".
std::string to_string(Seconds t);
std::string to_string(Bytes b);
std::string to_string(BytesPerSecond r);
std::string to_string(Flop f);
std::string to_string(FlopPerSecond r);

}  // namespace epocast
