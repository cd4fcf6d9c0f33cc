#pragma once
// Collective operations: what a strategy asks for, the message schedule of each algorithm, and closed forms.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/quantity.hpp"

namespace epocast {

enum class CollectiveOp {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  reduce,
  gather,
  scatter,
  send,  ///< one message, from rank 0 to rank 1: is measured as collectives are, but no graph has it as one
};

enum class CollectiveAlgorithm {
  ring,
  halving_doubling,    ///< Rabenseifner: recursive halving, then recursive doubling
  recursive_doubling,  ///< whole vector in every step
  binomial_tree,
  double_binary_tree,
  hierarchical,  ///< inside the node, then between nodes
  multi_ring,    ///< rings through all nodes, each by another rank of each, as a stream
  pairwise,      ///< pairwise exchange / linear
  bruck,
  // What leaves the choice to the program: NetworkPlan takes one of the above for each collective.
  automatic,  ///< the fastest predicted of those that the group can run
  nccl,       ///< what NCCL would take
  mpi,        ///< what MPICH would take
};

/// How much detail is simulated. See docs on collectives: on an idle network all agree.
enum class CollectiveLevel { automatic, message, flow, closed_form };

const char* to_string(CollectiveOp op);
const char* to_string(CollectiveAlgorithm algorithm);
const char* to_string(CollectiveLevel level);
std::vector<std::string> collective_op_names();
std::vector<std::string> collective_algorithm_names();         ///< of those that send messages, in order
std::vector<std::string> collective_algorithm_choice_names();  ///< of those that leave the choice open, in order
std::vector<std::string> collective_level_names();
/// Throw std::invalid_argument with the nearest name as a hint.
CollectiveOp parse_collective_op(const std::string& name);
/// The same, and `send`.
CollectiveOp parse_measured_op(const std::string& name);
CollectiveAlgorithm parse_collective_algorithm(const std::string& name);
CollectiveLevel parse_collective_level(const std::string& name);

/// Whether the algorithm leaves open which messages are sent.
constexpr bool is_choice(CollectiveAlgorithm algorithm) { return algorithm >= CollectiveAlgorithm::automatic; }
/// True if the algorithm, or one that it may choose, can carry out the operation.
bool supports(CollectiveAlgorithm algorithm, CollectiveOp op);
/// True if the operation's vector can be divided over several rings: all of it, or the stage inside the nodes. Of a
/// choice: if what it chooses may.
bool has_rings(CollectiveAlgorithm algorithm, CollectiveOp op);
/// A sensible algorithm for an operation if the user named one that cannot do it (e.g. ring for all_to_all ->
/// pairwise); never a choice.
CollectiveAlgorithm default_algorithm(CollectiveOp op);

/// One message of a round, between ranks of the group.
struct Message {
  int from = 0;
  int to = 0;
  double bytes = 0;         ///< payload
  double reduce_bytes = 0;  ///< bytes the receiver then combines with its own (gamma)
};

/// A round in which every rank of the group sends one message of one size, and receives one: kept as a rule, because
/// the P^2 messages of an all-to-all over 8192 ranks would not fit in memory. REQUIRES: no rank is its own partner.
struct Permutation {
  enum class Kind {
    /// Rank r sends to (r + operand) mod P, 0 < operand < P. With per_node = m > 1, which divides P: rank l of node n
    /// sends to rank (l + operand mod m) mod m of node (n + operand / m) mod (P / m).
    shift,
    exclusive_or,  ///< rank r exchanges with r xor operand, P a power of two, 0 < operand < P
  };
  Kind kind = Kind::shift;
  int operand = 1;
  double bytes = 0;         ///< payload of each message
  double reduce_bytes = 0;  ///< as in Message
  int per_node = 1;         ///< of a shift: ranks n m to n m + m - 1 are those of node n

  int target_of(int rank, int ranks) const;  ///< whom `rank` sends to
  int source_of(int rank, int ranks) const;  ///< from whom `rank` receives
};

/// Messages that may be in flight together. A message starts when both its ranks have entered the round; a rank enters
/// the next round when all it sends and receives in this one (and the reduction after it) are done. `repeat` identical
/// rounds follow one another. A rank sends at most one message in a round and receives at most one, in every schedule
/// here that is no stream.
struct Round {
  std::vector<Message> messages = {};  ///< empty if `permutation` is set
  int repeat = 1;
  std::optional<Permutation> permutation = std::nullopt;

  /// On a star of equal links such a round loads every up- and downlink alike, whatever the permutation.
  bool is_uniform() const { return permutation.has_value(); }
  double bytes_per_rank() const;         ///< sent by each rank in one repetition; REQUIRES is_uniform()
  double reduce_bytes_per_rank() const;  ///< reduced by each rank in one repetition; REQUIRES is_uniform()
};

/// Calls visit(Message) for every message of one repetition of the round.
template <typename Visitor>
void for_each_message(const Round& round, int ranks, Visitor&& visit) {
  if (!round.permutation) {
    for (const Message& message : round.messages) visit(message);
    return;
  }
  const Permutation& rule = *round.permutation;
  for (int rank = 0; rank < ranks; ++rank)
    visit(Message{rank, rule.target_of(rank, ranks), rule.bytes, rule.reduce_bytes});
}

/// The message schedule of a collective. `bytes` follows MPI and NCCL usage:
///   all_reduce, broadcast, reduce: the vector's size;
///   reduce_scatter, all_gather: the full vector's size (each rank ends with, or starts from, 1/P of it);
///   all_to_all: what one rank sends in total, its own part included (each pair exchanges bytes/P);
///   gather, scatter: the full vector's size at the root.
/// The root of broadcast, reduce, gather and scatter is rank 0.
struct CollectiveSchedule {
  int ranks = 0;
  std::vector<Round> rounds;
  /// Ranks pass on each block as it arrives, while the one before is still on its way: rounds last as long as latencies
  /// along the way of one block and the bytes of all. A round is whole rings of `ranks` messages, one after another.
  bool is_stream = false;

  double total_bytes() const;  ///< over all messages
  std::int64_t message_count() const;
};

/// Builds the schedule. `node_of[r]` numbers the node of each rank (used by hierarchical, multi_ring and pairwise
/// all_to_all; may be empty = one rank per node). Throws std::invalid_argument if the algorithm is a choice or does not
/// support the operation, ranks < 2, bytes is negative or not finite, node_of has another length than ranks, or
/// (hierarchical) the nodes hold different numbers of ranks. Sources: Thakur, Rabenseifner, Gropp 2005 (ring,
/// halving-doubling, recursive doubling, binomial, pairwise, Bruck); Sanders, Speck, Traeff 2009 (double binary tree).
CollectiveSchedule make_schedule(CollectiveOp op, CollectiveAlgorithm algorithm, int ranks, double bytes,
                                 const std::vector<int>& node_of = {});

/// The schedule if a connection has so many bytes under way at the most: what is longer goes as several messages of
/// equal size, each after both its ranks are through with the one before it. `window` 0: any number of bytes. Throws
/// SimulationError if that makes more messages than can be counted.
CollectiveSchedule in_windows(CollectiveSchedule schedule, double window);

/// Link parameters for closed forms.
struct AlphaBetaGamma {
  double alpha = 0;  ///< s per message
  double beta = 0;   ///< s per byte sent
  double gamma = 0;  ///< s per byte reduced
};

/// Textbook time of a collective on an idle star of equal full-duplex links, all ranks starting together, in seconds.
/// The formulas and their sources are in closed_form.cpp. Throws what make_schedule throws.
double closed_form_time(CollectiveOp op, CollectiveAlgorithm algorithm, int ranks, double bytes, AlphaBetaGamma link,
                        const std::vector<int>& node_of = {});

/// Whether closed_form_time equals the time of make_schedule's rounds on such a star (to rounding), or only
/// approximates it from above. REQUIRES: supports(algorithm, op).
bool closed_form_is_exact(CollectiveOp op, CollectiveAlgorithm algorithm, int ranks);

}  // namespace epocast
