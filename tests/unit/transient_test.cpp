// How loops without noise come to repeat. Durations and queues alone do so after finitely many iterations. Links that
// are shared fairly also let an iteration depend on the one before it by some factor: a difference dies out by halves,
// or grows until something else stops it. Dates can be derived on paper for a link with two kinds of messages.
#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/simulate.hpp"

namespace epocast::transient_test {

using testing::interval;
using testing::simulate;
using testing::Star;

namespace {

constexpr double kMs = 1e-3, kMB = 1e6;

struct MeetingMessages {
  int regular = 1, free = 1;  ///< messages of either kind
  double tick = 0;            ///< ms from one start of the regular ones to the next
  double pause = 0;           ///< ms from the end of the regular ones to the start of the free ones
  int parts = 1;              ///< of the pause: so many pauses can be under way, one behind the other
};

/// Device 0 sends `regular` messages of 1 MB on every tick of a clock, and `free` ones of 1.1 MB some time after it has
/// sent the regular ones of the iteration before. They share its uplink, of 1 MB/ms.
///
/// Let the free ones start b ms after a tick. If the regular ones r are under way then, each has b/r MB behind it, and
/// from there on gets one of r + f shares. So they end (r + f) - (f/r) b after the tick (the free ones are larger, and
/// so still there), and the free ones of the next iteration start at b' = (r + f) - (f/r) b + pause - tick. A
/// difference in b is multiplied by -f/r. If the regular ones have ended before, after r ms, then b' = r + pause -
/// tick. In iteration 0 all start at once: b = 0.
CyclicTaskGraph meeting_messages(const MeetingMessages& m) {
  const auto devices = [](int first, int count) {
    std::vector<DeviceId> some(static_cast<std::size_t>(count));
    std::iota(some.begin(), some.end(), first);
    return some;
  };
  CyclicTaskGraph graph;
  const GroupId sender = graph.add_group("sender", {0}), regular = graph.add_group("regular", devices(1, m.regular)),
                free = graph.add_group("free", devices(1 + m.regular, m.free));
  const auto queue = [&](const char* name) {
    return graph.add_queue(name, sender, QueueRole::compute, Discipline::program_order);
  };
  const TaskId tick = graph.compute(queue("clock"), Seconds(m.tick * kMs), {"tick", ""});
  const TaskId send = graph.transfer(regular, QueueId::none, {sender, regular, Bytes(1 * kMB)}, {"send regular", ""});
  const TaskId meet = graph.transfer(free, QueueId::none, {sender, free, Bytes(1.1 * kMB)}, {"send free", ""});
  graph.after(tick, send, 1);
  TaskId before = send;
  for (int part = 0; part < m.parts; ++part) {
    const TaskId pause = graph.compute(queue("pauses"), Seconds(m.pause / m.parts * kMs), {"pause", ""});
    graph.after(before, pause);
    before = pause;
  }
  graph.after(before, meet, 1);
  return graph;
}

}  // namespace

TEST_CASE("a difference that sharing halves dies out below rounding before a loop is periodic", "[steady_state]") {
  // r = 2, f = 1: b' = 3 - b/2 + 1.9 - 4 = 0.9 - b/2, which tends to 0.6; b = 0.6 - 0.6 (-1/2)^k in iteration k. The
  // regular messages end 3 - b/2 = 2.7 + 0.3 (-1/2)^k after their tick, so that they are later than in the iteration
  // before by a tick and 0.9 (-1/2)^k ms. (All that is sent takes 3.1 of 4 ms, so that no iteration's messages meet the
  // next one's.)
  const Star star(4, 1e9, 0);
  const CyclicTaskGraph graph = meeting_messages({.regular = 2, .free = 1, .tick = 4, .pause = 1.9});
  const auto runs = simulate(star.cluster(), {{graph, {.iterations = 60, .exact = true, .record_timeline = true}},
                                              {graph, {.iterations = 60}}});
  double off = 0.3;  // ms
  for (int k = 0; k < 10; ++k, off /= -2)
    CHECK(interval(graph, runs[0], "send regular", 0, k).end == Approx((4 * k + 2.7 + off) * kMs).margin(1e-9));
  // 0.9 2^-k ms are within 1e-11 of 4 ms from k = 35 on, the 36th iteration. Of the 37th something has begun by then.
  REQUIRE(runs[1].period);
  CHECK(runs[1].period->length == 1);
  CHECK(runs[1].iterations_simulated == 37);
  CHECK(runs[1].total == Approx(runs[0].total).epsilon(1e-9));
}

TEST_CASE("where sharing doubles a difference a loop may repeat every other iteration only", "[steady_state]") {
  // r = 1, f = 2: b' = 3 - 2 b + 5.4 - 6 = 2.4 - 2 b for b up to 1, and 0.4 beyond. The one b that would repeat, 0.8,
  // is left by whoever is near it. From b = 0 on: 2.4, 0.4, 1.6, 0.4, 1.6, ... The regular message ends 3 - 2 b after
  // its tick, or 1: 3, 1, 2.2, 1, 2.2, ...; and the free ones before the next tick, as they take 2.2 ms alone.
  const Star star(4, 1e9, 0);
  const CyclicTaskGraph graph = meeting_messages({.regular = 1, .free = 2, .tick = 6, .pause = 5.4, .parts = 2});
  const auto runs = simulate(star.cluster(), {{graph, {.iterations = 60, .exact = true, .record_timeline = true}},
                                              {graph, {.iterations = 60}}});
  for (int k = 1; k < 20; ++k) {
    const double end = k % 2 == 1 ? 1 : 2.2;
    CHECK(interval(graph, runs[0], "send regular", 0, k).end == Approx((6 * k + end) * kMs).margin(1e-9));
  }
  REQUIRE(runs[1].period);
  CHECK(runs[1].period->length == 2);
  CHECK(runs[1].period->shift == Approx(12 * kMs).epsilon(1e-12));
  CHECK(runs[1].total == Approx(runs[0].total).epsilon(1e-9));
}

TEST_CASE("a stage that is hardly faster than the next runs ahead for many iterations before they keep step",
          "[steady_state]") {
  // The front takes 0.93 ms, the back 1 ms, and the front may be four iterations ahead. The back, always busy, ends
  // iteration k at k + 1.93 ms. The front gains 0.07 ms per iteration, until it has to wait for the back's end of four
  // iterations before: from where k - 4 + 1.93 > 0.93 k on, k = 30 (2.07 ms of slack by 0.07 ms). Then it starts at
  // k - 2.07.
  const Star star(2, 1e9, 0);
  CyclicTaskGraph graph;
  const auto stage = [&](const char* name, DeviceId device, double time) {
    const QueueId queue =
        graph.add_queue(name, graph.add_group(name, {device}), QueueRole::compute, Discipline::program_order);
    return graph.compute(queue, Seconds(time * kMs), {name, ""});
  };
  const TaskId front = stage("front", 0, 0.93), back = stage("back", 1, 1);
  graph.after(front, back);
  graph.after(back, front, 4);
  const auto runs = simulate(star.cluster(), {{graph, {.iterations = 100, .exact = true, .record_timeline = true}},
                                              {graph, {.iterations = 100}}});
  for (const int k : {0, 10, 29, 30, 31, 99}) {
    CHECK(interval(graph, runs[0], "front", 0, k).start == Approx(std::max(0.93 * k, k - 2.07) * kMs).margin(1e-9));
    CHECK(interval(graph, runs[0], "back", 0, k).end == Approx((k + 1.93) * kMs).margin(1e-9));
  }
  // 31 is the first iteration that both end 1 ms after the one before. What an edge of lag 4 remembers takes four of
  // them, to see it beside the front up to four more, and up to five have begun when it is seen.
  REQUIRE(runs[1].period);
  CHECK(runs[1].period->length == 1);
  CHECK(runs[1].period->shift == Approx(1 * kMs).epsilon(1e-12));
  CHECK(runs[1].iterations_simulated >= 31 + 4);
  CHECK(runs[1].iterations_simulated <= 31 + 4 + 4 + 5);
  CHECK(runs[1].total == Approx(runs[0].total).epsilon(1e-9));
}

}  // namespace epocast::transient_test
