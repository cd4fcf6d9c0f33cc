// A loop is periodic when every instance ends each iteration one and the same shift after an earlier one, for as long
// as the graph remembers. The detector is fed end times that follow a rule, and must find the rule or keep silent.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "sim/steady_state.hpp"

namespace epocast::steady_state_test {

namespace {

struct Found {
  std::int64_t after = 0;  ///< iterations completed when the period was found
  Period period;
};

/// End time of an instance's iteration [s].
using Rule = std::function<double(std::uint64_t instance, std::int64_t iteration)>;

/// Feeds a detector in order of time; what it finds first.
std::optional<Found> watch(std::uint64_t instances, std::uint32_t max_lag, std::int64_t iterations, const Rule& end) {
  struct Event {
    double time;
    std::uint64_t instance;
    std::int64_t iteration;
  };
  std::vector<Event> events;
  for (std::uint64_t i = 0; i < instances; ++i)
    for (std::int64_t k = 0; k < iterations; ++k) events.push_back({end(i, k), i, k});
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.time < b.time; });
  SteadyStateDetector detector(instances, max_lag);
  for (const Event& event : events) {
    if (!detector.record(event.instance, event.iteration, event.time)) continue;
    if (const auto period = detector.find_period()) return Found{detector.completed(), *period};
  }
  return std::nullopt;
}

double real(std::int64_t k) { return static_cast<double>(k); }

}  // namespace

TEST_CASE("a loop of period 1 is found after its transient", "[steady_state]") {
  // Two instances, 0.25 s apart, 2 s per iteration, but the first iteration takes 5 s: ends 5, 7, 9, ... The shift from
  // the first to the second is already 2 s, so with a memory of one iteration two iterations tell.
  const Rule rule = [](std::uint64_t i, std::int64_t k) { return 5 + 2 * real(k) + 0.25 * static_cast<double>(i); };
  const auto found = watch(2, 1, 20, rule);
  REQUIRE(found);
  CHECK(found->period.length == 1);
  CHECK(found->period.shift == Approx(2).epsilon(1e-15));
  CHECK(found->period.iteration() == Approx(2).epsilon(1e-15));
  CHECK(found->after == 2);
}

TEST_CASE("the longest lag must be seen to repeat", "[steady_state]") {
  // With edges of lag 4, what happens depends on the four iterations before: four shifts in a row, five iterations.
  const Rule rule = [](std::uint64_t i, std::int64_t k) { return 2 * real(k) + 0.25 * static_cast<double>(i); };
  const auto found = watch(2, 4, 20, rule);
  REQUIRE(found);
  CHECK(found->after == 5);
}

TEST_CASE("loops of period 2 and 3 are found as such", "[steady_state]") {
  // Iterations take a, b, a, b, ... or a, b, c, a, b, c, ...; each instance is one step further than the one before it,
  // or else all instances would have the same shift at once, and what has happened once would have to happen again.
  const std::vector<double> steps{1.0, 1.5, 1.1};
  for (const std::int64_t length : {2, 3}) {
    const auto step = [&](std::int64_t k) { return steps[static_cast<std::size_t>(k % length)]; };
    double shift = 0;
    for (std::int64_t k = 0; k < length; ++k) shift += step(k);
    const auto found = watch(2, 1, 40, [&](std::uint64_t i, std::int64_t k) {
      double end = 0;
      for (std::int64_t j = 0; j <= k; ++j) end += step(j + static_cast<std::int64_t>(i));
      return end;
    });
    REQUIRE(found);
    CHECK(found->period.length == length);
    CHECK(found->period.shift == Approx(shift).epsilon(1e-14));
    // Each iteration of the period must repeat once after the clock has passed a power of two. The first row to be
    // compared is number 2, at 3.5 s, or 3, at 4.6 s; the first rows beyond 4 and 8 s are numbers 3 and 6.
    CHECK(found->after == (length == 2 ? 3 : 6) + length);
  }
}

TEST_CASE("what repeats only as long as the clock rounds alike is not periodic", "[steady_state]") {
  // Iterations of 0.5 and 0.75 s in turn, all of them exact in binary; but whenever the clock passes a power of two up
  // to 64 s, a tie falls the other way and one iteration takes
  // longer by 1e-5 of that date.
  const auto disturbed = [](double last) {
    return [last](std::uint64_t i, std::int64_t k) {
      const double end = 10 + 1.25 * real(k / 2) + 0.5 * real(k % 2) + 0.125 * static_cast<double>(i);
      double ties = 0;
      for (double date = 16; date <= last; date *= 2) ties += end >= date ? 1e-5 * date : 0;
      return end + ties;
    };
  };
  const auto found = watch(2, 2, 400, disturbed(64));
  REQUIRE(found);
  CHECK(found->period.length == 2);
  CHECK(found->period.shift == Approx(1.25).epsilon(1e-13));
  // What was seen between 64 and 128 s goes on. Row k ends after 10 + 0.625 k s or a little more, so row 189 is the
  // first beyond 128 s.
  CHECK(found->after == 189 + 2);
  // With the next one disturbed too, there is nothing to be found until 256 s: (256 - 10) / 0.625 = 393.6.
  CHECK(watch(2, 2, 390, disturbed(128)) == std::nullopt);
  // A period of 1 does not come from meetings in turn.
  const auto steady = watch(
      2, 2, 400, [](std::uint64_t i, std::int64_t k) { return 33 + 0.5 * real(k) + 0.125 * static_cast<double>(i); });
  REQUIRE(steady);
  CHECK(steady->after == 3);
}

TEST_CASE("a shift that is common to all instances must also stay the same", "[steady_state]") {
  // Iterations of 7 and 6.1 s in turn, for all instances alike: possible with edges of lag 2. Period 2, not 1.
  const auto found = watch(3, 2, 40, [](std::uint64_t i, std::int64_t k) {
    return 13.1 * real(k / 2) + (k % 2 == 0 ? 0 : 7) + 0.1 * static_cast<double>(i);
  });
  REQUIRE(found);
  CHECK(found->period.length == 2);
  CHECK(found->period.shift == Approx(13.1).epsilon(1e-14));
  // And iterations that get longer and longer, for ever.
  CHECK_FALSE(watch(3, 2, 200, [](std::uint64_t, std::int64_t k) { return real(k) + 0.0005 * real(k) * real(k); }));
}

TEST_CASE("a loop that converges geometrically is not periodic before it has converged", "[steady_state]") {
  // Ends 2 k + 2^-k: the shift differs from 2 s by 2^-k/2, which falls below 1e-11 of it after about 35 iterations;
  // from then on extrapolating it is off by less than 1e-11.
  const auto found = watch(2, 1, 60, [](std::uint64_t i, std::int64_t k) {
    return 2 * real(k) + (i == 0 ? std::ldexp(1.0, -static_cast<int>(k)) : 0.5);
  });
  REQUIRE(found);
  CHECK(found->after > 30);
  CHECK(std::abs(found->period.iteration() / 2 - 1) < 1e-11);
}

TEST_CASE("instances that drift apart are not periodic", "[steady_state]") {
  // One instance gains 1e-6 s per iteration on the other: they have no common shift, ever.
  CHECK_FALSE(
      watch(2, 1, 300, [](std::uint64_t i, std::int64_t k) { return (i == 0 ? 1.0 : 1.000001) * real(k) + 0.5; }));
}

TEST_CASE("a loop that slows down for ever is not periodic", "[steady_state]") {
  // Iterations of 1, 1.001, 1.002 ... s; the second instance is an iteration ahead of the first, so their shifts
  // differ.
  CHECK_FALSE(watch(2, 1, 200, [](std::uint64_t i, std::int64_t k) {
    const double tick = real(k) + static_cast<double>(i);
    return tick + 0.0005 * tick * tick;
  }));
}

TEST_CASE("a producer that runs ahead must be seen to repeat beside its consumers' first iterations",
          "[steady_state]") {
  // Instance 0 leads by 5 iterations (a pipeline five stages deep); instance 1 starts when 0 has made 5 and then shares
  // a link with it: from there on every iteration takes both of them 1.5 s instead of 1 s. When instance 1 has done two
  // iterations, rows 0 and 1 lie one common shift of 1 s apart; a detector that trusted them would extrapolate 1 s.
  const auto found = watch(2, 1, 60, [](std::uint64_t i, std::int64_t k) {
    const double tick = real(i == 0 ? k : k + 5);  // moves 1 s each up to tick 6, 1.5 s each after
    return std::min(tick, 6.0) + 1.5 * std::max(0.0, tick - 6) + 0.1 * static_cast<double>(i);
  });
  REQUIRE(found);
  CHECK(found->period.iteration() == Approx(1.5).epsilon(1e-12));
}

TEST_CASE("a leader that is one iteration ahead need only have done what it had done one shift before",
          "[steady_state]") {
  // Instance 0 ends iteration k at k s, instance 1 at k + 1.5 s. When it ends iteration 1, at 2.5 s, 0 has ended
  // iteration 2, one shift after iteration 1: all since 1.5 s is a copy.
  const auto after = [](const Rule& rule) {
    const auto found = watch(2, 1, 20, rule);
    return found && found->period.length == 1 && found->period.shift == Approx(1) ? found->after : -1;
  };
  const Rule steady = [](std::uint64_t i, std::int64_t k) { return real(k) + (i == 0 ? 0 : 1.5); };
  CHECK(after(steady) == 2);
  // 0's iteration 2 comes late: the rows of iterations 1 and 2 differ, and those of 2 and 3; 3 and 4 do not.
  const Rule late = [&](std::uint64_t i, std::int64_t k) { return steady(i, k) + (i == 0 && k == 2 ? 0.2 : 0); };
  CHECK(after(late) == 5);
  // Two iterations ahead it is seen to repeat as others are, one period more.
  const Rule far = [](std::uint64_t i, std::int64_t k) { return real(k) + (i == 0 ? 0 : 2.5); };
  CHECK(after(far) == 5);
}

TEST_CASE("an instance far ahead of the others ends the comparison, not the count", "[steady_state]") {
  // Instance 0 is free-running and 100 times as fast: it leaves the 64 iterations that are kept. Iterations are
  // complete when instance 1 has ended them, and all of them count.
  SteadyStateDetector detector(2, 1);
  for (std::int64_t k = 0; k < 100; ++k) CHECK_FALSE(detector.record(0, k, 0.01 * real(k)));
  for (std::int64_t k = 0; k < 100; ++k) {
    CHECK(detector.record(1, k, real(k)));
    CHECK(detector.completed() == k + 1);
    CHECK_FALSE(detector.find_period());
  }
}

TEST_CASE("little memory limits the length of a period, not its detection", "[steady_state]") {
  SteadyStateDetector detector(1000, 1, 1);  // room for nothing: the least that works is kept
  std::optional<Period> period;
  for (std::int64_t k = 0; k < 10 && !period; ++k)
    for (std::uint64_t i = 0; i < 1000; ++i)
      if (detector.record(i, k, real(k) + 1e-4 * static_cast<double>(i))) period = detector.find_period();
  REQUIRE(period);
  CHECK(period->length == 1);
}

}  // namespace epocast::steady_state_test
