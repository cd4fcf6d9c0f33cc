// A schedule is correct if every datum arrives where the operation wants it, once, from somebody who has it. Messages
// carry sizes only, so what is in them is derived again here from the algorithm's definition. A reduce-scatter run
// backwards is an all-gather (each block's contributions come in along the tree on which an all-gather would send it
// out), so one check serves both.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/collective.hpp"
#include "tests/property/collective_cases.hpp"

namespace epocast::collective_delivery_test {

using namespace epocast::collective_cases;

namespace {

/// Runs the rounds as an all-gather in which no rank may receive a block twice: a message of k blocks carries k that
/// the receiver lacks, the sender's own first. Returns the number of blocks that were sent in vain.
int wasted_blocks_of_all_gather(const std::vector<Messages>& rounds, int ranks, double block) {
  std::vector<std::vector<bool>> has(at(ranks), std::vector<bool>(at(ranks), false));
  for (int r = 0; r < ranks; ++r) has[at(r)][at(r)] = true;
  int wasted = 0;
  for (const Messages& messages : rounds) {
    const auto before = has;
    for (const Message& message : messages) {
      int blocks = static_cast<int>(std::lround(message.bytes / block));
      if (std::abs(message.bytes - blocks * block) > 1e-9 * message.bytes) return -1;
      for (int i = 0; i < ranks && blocks > 0; ++i) {
        const int candidate = (message.from + i) % ranks;
        if (!before[at(message.from)][at(candidate)] || has[at(message.to)][at(candidate)]) continue;
        has[at(message.to)][at(candidate)] = true;
        --blocks;
      }
      wasted += blocks;
    }
  }
  for (const auto& blocks : has)
    if (std::find(blocks.begin(), blocks.end(), false) != blocks.end()) return -2;
  return wasted;
}

/// Whole vectors as sets of contributions. A reducing message adds a set that must be disjoint (nothing is summed
/// twice), a plain one replaces a subset. Returns false if that is violated.
bool move_vectors(const std::vector<Messages>& rounds, std::vector<std::set<int>>& vectors) {
  for (const Messages& messages : rounds) {
    const auto before = vectors;
    for (const Message& message : messages) {
      std::set<int>& mine = vectors[at(message.to)];
      const std::set<int>& theirs = before[at(message.from)];
      const std::size_t sum = mine.size() + theirs.size();
      mine.insert(theirs.begin(), theirs.end());
      if (mine.size() != (message.reduce_bytes > 0 ? sum : theirs.size())) return false;
    }
  }
  return true;
}

std::vector<std::set<int>> own_contributions(int ranks) {
  std::vector<std::set<int>> vectors(at(ranks));
  for (int r = 0; r < ranks; ++r) vectors[at(r)] = {r};
  return vectors;
}

bool same_messages(const Messages& a, const Messages& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Message& x, const Message& y) {
    return x.from == y.from && x.to == y.to && x.bytes == y.bytes && x.reduce_bytes == y.reduce_bytes;
  });
}

}  // namespace

TEST_CASE("all-gathers deliver every block once; reduce-scatters are all-gathers run backwards",
          "[collective][property]") {
  for (const int ranks : sizes()) {
    for_all_supported([&](A algorithm, Op op) {
      if (op != Op::all_gather && op != Op::reduce_scatter) return;
      INFO(to_string(algorithm) << " " << to_string(op) << " P = " << ranks);
      for (const bool interleaved : {false, true}) {
        const CollectiveSchedule schedule = make_schedule(op, algorithm, ranks, 1e6, nodes_for(ranks, interleaved));
        auto rounds = unrolled(schedule);
        if (schedule.is_stream) {  // each of its rings by itself has a share of every block
          const auto rings = static_cast<double>(rounds.front().size()) / ranks;
          for (Messages& messages : rounds) {
            messages.resize(at(ranks));
            for (Message& message : messages) message.bytes *= rings;
          }
        }
        // A folded rank hands in its whole vector, with the one block that it gets back: the only waste.
        int core = 1;
        while (2 * core <= ranks) core *= 2;
        const bool folds = op == Op::reduce_scatter && algorithm == A::halving_doubling;
        if (op == Op::reduce_scatter) {
          bool all_reduce_data = true;
          for (const Messages& messages : rounds)
            for (const Message& message : messages)
              all_reduce_data = all_reduce_data && (message.reduce_bytes > 0 || (folds && message.to >= core));
          REQUIRE(all_reduce_data);
          rounds = backwards(std::move(rounds));
        }
        REQUIRE(wasted_blocks_of_all_gather(rounds, ranks, 1e6 / ranks) == (folds ? ranks - core : 0));
      }
    });
  }
}

TEST_CASE("an all-reduce of blocks is a reduce-scatter and an all-gather", "[collective][property]") {
  for (const int ranks : sizes()) {
    for (const A algorithm : {A::ring, A::hierarchical, A::halving_doubling, A::bruck}) {
      const std::vector<int> nodes = nodes_for(ranks, true);
      int core = 1;
      while (2 * core <= ranks) core *= 2;
      auto all_reduce = unrolled(make_schedule(Op::all_reduce, algorithm, ranks, 1e6, nodes));
      int members = ranks;
      if (algorithm == A::halving_doubling && core != ranks) {  // between the fold and the unfold of the whole vector
        members = core;
        for (const Message& message : all_reduce.front())
          REQUIRE((message.to == message.from - core && message.bytes == 1e6 && message.reduce_bytes == 1e6));
        REQUIRE(all_reduce.front().size() == at(ranks - core));
        REQUIRE(all_reduce.back().size() == at(ranks - core));
        for (const Message& message : all_reduce.back())
          REQUIRE((message.to == message.from + core && message.bytes == 1e6 && message.reduce_bytes == 0));
        all_reduce.erase(all_reduce.begin());
        all_reduce.pop_back();
      }
      const std::vector<int>& some = algorithm == A::hierarchical ? nodes : std::vector<int>{};
      auto expected = unrolled(make_schedule(Op::reduce_scatter, algorithm, members, 1e6, some));
      const auto all_gather = unrolled(make_schedule(Op::all_gather, algorithm, members, 1e6, some));
      expected.insert(expected.end(), all_gather.begin(), all_gather.end());
      REQUIRE(std::equal(all_reduce.begin(), all_reduce.end(), expected.begin(), expected.end(), same_messages));
    }
  }
}

TEST_CASE("halving-doubling broadcast and reduce are made of proven parts", "[collective][property]") {
  for (const int ranks : sizes()) {
    const auto check = [&](Op whole, Op first, A first_by, Op second, A second_by) {
      auto expected = unrolled(make_schedule(first, first_by, ranks, 1e6));
      const auto rest = unrolled(make_schedule(second, second_by, ranks, 1e6));
      expected.insert(expected.end(), rest.begin(), rest.end());
      const auto rounds = unrolled(make_schedule(whole, A::halving_doubling, ranks, 1e6));
      REQUIRE(std::equal(rounds.begin(), rounds.end(), expected.begin(), expected.end(), same_messages));
    };
    check(Op::broadcast, Op::scatter, A::binomial_tree, Op::all_gather, A::halving_doubling);
    check(Op::reduce, Op::reduce_scatter, A::halving_doubling, Op::gather, A::binomial_tree);
  }
}

TEST_CASE("algorithms on whole vectors sum every contribution once", "[collective][property]") {
  for (const int ranks : sizes()) {
    for (const auto& [algorithm, op] : {std::pair{A::binomial_tree, Op::reduce},
                                        {A::binomial_tree, Op::all_reduce},
                                        {A::binomial_tree, Op::broadcast},
                                        {A::hierarchical, Op::reduce},
                                        {A::hierarchical, Op::broadcast},
                                        {A::recursive_doubling, Op::all_reduce}}) {
      INFO(to_string(algorithm) << " " << to_string(op) << " P = " << ranks);
      auto vectors = own_contributions(ranks);
      if (op == Op::broadcast) {  // only the root has anything
        vectors.assign(at(ranks), {});
        vectors[0] = {0};
      }
      const std::size_t complete = op == Op::broadcast ? 1 : at(ranks);
      REQUIRE(move_vectors(unrolled(make_schedule(op, algorithm, ranks, 1e6, nodes_for(ranks, true))), vectors));
      CHECK(vectors[0].size() == complete);
      if (op == Op::reduce) continue;
      CHECK(std::all_of(vectors.begin(), vectors.end(), [&](const auto& set) { return set.size() == complete; }));
    }
  }
}

TEST_CASE("scatter hands every rank its block; gather is a scatter run backwards", "[collective][property]") {
  for (const int ranks : sizes()) {
    for (const A algorithm : {A::binomial_tree, A::pairwise}) {
      for (const Op op : {Op::scatter, Op::gather}) {
        auto rounds = unrolled(make_schedule(op, algorithm, ranks, 1e6));
        if (op == Op::gather) rounds = backwards(std::move(rounds));
        std::vector<std::set<int>> has(at(ranks));
        for (int r = 0; r < ranks; ++r) has[0].insert(r);
        for (const Messages& messages : rounds) {
          const auto before = has;
          for (const Message& message : messages) {  // the k blocks from the receiver's own on
            const auto blocks = static_cast<int>(std::lround(message.bytes * ranks / 1e6));
            for (int i = 0; i < blocks; ++i) {
              REQUIRE(before[at(message.from)].count(message.to + i) == 1);
              REQUIRE(has[at(message.to)].insert(message.to + i).second);
            }
          }
        }
        for (int r = 0; r < ranks; ++r) REQUIRE(has[at(r)].count(r) == 1);
      }
    }
  }
}

TEST_CASE("all-to-all delivers every pair's block", "[collective][property]") {
  // Pairwise: to its target at once. Bruck: round k moves the blocks whose remaining way has bit k.
  for (const int ranks : sizes()) {
    for (const A algorithm : {A::pairwise, A::bruck}) {
      INFO(to_string(algorithm) << " P = " << ranks);
      std::vector<std::set<std::pair<int, int>>> held(at(ranks));  // (source, target)
      for (int r = 0; r < ranks; ++r)
        for (int t = 0; t < ranks; ++t) held[at(r)].insert({r, t});
      for (const Messages& messages : unrolled(make_schedule(Op::all_to_all, algorithm, ranks, 1e6))) {
        const auto before = held;
        for (const Message& message : messages) {
          const int hop = (message.to - message.from + ranks) % ranks;
          int moved = 0;
          for (const auto& block : before[at(message.from)]) {
            const int way = (block.second - block.first + ranks) % ranks;
            if (algorithm == A::pairwise ? block.second != message.to : (way & hop) == 0) continue;
            held[at(message.from)].erase(block);
            held[at(message.to)].insert(block);
            ++moved;
          }
          REQUIRE(moved * 1e6 / ranks == Approx(message.bytes).epsilon(1e-12));
        }
      }
      for (int r = 0; r < ranks; ++r) {
        REQUIRE(held[at(r)].size() == at(ranks));
        for (const auto& block : held[at(r)]) REQUIRE(block.second == r);
      }
    }
  }
}

TEST_CASE("double binary trees sum and spread every chunk of both halves", "[collective][property]") {
  // Inner nodes of the first tree are odd, of the second even, so the inner end of an edge tells the tree. The chunks
  // of an edge go in order. With a root outside (broadcast, reduce) rank 0 feeds both trees, and nodes are numbered
  // from rank 1.
  for (const int ranks : sizes()) {
    for (const Op op : {Op::all_reduce, Op::broadcast, Op::reduce}) {
      for (const double bytes : {1e3, 1e6}) {
        if (ranks == 2) continue;  // both trees share one edge; there is nothing to get wrong
        INFO(to_string(op) << " P = " << ranks << " bytes " << bytes);
        const CollectiveSchedule schedule = make_schedule(op, A::double_binary_tree, ranks, bytes);
        const double chunk_bytes = schedule.rounds.at(0).messages.at(0).bytes;
        const auto chunks = static_cast<int>(std::lround(bytes / 2 / chunk_bytes));
        const int offset = op == Op::all_reduce ? 0 : 1;

        std::map<std::pair<int, int>, std::vector<Messages>> rounds_of;  // (tree, chunk)
        std::map<std::tuple<int, int, int>, int> sent;                   // (tree, from, to)
        std::vector<std::set<int>> inner(2);
        for (const Messages& messages : unrolled(schedule)) {
          for (int tree = 0; tree < 2; ++tree)
            for (int chunk = 0; chunk < chunks; ++chunk) rounds_of[{tree, chunk}].emplace_back();
          for (const Message& message : messages) {
            const bool up = message.reduce_bytes > 0;
            const int parent = up ? message.to : message.from;
            const int child = up ? message.from : message.to;
            const bool from_top = offset == 1 && parent == 0;
            const int tree = ((from_top ? child : parent) - offset) % 2 == 1 ? 0 : 1;
            if (!from_top) inner[at(tree)].insert(parent);
            rounds_of[{tree, sent[{tree, message.from, message.to}]++}].back().push_back(message);
          }
        }
        for (const auto& [edge, count] : sent) REQUIRE(count == chunks);
        REQUIRE(sent.size() == at(2 * (ranks - 1) * (op == Op::all_reduce ? 2 : 1)));
        for (const int node : inner[0]) REQUIRE(inner[1].count(node) == 0);

        for (const auto& [key, rounds] : rounds_of) {
          auto vectors = own_contributions(ranks);
          if (op == Op::broadcast) {
            vectors.assign(at(ranks), {});
            vectors[0] = {0};
          }
          const std::size_t complete = op == Op::broadcast ? 1 : at(ranks);
          REQUIRE(move_vectors(rounds, vectors));
          REQUIRE(vectors[0].size() == complete);
          if (op == Op::reduce) continue;
          for (const auto& vector : vectors) REQUIRE(vector.size() == complete);
        }

        const RankTraffic traffic = traffic_of(schedule);
        const double limit = (op == Op::all_reduce ? 2 : 1) * bytes * (1 + 1e-12);
        for (int r = 0; r < ranks; ++r) REQUIRE((traffic.sent[at(r)] <= limit && traffic.received[at(r)] <= limit));
        REQUIRE(schedule.total_bytes() == Approx((op == Op::all_reduce ? 2 : 1) * (ranks - 1) * bytes));
      }
    }
  }
}

}  // namespace epocast::collective_delivery_test
