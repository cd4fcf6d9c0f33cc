// A calendar: tokens come out by date, and by insertion within a date. Checked against the plainest queue there is, a
// stable sort.
#include <catch2/catch.hpp>

#include <algorithm>
#include <random>
#include <vector>

#include "sim/simgrid/timer_queue.hpp"

namespace epocast::timer_queue_test {

namespace {

using Tokens = std::vector<std::uint64_t>;

/// Takes out everything that is due on the first date.
Tokens pop_date(TimerQueue& queue) {
  Tokens out;
  const double date = queue.next_date();
  while (!queue.empty() && queue.next_date() == date)
    queue.pop_bucket([&](std::uint64_t token) { out.push_back(token); });
  return out;
}

}  // namespace

TEST_CASE("timers fire by date, and by insertion within a date", "[timer_queue]") {
  TimerQueue queue;
  CHECK(queue.empty());
  queue.push(2.0, 20);
  queue.push(1.0, 10);
  queue.push(2.0, 21);
  queue.push(1.0, 11);
  CHECK(queue.next_date() == 1.0);
  CHECK(pop_date(queue) == Tokens{10, 11});
  CHECK(queue.next_date() == 2.0);
  CHECK(pop_date(queue) == Tokens{20, 21});
  CHECK(queue.empty());
}

TEST_CASE("a timer set while its own date fires comes after those that were there", "[timer_queue]") {
  TimerQueue queue;
  queue.push(1.0, 1);
  queue.push(1.0, 2);
  Tokens fired;
  queue.pop_bucket([&](std::uint64_t token) {
    fired.push_back(token);
    if (token == 1) queue.push(1.0, 3);
  });
  CHECK(fired == Tokens{1, 2});
  REQUIRE_FALSE(queue.empty());
  CHECK(queue.next_date() == 1.0);
  CHECK(pop_date(queue) == Tokens{3});
}

TEST_CASE("the calendar agrees with a stable sort", "[timer_queue]") {
  // Few distinct dates in some rounds (buckets), many in others (cache collisions: 256 lines); pushes and pops in turn,
  // so that nodes and buckets are used again.
  std::mt19937_64 random(5);
  for (const int dates : {3, 100, 5000}) {
    INFO(dates << " dates");
    TimerQueue queue;
    struct Entry {
      double date;
      std::uint64_t token;
    };
    std::vector<Entry> expected;
    std::uint64_t token = 0;
    double now = 0;
    for (int step = 0; step < 300; ++step) {
      for (int k = 0; k < 20; ++k) {
        const double date = now + static_cast<double>(random() % static_cast<std::uint64_t>(dates)) * 0.1;
        queue.push(date, token);
        expected.push_back({date, token++});
      }
      std::stable_sort(expected.begin(), expected.end(),
                       [](const Entry& a, const Entry& b) { return a.date < b.date; });
      for (int k = 0; k < 2 && !queue.empty(); ++k) {
        now = queue.next_date();
        REQUIRE(now == expected.front().date);
        const auto end = std::find_if(expected.begin(), expected.end(), [&](const Entry& e) { return e.date != now; });
        Tokens due;
        for (auto it = expected.begin(); it != end; ++it) due.push_back(it->token);
        REQUIRE(pop_date(queue) == due);
        expected.erase(expected.begin(), end);
      }
    }
    while (!queue.empty()) {
      for (const std::uint64_t out : pop_date(queue)) {
        REQUIRE(out == expected.front().token);
        expected.erase(expected.begin());
      }
    }
    CHECK(expected.empty());
  }
}

}  // namespace epocast::timer_queue_test
