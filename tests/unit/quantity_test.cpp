#include "sim/quantity.hpp"

#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include "sim/quantity_unit.hpp"

namespace epocast::quantity_test {

namespace {

struct Case {
  const char* text;
  double si;
};

// What the parser says about bad text, or "accepted".
template <class Q>
std::string problem(Q (*parse)(std::string_view), std::string_view text) {
  try {
    parse(text);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a time is the double that its SI literal would be", "[quantity]") {
  // A correctly rounded conversion makes "2.5 us" and 2.5e-6 the same double, so == is the right comparison.
  for (const auto& [text, si] : std::vector<Case>{{"1.9 s", 1.9},
                                                  {"2.5us", 2.5e-6},
                                                  {"2.5 \u00b5s", 2.5e-6},
                                                  {"2.5 \u03bcs", 2.5e-6},
                                                  {"  7 ms ", 7e-3},
                                                  {"350 ns", 350e-9},
                                                  {"1.5 min", 90},
                                                  {"2 h", 7200},
                                                  {"1 d", 86400},
                                                  {"0 s", 0},
                                                  {"1e-3 s", 1e-3},
                                                  {"1E3s", 1000},
                                                  {"+4 s", 4},
                                                  {"-3 s", -3},
                                                  {".5 s", 0.5},
                                                  {"5. s", 5}}) {
    CAPTURE(text);
    CHECK(parse_seconds(text).value == si);
  }
}

TEST_CASE("decimal and binary prefixes never mix, and b is an eighth of B", "[quantity]") {
  // GB is 1e9 B and GiB 2^30 B: taking one for the other is an error of 7.4 % in every prediction.
  for (const auto& [text, si] : std::vector<Case>{{"512 B", 512},
                                                  {"16 GB", 16e9},
                                                  {"16 GiB", 16.0 * 1073741824},
                                                  {"1kB", 1000},
                                                  {"1 KB", 1000},
                                                  {"1 KiB", 1024},
                                                  {"1.5 MiB", 1572864},
                                                  {"3 TB", 3e12},
                                                  {"2 TiB", 2199023255552.0},
                                                  {"1 PB", 1e15},
                                                  {"1 PiB", 1125899906842624.0},
                                                  {"8 b", 1},
                                                  {"8 kb", 1000},
                                                  {"8 Kb", 1000},
                                                  {"1 Gb", 125e6},
                                                  {"8 Kib", 1024}}) {
    CAPTURE(text);
    CHECK(parse_bytes(text).value == si);
  }
  for (const auto& [text, si] : std::vector<Case>{{"12.5 GB/s", 12.5e9},
                                                  {"100 Gb/s", 12.5e9},
                                                  {"100Gb/s", 12.5e9},
                                                  {"10 Mb/s", 1.25e6},
                                                  {"1 GiB/s", 1073741824},
                                                  {"64 b/s", 8}}) {
    CAPTURE(text);
    CHECK(parse_bytes_per_second(text).value == si);
  }
}

TEST_CASE("computation is counted in FLOP and its rate in FLOP/s", "[quantity]") {
  CHECK(parse_flop("30.9 GFLOP").value == 30.9e9);
  CHECK(parse_flop("12 FLOP").value == 12);
  CHECK(parse_flop("1 kFLOP").value == 1000);
  CHECK(parse_flop("2 EFLOP").value == 2e18);
  CHECK(parse_flop_per_second("8.96 TFLOP/s").value == 8.96e12);
  CHECK(parse_flop_per_second("312TFLOP/s").value == 312e12);
}

TEST_CASE("a quantity that cannot be read says what is wrong and what would be right", "[quantity]") {
  const auto seconds = [](std::string_view text) { return problem(parse_seconds, text); };
  const auto bytes = [](std::string_view text) { return problem(parse_bytes, text); };
  const auto rate = [](std::string_view text) { return problem(parse_bytes_per_second, text); };
  const auto flop = [](std::string_view text) { return problem(parse_flop, text); };
  const auto flop_rate = [](std::string_view text) { return problem(parse_flop_per_second, text); };

  SECTION("no unit, also for zero: a bare number has no dimension") {
    CHECK(bytes("16") == "missing unit: write '16 GB', not '16'");
    CHECK(seconds("1.9") == "missing unit: write '1.9 s', not '1.9'");
    CHECK(rate("12.5") == "missing unit: write '12.5 GB/s', not '12.5'");
    CHECK(flop("3") == "missing unit: write '3 GFLOP', not '3'");
    CHECK(flop_rate("3") == "missing unit: write '3 GFLOP/s', not '3'");
    CHECK(seconds("0") == "missing unit: write '0 s', not '0'");
  }
  SECTION("an unknown unit, with the nearest or all known ones") {
    CHECK(rate("16 GBs") == "unknown unit 'GBs' (did you mean 'GB/s'?)");
    CHECK(rate("100 Gbps") == "unknown unit 'Gbps' (did you mean 'Gb/s'?)");
    CHECK(seconds("16 parsecs") == "unknown unit 'parsecs' (accepted: ns, us, ms, s, min, h, d)");
    CHECK(seconds("16 x") == "unknown unit 'x' (accepted: ns, us, ms, s, min, h, d)");
    CHECK(seconds("16 MS") == "unknown unit 'MS' (did you mean 'ms'?)");
  }
  SECTION("case decides between bits and bytes, so it is never guessed") {
    CHECK(bytes("16 gb") == "unknown unit 'gb' (did you mean 'GB' or 'Gb'?)");
    CHECK(bytes("16 mB") == "unknown unit 'mB' (did you mean 'MB' or 'Mb'?)");
  }
  SECTION("a unit of another dimension") {
    CHECK(rate("16 GB") ==
          "unit 'GB' is for an amount of data, expected a data rate (B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, "
          "or bits: b/s, kb/s, Mb/s, Gb/s, Tb/s)");
    CHECK(seconds("16 GB") == "unit 'GB' is for an amount of data, expected a time (ns, us, ms, s, min, h, d)");
    CHECK_THAT(flop("1 TFLOP/s"), Catch::StartsWith("unit 'TFLOP/s' is for a computation rate, expected an amount"));
  }
  SECTION("FLOPS means two things in the literature") {
    CHECK(flop_rate("8.96 TFLOPS") == "unit 'TFLOPS' is ambiguous: write 'TFLOP/s' for a rate, 'TFLOP' for an amount");
    CHECK(flop("3 FLOPs") == "unit 'FLOPs' is ambiguous: write 'FLOP/s' for a rate, 'FLOP' for an amount");
  }
  SECTION("not a number") {
    CHECK(bytes("") == "expected an amount of data such as '16 GB', got nothing");
    CHECK(bytes("   ") == "expected an amount of data such as '16 GB', got nothing");
    CHECK(bytes("GB") == "expected an amount of data such as '16 GB', got 'GB'");
    CHECK(seconds("fast") == "expected a time such as '16 s', got 'fast'");
    CHECK(seconds("+-1 s") == "expected a time such as '16 s', got '+-1 s'");
    CHECK(seconds("nan s") == "'nan s' is not a finite number");
    CHECK(seconds("inf s") == "'inf s' is not a finite number");
    CHECK(seconds("-infinity s") == "'-infinity s' is not a finite number");
    CHECK(seconds("1e999 s") == "number out of range in '1e999 s'");
    CHECK(bytes("1e300 PB") == "number out of range in '1e300 PB'");
    CHECK(bytes("1,000 GB") == "'1,000 GB' is not one number and one unit, such as '16 GB'");
    CHECK(seconds("1 2 s") == "'1 2 s' is not one number and one unit, such as '16 s'");
    CHECK(seconds("0x10 s") != "accepted");
  }
}

TEST_CASE("quantities print with four significant digits in the unit a person would choose", "[quantity]") {
  struct Printed {
    std::string got;
    const char* want;
  };
  for (const auto& [got, want] : std::vector<Printed>{
           {to_string(Seconds(0)), "0 s"},
           {to_string(Seconds(-0.0)), "0 s"},
           {to_string(Seconds(1.2344)), "1.234 s"},
           {to_string(Seconds(-3)), "-3.000 s"},
           {to_string(Seconds(0.0123)), "12.30 ms"},
           {to_string(Seconds(0.99997)), "1.000 s"},  // rounding moves it to the next unit
           {to_string(Seconds(0.99994)), "999.9 ms"},
           {to_string(Seconds(2.5e-6)), "2.500 us"},
           {to_string(Seconds(2.5e-10)), "0.2500 ns"},
           {to_string(Seconds(1e-15)), "1e-06 ns"},
           {to_string(Seconds(59.9)), "59.90 s"},
           {to_string(Seconds(90)), "1.500 min"},
           {to_string(Seconds(5400)), "1.500 h"},
           {to_string(Seconds(86400 * 12.34)), "12.34 d"},
           {to_string(Seconds(std::numeric_limits<double>::infinity())), "inf s"},
           {to_string(Bytes(0)), "0 B"},
           {to_string(Bytes(100)), "100 B"},
           {to_string(Bytes(1023)), "1023 B"},
           {to_string(Bytes(0.5)), "0.5000 B"},
           {to_string(Bytes(1024)), "1.000 KiB"},
           {to_string(Bytes(1024 * 1023.99)), "1.000 MiB"},
           {to_string(Bytes(138357544 * 4.0)), "527.8 MiB"},  // VGG16's parameters in float32
           {to_string(BytesPerSecond(12.5e9)), "12.50 GB/s"},
           {to_string(BytesPerSecond(1.25e6)), "1.250 MB/s"},
           {to_string(Flop(12)), "12 FLOP"},
           {to_string(Flop(30.94e9)), "30.94 GFLOP"},
           {to_string(FlopPerSecond(312e12)), "312.0 TFLOP/s"},
           {to_string(FlopPerSecond(1e30)), "1e+12 EFLOP/s"},
       }) {
    CHECK(got == want);
  }
}

TEST_CASE("texts that are quantities of any kind", "[quantity]") {
  const auto is = [](const std::string& text, const std::string& kind, double value) {
    const std::optional<AnyQuantity> quantity = any_quantity(text);
    return quantity && quantity->kind == kind && quantity->value == value;
  };
  CHECK(is("1 MiB", "an amount of data", 1048576));
  CHECK(is("2.5us", "a time", 2.5e-6));
  CHECK(is("100 Gb/s", "a data rate", 12.5e9));
  CHECK(is("1 kW", "a power", 1000));
  CHECK(is("20$", "a number of $", 20));
  CHECK(is("500 steps", "a number of steps", 500));
  for (const char* text : {"", "12", "1e6", "ring", "1f1b", "2bw", "inf", "infinite", "10.0.0.1", "4 x 4", "- 4 kB"}) {
    CAPTURE(text);
    CHECK_FALSE(any_quantity(text));
  }
}

TEST_CASE("arithmetic keeps dimensions", "[quantity]") {
  // 1 GB over 100 Gb/s: 1e9 B / 12.5e9 B/s = 0.08 s.
  CHECK((parse_bytes("1 GB") / parse_bytes_per_second("100 Gb/s")).value == Approx(0.08));
  CHECK((parse_flop("2 TFLOP") / parse_flop_per_second("4 TFLOP/s")).value == 0.5);
  CHECK((Bytes(10) / Seconds(2)).value == 5);
  CHECK((BytesPerSecond(10) * Seconds(2)).value == 20);
  CHECK(Bytes(10) / Bytes(4) == 2.5);
  CHECK(Seconds(1) + 2 * Seconds(3) == Seconds(7));
  CHECK(Seconds(1) < Seconds(2));
}

}  // namespace epocast::quantity_test
