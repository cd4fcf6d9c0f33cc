// A schedule's time on an idle star is the longest path through its rounds: message alpha + beta m between two ranks
// that are both ready, then gamma on what the receiver combines. It is computed here from the messages alone, and must
// equal the closed form, which is written from the papers. The bytes that each rank sends, receives and combines are
// conserved and follow from what the operation asks for.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "sim/collective.hpp"
#include "tests/property/collective_cases.hpp"

namespace epocast::collective_property_test {

using namespace epocast::collective_cases;

namespace {

/// Time of the rounds on an idle star: no link is ever shared, as every rank sends and receives one message at most.
double lockstep_time(const CollectiveSchedule& schedule, AlphaBetaGamma link) {
  std::vector<double> ready(at(schedule.ranks), 0.0), next;
  for (const Round& round : schedule.rounds) {
    for (int i = 0; i < round.repeat; ++i) {
      next = ready;
      for_each_message(round, schedule.ranks, [&](const Message& message) {
        const double start = std::max(ready[at(message.from)], ready[at(message.to)]);
        const double done = start + link.alpha + message.bytes * link.beta;
        next[at(message.from)] = std::max(next[at(message.from)], done);
        next[at(message.to)] = std::max(next[at(message.to)], done + message.reduce_bytes * link.gamma);
      });
      ready.swap(next);
    }
  }
  return *std::max_element(ready.begin(), ready.end());
}

}  // namespace

TEST_CASE("every rank sends and receives one message a round at most", "[collective][property]") {
  for_all_supported([](A algorithm, Op op) {
    INFO(to_string(algorithm) << " " << to_string(op));
    for (const int ranks : sizes()) {
      const CollectiveSchedule schedule = make_schedule(op, algorithm, ranks, 1e6, nodes_for(ranks, false));
      for (const Round& round : schedule.rounds) {
        if (schedule.is_stream) continue;
        std::vector<int> sends(at(ranks), 0), receives(at(ranks), 0);
        bool ok = round.repeat >= 1;
        int count = 0;
        for_each_message(round, ranks, [&](const Message& message) {
          ++count;
          ok = ok && message.from != message.to && std::clamp(message.from, 0, ranks - 1) == message.from &&
               std::clamp(message.to, 0, ranks - 1) == message.to && message.bytes > 0 &&
               (message.reduce_bytes == 0 || message.reduce_bytes == message.bytes);
          ok = ok && ++sends[at(message.from)] == 1 && ++receives[at(message.to)] == 1;
        });
        REQUIRE((ok && count > 0));
      }
    }
  });
}

TEST_CASE("rings of a stream enter and leave every node each at another rank", "[collective][property]") {
  const auto nodes_of = [](const std::vector<int>& sizes) {
    std::vector<int> node_of;
    for (std::size_t n = 0; n < sizes.size(); ++n) node_of.insert(node_of.end(), at(sizes[n]), static_cast<int>(n));
    return node_of;
  };
  for (const std::vector<int>& on_node : {std::vector<int>{8, 4}, {2, 2}, {3, 5, 4}, {1, 8}, {8, 8, 8, 8}}) {
    const std::vector<int> node_of = nodes_of(on_node);
    const auto ranks = static_cast<int>(node_of.size());
    const int rings = *std::ranges::min_element(on_node);
    for (const Op op : {Op::all_reduce, Op::reduce_scatter, Op::all_gather}) {
      const CollectiveSchedule schedule = make_schedule(op, A::multi_ring, ranks, 1e6, node_of);
      REQUIRE(schedule.is_stream);
      REQUIRE(schedule.rounds.size() == (op == Op::all_reduce ? 2U : 1U));
      for (const Round& round : schedule.rounds) {
        CHECK(round.repeat == ranks - 1);
        REQUIRE(round.messages.size() == at(rings * ranks));
        std::set<int> leaving, entering;
        for (int ring = 0; ring < rings; ++ring) {
          std::set<int> seen;
          for (int i = 0; i < ranks; ++i) {
            const Message& hop = round.messages[at(ring * ranks + i)];
            CHECK(hop.to == round.messages[at(ring * ranks + (i + 1) % ranks)].from);  // one after another, around
            CHECK(hop.bytes == Approx(1e6 / ranks / rings));
            CHECK(seen.insert(hop.from).second);
            if (node_of[at(hop.from)] == node_of[at(hop.to)]) continue;
            CHECK(leaving.insert(hop.from).second);
            CHECK(entering.insert(hop.to).second);
          }
        }
        CHECK(leaving.size() == at(rings) * on_node.size());
        CHECK(entering.size() == at(rings) * on_node.size());
      }
    }
  }
}

TEST_CASE("an all-to-all meets the partners of a node together, and everyone once", "[collective][property]") {
  for (const std::vector<int>& on_node : {std::vector<int>{8, 8}, {4, 4, 4}, {2, 2, 2, 2, 2}, {8, 7}, {1, 3, 2}}) {
    for (const bool interleaved : {false, true}) {
      std::vector<int> node_of;
      for (std::size_t n = 0; n < on_node.size(); ++n)
        node_of.insert(node_of.end(), at(on_node[n]), static_cast<int>(n));
      if (interleaved) {
        std::ranges::reverse(node_of);
        std::rotate(node_of.begin(), node_of.begin() + 1, node_of.end());
      }
      const auto ranks = static_cast<int>(node_of.size());
      const int most = *std::ranges::max_element(on_node);
      std::vector<std::set<int>> met(at(ranks));
      int rounds_inside = 0;
      for (const Round& round : make_schedule(Op::all_to_all, A::pairwise, ranks, 1e6, node_of).rounds) {
        int inside = 0, all = 0;
        for_each_message(round, ranks, [&](const Message& m) {
          CHECK(met[at(m.from)].insert(m.to).second);
          if (round.is_uniform()) CHECK(round.permutation->source_of(m.to, ranks) == m.from);
          inside += node_of[at(m.from)] == node_of[at(m.to)] ? 1 : 0;
          ++all;
        });
        CHECK((inside == 0 || inside == all));
        rounds_inside += inside > 0 ? 1 : 0;
      }
      CHECK(rounds_inside == most - 1);
      for (const std::set<int>& partners : met) CHECK(partners.size() == at(ranks - 1));
    }
  }
}

TEST_CASE("schedule totals are the sums over messages", "[collective][property]") {
  for_all_supported([](A algorithm, Op op) {
    for (const int ranks : {2, 7, 16}) {
      const CollectiveSchedule schedule = make_schedule(op, algorithm, ranks, 1e6, nodes_for(ranks, false));
      const RankTraffic traffic = traffic_of(schedule);
      const double sent = std::accumulate(traffic.sent.begin(), traffic.sent.end(), 0.0);
      CHECK(schedule.total_bytes() == Approx(sent).epsilon(1e-12));
      std::int64_t count = 0;
      for (const Messages& messages : unrolled(schedule)) count += static_cast<std::int64_t>(messages.size());
      CHECK(schedule.message_count() == count);
    }
  });
}

TEST_CASE("bytes are conserved and as many as the theory says", "[collective][property]") {
  // Each rank must take in (P-1)/P n for an all-gather or all-to-all, and combine as much for a reduce-scatter; an
  // all-reduce is both. Sending obeys the same bound by symmetry. Any vector reduction combines (P-1) n in all.
  const double n = 1e6;
  for (const int ranks : sizes()) {
    const double share = (ranks - 1.0) / ranks * n;
    const auto check_all = [&](Op op, A algorithm, double sent, double reduced) {
      INFO(to_string(algorithm) << " " << to_string(op) << " P = " << ranks);
      const RankTraffic traffic = traffic_of(make_schedule(op, algorithm, ranks, n, nodes_for(ranks, true)));
      for (int r = 0; r < ranks; ++r) {
        REQUIRE(traffic.sent[at(r)] == Approx(sent).epsilon(1e-12));
        REQUIRE(traffic.received[at(r)] == Approx(sent).epsilon(1e-12));
        REQUIRE(traffic.reduced[at(r)] == Approx(reduced).epsilon(1e-12).margin(1e-9));
      }
    };
    for (const A ring : {A::ring, A::hierarchical, A::multi_ring}) {
      check_all(Op::all_reduce, ring, 2 * share, share);
      check_all(Op::reduce_scatter, ring, share, share);
      check_all(Op::all_gather, ring, share, 0);
    }
    check_all(Op::reduce_scatter, A::pairwise, share, share);
    check_all(Op::all_gather, A::pairwise, share, 0);
    check_all(Op::all_to_all, A::pairwise, share, 0);
    check_all(Op::all_reduce, A::bruck, 2 * share, share);
    check_all(Op::reduce_scatter, A::bruck, share, share);
    check_all(Op::all_gather, A::bruck, share, 0);
    if ((ranks & (ranks - 1)) == 0) {
      const double log2_ranks = std::log2(ranks);
      check_all(Op::all_reduce, A::halving_doubling, 2 * share, share);
      check_all(Op::reduce_scatter, A::halving_doubling, share, share);
      check_all(Op::all_gather, A::halving_doubling, share, 0);
      check_all(Op::all_reduce, A::recursive_doubling, log2_ranks * n, log2_ranks * n);
      check_all(Op::all_to_all, A::bruck, log2_ranks * n / 2, 0);
    }
    for_all_supported([&](A algorithm, Op op) {
      const CollectiveSchedule schedule = make_schedule(op, algorithm, ranks, n, nodes_for(ranks, false));
      if (op == Op::reduce || (op == Op::all_reduce && algorithm != A::recursive_doubling)) {
        const RankTraffic traffic = traffic_of(schedule);
        const double all = std::accumulate(traffic.reduced.begin(), traffic.reduced.end(), 0.0);
        CHECK(all == Approx((ranks - 1) * n).epsilon(1e-12));
      }
    });
  }
}

TEST_CASE("closed forms are the lockstep time of the schedules", "[collective][property]") {
  const std::vector<AlphaBetaGamma> links = {
      {2.5e-6, 1e-9, 0}, {2.5e-6, 1e-9, 2e-10}, {0, 1e-9, 1e-9}, {1e-6, 0, 0}, {0, 0, 1e-9}};
  for_all_supported([&](A algorithm, Op op) {
    for (const int ranks : sizes()) {
      INFO(to_string(algorithm) << " " << to_string(op) << " P = " << ranks);
      for (const double bytes : {0.0, 4.0, 1e6, 527.8 * 1024 * 1024}) {
        for (const bool interleaved : {false, true}) {
          if (interleaved && algorithm != A::hierarchical) continue;
          const std::vector<int> nodes = nodes_for(ranks, interleaved);
          const CollectiveSchedule schedule = make_schedule(op, algorithm, ranks, bytes, nodes);
          if (schedule.is_stream) continue;  // no rounds that end together
          for (const AlphaBetaGamma& link : links) {
            const double time = lockstep_time(schedule, link);
            const double formula = closed_form_time(op, algorithm, ranks, bytes, link, nodes);
            if (closed_form_is_exact(op, algorithm, ranks)) {
              REQUIRE(time == Approx(formula).epsilon(1e-12).margin(1e-18));
            } else {
              REQUIRE(time <= formula * (1 + 1e-12));
            }
          }
        }
      }
    }
  });
}

TEST_CASE("the double binary tree's bound is near its time and its bandwidth near the optimum",
          "[collective][property]") {
  // c chunks one after the other down d levels take at least c + d - 1 rounds, half of the bound's 2c + 2(d - 1).
  const AlphaBetaGamma link{2.5e-6, 1e-9, 0};
  for (const int ranks : sizes()) {
    for (const double bytes : {1e3, 1e6, 1e9}) {
      const double time = lockstep_time(make_schedule(Op::all_reduce, A::double_binary_tree, ranks, bytes), link);
      const double bound = closed_form_time(Op::all_reduce, A::double_binary_tree, ranks, bytes, link);
      INFO("P = " << ranks << " bytes " << bytes << ": " << time << " <= " << bound);
      CHECK(bound <= 2 * time * (1 + 1e-12));
      // 1 GB is 64 chunks a tree; depth 7 at P = 128 then adds 6/64 to the 2 n beta of the optimum.
      if (bytes == 1e9) CHECK(time < 1.1 * 2 * bytes * link.beta);
      if (bytes == 1e9) CHECK(time >= 2 * (ranks - 1.0) / ranks * bytes * link.beta);
    }
  }
}

TEST_CASE("halving-doubling beats the ring's latency and keeps its bandwidth", "[collective][property]") {
  // 2 log2 P against 2 (P-1) messages, the same bytes, at powers of two.
  for (const int ranks : {4, 16, 256, 4096}) {
    for (const Op op : {Op::all_reduce, Op::reduce_scatter, Op::all_gather}) {
      const double passes = op == Op::all_reduce ? 2 : 1;
      const AlphaBetaGamma latency{1, 0, 0}, bandwidth{0, 1, 0};
      CHECK(closed_form_time(op, A::halving_doubling, ranks, 1e6, latency) == Approx(passes * std::log2(ranks)));
      CHECK(closed_form_time(op, A::ring, ranks, 1e6, latency) == Approx(passes * (ranks - 1)));
      CHECK(closed_form_time(op, A::halving_doubling, ranks, 1e6, bandwidth) ==
            Approx(closed_form_time(op, A::ring, ranks, 1e6, bandwidth)));
    }
  }
}

}  // namespace epocast::collective_property_test
