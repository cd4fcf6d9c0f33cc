#pragma once
// What the property tests of collectives share: the group sizes they run over, and plain views of a schedule.

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "sim/collective.hpp"

namespace epocast::collective_cases {

using A = CollectiveAlgorithm;
using Op = CollectiveOp;
using Messages = std::vector<Message>;

/// Group sizes: all small ones, and a few larger.
inline std::vector<int> sizes() {
  std::vector<int> all(32);
  std::iota(all.begin(), all.end(), 2);
  all.insert(all.end(), {64, 100, 128});
  return all;
}

inline std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

/// Rounds with repeats and permutations written out.
inline std::vector<Messages> unrolled(const CollectiveSchedule& schedule) {
  std::vector<Messages> rounds;
  for (const Round& round : schedule.rounds) {
    Messages messages;
    for_each_message(round, schedule.ranks, [&](const Message& message) { messages.push_back(message); });
    rounds.insert(rounds.end(), at(round.repeat), messages);
  }
  return rounds;
}

inline std::vector<Messages> backwards(std::vector<Messages> rounds) {
  std::reverse(rounds.begin(), rounds.end());
  for (Messages& messages : rounds)
    for (Message& message : messages) std::swap(message.from, message.to);
  return rounds;
}

template <typename Visitor>
void for_all_supported(Visitor visit) {
  for (const std::string& algorithm : collective_algorithm_names()) {
    for (const std::string& op : collective_op_names()) {
      const A a = parse_collective_algorithm(algorithm);
      const Op o = parse_collective_op(op);
      if (supports(a, o)) visit(a, o);
    }
  }
}

/// Nodes for hierarchical: the largest count of ranks per node up to 4 that divides P, dealt round robin if
/// `interleaved`.
inline std::vector<int> nodes_for(int ranks, bool interleaved) {
  int per_node = 4;
  while (ranks % per_node != 0) --per_node;
  std::vector<int> node_of;
  for (int r = 0; r < ranks; ++r) node_of.push_back(interleaved ? r % (ranks / per_node) : r / per_node);
  return node_of;
}

/// Bytes by rank, over the whole schedule.
struct RankTraffic {
  std::vector<double> sent, received, reduced;
};

inline RankTraffic traffic_of(const CollectiveSchedule& schedule) {
  const std::vector<double> none(at(schedule.ranks), 0.0);
  RankTraffic traffic{none, none, none};
  for (const Round& round : schedule.rounds) {
    for_each_message(round, schedule.ranks, [&](const Message& message) {
      traffic.sent[at(message.from)] += message.bytes * round.repeat;
      traffic.received[at(message.to)] += message.bytes * round.repeat;
      traffic.reduced[at(message.to)] += message.reduce_bytes * round.repeat;
    });
  }
  return traffic;
}

}  // namespace epocast::collective_cases
