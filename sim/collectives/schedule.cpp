// The table of algorithms, and what is common to all schedules.
#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>

#include "sim/collectives/algorithms.hpp"
#include "sim/error.hpp"

namespace epocast {
namespace collectives {

const std::vector<Algorithm>& algorithms() {
  using enum CollectiveOp;
  using A = CollectiveAlgorithm;
  // clang-format off
  static const std::vector<Algorithm> table = {
      {A::ring, "ring", {all_reduce, reduce_scatter, all_gather}, ring_rounds, ring_time},
      {A::halving_doubling, "halving_doubling", {all_reduce, reduce_scatter, all_gather, broadcast, reduce},
       halving_doubling_rounds, halving_doubling_time},
      {A::recursive_doubling, "recursive_doubling", {all_reduce, all_gather},
       recursive_doubling_rounds, recursive_doubling_time},
      {A::binomial_tree, "binomial_tree", {all_reduce, broadcast, reduce, gather, scatter},
       binomial_tree_rounds, binomial_tree_time},
      {A::double_binary_tree, "double_binary_tree", {all_reduce, broadcast, reduce},
       double_binary_tree_rounds, double_binary_tree_time, /*exact=*/false},
      {A::hierarchical, "hierarchical", {all_reduce, reduce_scatter, all_gather, broadcast, reduce},
       hierarchical_rounds, hierarchical_time},
      {A::multi_ring, "multi_ring", {all_reduce, reduce_scatter, all_gather}, multi_ring_rounds, ring_time,
       /*exact=*/true, /*is_stream=*/true},
      {A::pairwise, "pairwise", {reduce_scatter, all_gather, all_to_all, gather, scatter},
       pairwise_rounds, pairwise_time},
      {A::bruck, "bruck", {all_reduce, reduce_scatter, all_gather, all_to_all}, bruck_rounds, bruck_time},
  };
  // clang-format on
  return table;
}

int largest_power_of_two(int n) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(n))); }

int ceil_log2(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n) - 1U)); }

Round shift_round(int operand, double bytes, double reduce_bytes, int repeat, int per_node) {
  return {.repeat = repeat,
          .permutation = Permutation{Permutation::Kind::shift, operand, bytes, reduce_bytes, per_node}};
}

Round exclusive_or_round(int mask, double bytes, double reduce_bytes) {
  return {.permutation = Permutation{Permutation::Kind::exclusive_or, mask, bytes, reduce_bytes}};
}

void append(Rounds& rounds, Rounds more) {
  rounds.insert(rounds.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

namespace {

const Algorithm& find(CollectiveAlgorithm id) {
  assert(!is_choice(id));
  const Algorithm& algorithm = algorithms()[static_cast<std::size_t>(id)];
  assert(algorithm.id == id);
  return algorithm;
}

const Algorithm& find_checked(const Request& request, CollectiveAlgorithm id) {
  if (is_choice(id)) throw std::invalid_argument(std::string(to_string(id)) + " is a choice, which sends no messages");
  const Algorithm& algorithm = find(id);
  if (!supports(id, request.op)) {
    throw std::invalid_argument(std::string(algorithm.name) + " cannot carry out " + to_string(request.op) + "; " +
                                to_string(default_algorithm(request.op)) + " can");
  }
  if (request.ranks < 2)
    throw std::invalid_argument("a collective needs at least 2 ranks, not " + std::to_string(request.ranks));
  if (!std::isfinite(request.bytes) || request.bytes < 0)
    throw std::invalid_argument("a collective cannot move " + std::to_string(request.bytes) + " bytes");
  if (!request.node_of.empty() && request.node_of.size() != static_cast<std::size_t>(request.ranks)) {
    throw std::invalid_argument("node_of names the nodes of " + std::to_string(request.node_of.size()) +
                                " ranks, but the collective has " + std::to_string(request.ranks));
  }
  return algorithm;
}

}  // namespace
}  // namespace collectives

bool supports(CollectiveAlgorithm algorithm, CollectiveOp op) {
  if (is_choice(algorithm)) return true;  // every operation has an algorithm
  const auto& ops = collectives::find(algorithm).ops;
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

bool has_rings(CollectiveAlgorithm algorithm, CollectiveOp op) {
  using A = CollectiveAlgorithm;
  const bool may = algorithm == A::ring || algorithm == A::hierarchical || algorithm == A::multi_ring ||
                   algorithm == A::automatic || algorithm == A::nccl;  // MPI's rings are one each
  return may && supports(CollectiveAlgorithm::ring, op);
}

CollectiveAlgorithm default_algorithm(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::all_reduce:
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::all_gather: return CollectiveAlgorithm::ring;
    case CollectiveOp::all_to_all: return CollectiveAlgorithm::pairwise;
    default:  // rooted operations
      return CollectiveAlgorithm::binomial_tree;
  }
}

CollectiveSchedule make_schedule(CollectiveOp op, CollectiveAlgorithm algorithm, int ranks, double bytes,
                                 const std::vector<int>& node_of) {
  const collectives::Request request{op, ranks, bytes, node_of};
  const collectives::Algorithm& own = collectives::find_checked(request, algorithm);
  CollectiveSchedule schedule{ranks, own.rounds(request)};
  schedule.is_stream = own.is_stream && !schedule.rounds.front().is_uniform();
  return schedule;
}

CollectiveSchedule in_windows(CollectiveSchedule schedule, double window) {
  if (window <= 0) return schedule;
  for (Round& round : schedule.rounds) {
    double longest = round.is_uniform() ? round.bytes_per_rank() : 0;
    for (const Message& m : round.messages) longest = std::max(longest, m.bytes);
    const double parts = std::ceil(longest / window * (1 - 1e-12));  // rounding makes no message longer
    if (parts <= 1) continue;
    if (parts * round.repeat > std::numeric_limits<int>::max())
      throw SimulationError("a message of " + std::to_string(longest) + " bytes in windows of " +
                            std::to_string(window) + " has too many parts; give the stack a larger window");
    round.repeat *= static_cast<int>(parts);
    for (Message& m : round.messages) {
      m.bytes /= parts;
      m.reduce_bytes /= parts;
    }
    if (round.permutation) {
      round.permutation->bytes /= parts;
      round.permutation->reduce_bytes /= parts;
    }
  }
  return schedule;
}

double closed_form_time(CollectiveOp op, CollectiveAlgorithm algorithm, int ranks, double bytes, AlphaBetaGamma link,
                        const std::vector<int>& node_of) {
  const collectives::Request request{op, ranks, bytes, node_of};
  return collectives::find_checked(request, algorithm).time(request, link);
}

bool closed_form_is_exact([[maybe_unused]] CollectiveOp op, CollectiveAlgorithm algorithm, int ranks) {
  assert(supports(algorithm, op));
  return collectives::find(algorithm).exact || ranks == 2;
}

namespace {

/// The rank that lies `nodes` nodes and, within its node, `places` ranks further, both around.
int shifted(int rank, int ranks, int per_node, int nodes, int places) {
  const int node = (rank / per_node + nodes) % (ranks / per_node);
  return node * per_node + (rank % per_node + places) % per_node;
}

}  // namespace

int Permutation::target_of(int rank, int ranks) const {
  if (kind == Kind::exclusive_or) return rank ^ operand;
  return shifted(rank, ranks, per_node, operand / per_node, operand % per_node);
}

int Permutation::source_of(int rank, int ranks) const {
  if (kind == Kind::exclusive_or) return rank ^ operand;
  return shifted(rank, ranks, per_node, ranks / per_node - operand / per_node, per_node - operand % per_node);
}

double Round::bytes_per_rank() const {
  assert(is_uniform());
  return permutation->bytes;
}

double Round::reduce_bytes_per_rank() const {
  assert(is_uniform());
  return permutation->reduce_bytes;
}

double CollectiveSchedule::total_bytes() const {
  double total = 0;
  for (const Round& round : rounds) {
    double once = 0;
    if (round.is_uniform()) {
      once = round.bytes_per_rank() * ranks;
    } else {
      for (const Message& message : round.messages) once += message.bytes;
    }
    total += once * round.repeat;
  }
  return total;
}

std::int64_t CollectiveSchedule::message_count() const {
  std::int64_t count = 0;
  for (const Round& round : rounds) {
    const auto once = round.is_uniform() ? std::int64_t{ranks} : static_cast<std::int64_t>(round.messages.size());
    count += once * round.repeat;
  }
  return count;
}

}  // namespace epocast
