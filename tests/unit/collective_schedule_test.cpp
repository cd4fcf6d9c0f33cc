// The schedules that textbooks draw, drawn again: a few ranks, every message by hand. A collective's rounds follow from
// its definition (e.g. recursive halving: partner r xor P/2 first, half of what is left each time), so sizes below are
// the vector divided by hand; there are no measured numbers here.
#include <catch2/catch.hpp>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/collective.hpp"
#include "sim/collectives/algorithms.hpp"

namespace epocast::collective_schedule_test {

using A = CollectiveAlgorithm;
using Op = CollectiveOp;

namespace {

std::vector<double> bytes_of_uniform_rounds(const CollectiveSchedule& schedule) {
  std::vector<double> bytes;
  for (const Round& round : schedule.rounds) {
    REQUIRE(round.is_uniform());
    REQUIRE(round.messages.empty());
    bytes.push_back(round.bytes_per_rank());
  }
  return bytes;
}

void check_messages(const Round& round, const std::vector<Message>& expected) {
  REQUIRE(round.messages.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(round.messages[i].from == expected[i].from);
    CHECK(round.messages[i].to == expected[i].to);
    CHECK(round.messages[i].bytes == Approx(expected[i].bytes));
    CHECK(round.messages[i].reduce_bytes == Approx(expected[i].reduce_bytes));
  }
}

}  // namespace

TEST_CASE("every collective name parses to what prints it", "[collective]") {
  for (const std::string& name : collective_op_names()) CHECK(to_string(parse_collective_op(name)) == name);
  for (const std::string& name : collective_algorithm_names())
    CHECK(to_string(parse_collective_algorithm(name)) == name);
  for (const std::string& name : collective_level_names()) CHECK(to_string(parse_collective_level(name)) == name);
  CHECK(collective_op_names().size() == 8);
  CHECK(collective_algorithm_names().size() == 9);
  CHECK(to_string(A::double_binary_tree) == std::string("double_binary_tree"));
  CHECK(to_string(CollectiveLevel::automatic) == std::string("auto"));
}

TEST_CASE("an unknown collective name is named in the error", "[collective]") {
  CHECK_THROWS_WITH(parse_collective_algorithm("rign"),
                    Catch::Contains("'rign'") && Catch::Contains("algorithm") && Catch::Contains("ring"));
  CHECK_THROWS_AS(parse_collective_op("all_reduc"), std::invalid_argument);
  CHECK_THROWS_AS(parse_collective_level(""), std::invalid_argument);
}

TEST_CASE("every operation has a default algorithm that can carry it out", "[collective]") {
  for (const std::string& name : collective_op_names()) {
    const Op op = parse_collective_op(name);
    CHECK(supports(default_algorithm(op), op));
  }
  CHECK_FALSE(supports(A::ring, Op::all_to_all));
  CHECK(default_algorithm(Op::all_to_all) == A::pairwise);
}

TEST_CASE("bad requests are refused, by schedule and closed form alike", "[collective]") {
  const AlphaBetaGamma link{1e-6, 1e-9, 0};
  CHECK_THROWS_WITH(make_schedule(Op::all_to_all, A::ring, 4, 1), "ring cannot carry out all_to_all; pairwise can");
  CHECK_THROWS_AS(closed_form_time(Op::all_to_all, A::ring, 4, 1, link), std::invalid_argument);
  CHECK_THROWS_WITH(make_schedule(Op::all_reduce, A::ring, 1, 1), Catch::Contains("at least 2 ranks, not 1"));
  CHECK_THROWS_AS(make_schedule(Op::all_reduce, A::ring, 4, -1), std::invalid_argument);
  CHECK_THROWS_AS(closed_form_time(Op::all_reduce, A::ring, 4, std::nan(""), link), std::invalid_argument);
  CHECK_THROWS_AS(make_schedule(Op::all_reduce, A::hierarchical, 4, 1, {0, 0, 1}), std::invalid_argument);
  CHECK_THROWS_WITH(make_schedule(Op::all_reduce, A::hierarchical, 5, 1, {7, 7, 7, 9, 9}),
                    Catch::Contains("node 7 has 3") && Catch::Contains("node 9 has 2"));
  CHECK_THROWS_AS(closed_form_time(Op::all_reduce, A::hierarchical, 3, 1, link, {0, 0, 1}), std::invalid_argument);
}

TEST_CASE("a ring all_reduce is two passes of P-1 steps of n/P", "[collective]") {
  // P = 4, n = 100: block 25; the first pass reduces.
  const CollectiveSchedule schedule = make_schedule(Op::all_reduce, A::ring, 4, 100);
  REQUIRE(bytes_of_uniform_rounds(schedule) == std::vector<double>{25, 25});
  CHECK(schedule.rounds[0].repeat == 3);
  CHECK(schedule.rounds[0].reduce_bytes_per_rank() == 25);
  CHECK(schedule.rounds[1].repeat == 3);
  CHECK(schedule.rounds[1].reduce_bytes_per_rank() == 0);
  std::vector<Message> messages;
  for_each_message(schedule.rounds[0], 4, [&](const Message& message) { messages.push_back(message); });
  check_messages({.messages = messages}, {{0, 1, 25, 25}, {1, 2, 25, 25}, {2, 3, 25, 25}, {3, 0, 25, 25}});
}

TEST_CASE("uniform rounds keep large schedules small", "[collective]") {
  const CollectiveSchedule ring = make_schedule(Op::all_reduce, A::ring, 8192, 8192);
  CHECK(ring.rounds.size() == 2);
  CHECK(ring.message_count() == 2LL * 8191 * 8192);
  const CollectiveSchedule pairwise = make_schedule(Op::all_to_all, A::pairwise, 8192, 8192);
  CHECK(pairwise.rounds.size() == 8191);
  CHECK(pairwise.total_bytes() == Approx(8191.0 * 8192));
  for (const Round& round : pairwise.rounds) REQUIRE(round.is_uniform());
}

TEST_CASE("pairwise exchange meets another partner in every round", "[collective]") {
  for (const Op op : {Op::all_to_all, Op::reduce_scatter, Op::all_gather}) {
    const CollectiveSchedule schedule = make_schedule(op, A::pairwise, 4, 40);
    CHECK(bytes_of_uniform_rounds(schedule) == std::vector<double>{10, 10, 10});
    for (int k = 1; k < 4; ++k) CHECK(schedule.rounds[static_cast<std::size_t>(k - 1)].permutation->operand == k);
  }
}

TEST_CASE("a permutation's source undoes its target", "[collective]") {
  for (int rank = 0; rank < 8; ++rank) {
    for (int operand = 1; operand < 8; ++operand) {
      const Permutation shift{Permutation::Kind::shift, operand, 1, 0};
      const Permutation exchange{Permutation::Kind::exclusive_or, operand, 1, 0};
      REQUIRE(shift.source_of(shift.target_of(rank, 8), 8) == rank);
      REQUIRE(exchange.source_of(exchange.target_of(rank, 8), 8) == rank);
      REQUIRE(exchange.target_of(rank, 8) == exchange.source_of(rank, 8));
    }
  }
}

TEST_CASE("halving-doubling halves towards near partners, then doubles back", "[collective]") {
  const CollectiveSchedule schedule = make_schedule(Op::all_reduce, A::halving_doubling, 8, 80);
  CHECK(bytes_of_uniform_rounds(schedule) == std::vector<double>{40, 20, 10, 10, 20, 40});
  CHECK(schedule.rounds[0].permutation->operand == 4);
  CHECK(schedule.rounds[5].permutation->operand == 4);
  CHECK(schedule.rounds[2].reduce_bytes_per_rank() == 10);
  CHECK(schedule.rounds[3].reduce_bytes_per_rank() == 0);
}

TEST_CASE("halving-doubling folds the ranks beyond a power of two", "[collective]") {
  // P = 3: rank 2 folds into 0; the core {0, 1} exchanges halves twice; 0 returns the result.
  const CollectiveSchedule schedule = make_schedule(Op::all_reduce, A::halving_doubling, 3, 60);
  REQUIRE(schedule.rounds.size() == 4);
  check_messages(schedule.rounds[0], {{2, 0, 60, 60}});
  check_messages(schedule.rounds[1], {{0, 1, 30, 30}, {1, 0, 30, 30}});
  check_messages(schedule.rounds[2], {{0, 1, 30, 0}, {1, 0, 30, 0}});
  check_messages(schedule.rounds[3], {{0, 2, 60, 0}});

  // reduce_scatter: rank 0 stands for blocks 0 and 2, so it receives 40 and sends rank 1 its 20.
  const CollectiveSchedule scattered = make_schedule(Op::reduce_scatter, A::halving_doubling, 3, 60);
  REQUIRE(scattered.rounds.size() == 3);
  check_messages(scattered.rounds[1], {{0, 1, 20, 20}, {1, 0, 40, 40}});
  check_messages(scattered.rounds[2], {{0, 2, 20, 0}});
}

TEST_CASE("a binomial broadcast doubles the informed ranks", "[collective]") {
  const CollectiveSchedule schedule = make_schedule(Op::broadcast, A::binomial_tree, 6, 10);
  REQUIRE(schedule.rounds.size() == 3);
  check_messages(schedule.rounds[0], {{0, 4, 10, 0}});
  check_messages(schedule.rounds[1], {{0, 2, 10, 0}});  // 4 has no 6
  check_messages(schedule.rounds[2], {{0, 1, 10, 0}, {2, 3, 10, 0}, {4, 5, 10, 0}});
}

TEST_CASE("binomial scatter sends whole subtrees", "[collective]") {
  const CollectiveSchedule schedule = make_schedule(Op::scatter, A::binomial_tree, 6, 60);
  check_messages(schedule.rounds[0], {{0, 4, 20, 0}});  // blocks 4 and 5
  check_messages(schedule.rounds[1], {{0, 2, 20, 0}});
  check_messages(schedule.rounds[2], {{0, 1, 10, 0}, {2, 3, 10, 0}, {4, 5, 10, 0}});
}

TEST_CASE("Bruck sends the blocks whose number has the round's bit", "[collective]") {
  // Of 0..4: bit 0 in {1, 3}, bit 1 in {2, 3}, bit 2 in {4}.
  CHECK(bytes_of_uniform_rounds(make_schedule(Op::all_to_all, A::bruck, 5, 50)) == std::vector<double>{20, 20, 10});
  CHECK(bytes_of_uniform_rounds(make_schedule(Op::all_gather, A::bruck, 5, 50)) == std::vector<double>{10, 20, 10});
}

TEST_CASE("a reduction of Bruck's is his all-gather backwards, and both make an all-reduce", "[collective]") {
  using Bytes = std::vector<double>;
  CHECK(bytes_of_uniform_rounds(make_schedule(Op::reduce_scatter, A::bruck, 5, 50)) == Bytes{10, 20, 10});
  CHECK(bytes_of_uniform_rounds(make_schedule(Op::all_reduce, A::bruck, 5, 50)) == Bytes{10, 20, 10, 10, 20, 10});
  CHECK(bytes_of_uniform_rounds(make_schedule(Op::all_reduce, A::bruck, 6, 60)) == Bytes{20, 20, 10, 10, 20, 20});
  const CollectiveSchedule schedule = make_schedule(Op::all_reduce, A::bruck, 6, 60);
  CHECK(schedule.rounds.front().permutation->operand == 4);  // the last that an all-gather would send to
  CHECK(schedule.rounds.front().reduce_bytes_per_rank() == 20);
  CHECK(schedule.rounds.back().permutation->operand == 2);
  CHECK(schedule.rounds.back().reduce_bytes_per_rank() == 0);
}

TEST_CASE("hierarchical rings run inside nodes and across equal local indices", "[collective]") {
  // Ranks 0..3 on nodes a b a b: nodes {0, 2} and {1, 3}; across {0, 1} and {2, 3}.
  const CollectiveSchedule schedule = make_schedule(Op::all_reduce, A::hierarchical, 4, 40, {5, 3, 5, 3});
  REQUIRE(schedule.rounds.size() == 4);
  check_messages(schedule.rounds[0], {{0, 2, 20, 20}, {2, 0, 20, 20}, {1, 3, 20, 20}, {3, 1, 20, 20}});
  check_messages(schedule.rounds[1], {{0, 1, 10, 10}, {1, 0, 10, 10}, {2, 3, 10, 10}, {3, 2, 10, 10}});
  check_messages(schedule.rounds[2], {{0, 1, 10, 0}, {1, 0, 10, 0}, {2, 3, 10, 0}, {3, 2, 10, 0}});
  check_messages(schedule.rounds[3], {{0, 2, 20, 0}, {2, 0, 20, 0}, {1, 3, 20, 0}, {3, 1, 20, 0}});
}

TEST_CASE("hierarchical with one rank per node, or one node, is the ring", "[collective]") {
  for (const std::vector<int>& node_of : {std::vector<int>{}, {3, 1, 2, 0}, {6, 6, 6, 6}}) {
    const CollectiveSchedule schedule = make_schedule(Op::all_reduce, A::hierarchical, 4, 100, node_of);
    CHECK(bytes_of_uniform_rounds(schedule) == std::vector<double>{25, 25});
    CHECK(schedule.rounds[1].repeat == 3);
  }
}

TEST_CASE("a double binary tree of three ranks", "[collective]") {
  // Trees 1 -> {0, 2} and 0 -> {2, 1}. 16 bytes make one chunk of 8 per tree. Every tree edge is there once each way.
  const CollectiveSchedule schedule = make_schedule(Op::all_reduce, A::double_binary_tree, 3, 16);
  CHECK(schedule.message_count() == 8);
  CHECK(schedule.total_bytes() == Approx(2 * 2 * 16));
}

TEST_CASE("double binary trees are cut into as many chunks as cost least", "[collective]") {
  // A link of 1 s latency that takes 1 s for 32 KiB, as is assumed. Both passes of a tree of depth d, of c chunks each
  // way, take 2 c + 2 d - 2 messages of n / 2c bytes; other algorithms choose by that too.
  for (const int ranks : {3, 8, 16, 1000})
    for (const double units : {2.0, 9.0, 50.0, 700.0}) {
      const int d = collectives::double_tree_depth(CollectiveOp::all_reduce, ranks);
      const auto cost = [&](int c) { return (2 * c + 2 * d - 2) * (1 + units / (2 * c)); };
      const int chosen = collectives::double_tree_chunks(CollectiveOp::all_reduce, ranks, units * 32 * 1024);
      CAPTURE(ranks, units, chosen);
      for (int c = 1; c <= 64; ++c) CHECK(cost(chosen) <= cost(c) * 1.02);  // whole chunks: the square root is rounded
    }
  CHECK(collectives::double_tree_chunks(CollectiveOp::all_reduce, 8, 9 * 32 * 1024) == 3);  // depth 3: c^2 = 2 x 9 / 2
}

TEST_CASE("closed form of a ring all_reduce of 100 MiB over 1024 ranks", "[collective]") {
  // 2 * 1023 steps of 2.5 us + 102400 B / 1 GB/s = 104.9 us: 2046 * 104.9 us = 0.2146254 s.
  const double time = closed_form_time(Op::all_reduce, A::ring, 1024, 100.0 * 1024 * 1024, {2.5e-6, 1e-9, 0});
  CHECK(time == Approx(0.2146254).epsilon(1e-12));
}

TEST_CASE("closed forms of the worked FC1 example", "[collective]") {
  // Lee 2020, equations 4.2-4.9 for FC1 of VGG-16: n = 25088 * 4096 * 4 B, alpha = 2 us, 1/beta = 8 GB/s. At P = 4,
  // Rabenseifner: 4 alpha + 2 * 3/4 n beta = 8 us + 77.070336 ms; whole vector log2 P times: 2 alpha + 2 n beta.
  const AlphaBetaGamma link{2e-6, 1 / 8e9, 0};
  const double bytes = 25088.0 * 4096 * 4;
  CHECK(closed_form_time(Op::all_reduce, A::halving_doubling, 4, bytes, link) == Approx(77.078336e-3).epsilon(1e-12));
  CHECK(closed_form_time(Op::all_reduce, A::recursive_doubling, 4, bytes, link) ==
        Approx(4e-6 + 102.760448e-3).epsilon(1e-12));
}

}  // namespace epocast::collective_schedule_test
