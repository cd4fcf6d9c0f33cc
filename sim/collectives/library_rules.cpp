#include "sim/collectives/library_rules.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "sim/collectives/algorithms.hpp"

namespace epocast {
namespace {

using A = CollectiveAlgorithm;

// MPICH: src/mpi/coll/*/*.c, defaults of the control variables MPIR_CVAR_..; Thakur, Rabenseifner, Gropp 2005 is the
// paper behind them.
constexpr double kAllReduceShort = 2048;       // ALLREDUCE_SHORT_MSG_SIZE: up to this recursive doubling
constexpr double kReduceShort = 2048;          // REDUCE_SHORT_MSG_SIZE: up to this binomial
constexpr double kReduceScatterLong = 524288;  // REDSCAT_COMMUTATIVE_LONG_MSG_SIZE: from this pairwise
constexpr double kAllGatherShort = 81920;      // ALLGATHER_SHORT_MSG_SIZE: below this Bruck, if P is no power of two
constexpr double kAllGatherLong = 524288;      // ALLGATHER_LONG_MSG_SIZE: below this recursive doubling, if it is one
constexpr double kAllToAllShort = 256;         // ALLTOALL_SHORT_MSG_SIZE, of each pair: up to this Bruck
constexpr int kAllToAllLeastRanks = 8;         // the same, from so many ranks (alltoall.c)
constexpr double kBroadcastShort = 12288;      // BCAST_SHORT_MSG_SIZE: below this binomial
constexpr int kBroadcastLeastRanks = 8;        // BCAST_MIN_PROCS: with fewer binomial
constexpr double kValueBytes = 4;              // assumed: vectors of fp32

// NCCL 2.20, src/graph/tuning.cc. Times in us, rates in GB/s.
enum Protocol : std::size_t { kLL, kLL128, kSimple };
constexpr std::array kAllProtocols{kLL, kLL128, kSimple};
using ByProtocol = std::array<double, 3>;

constexpr ByProtocol kTreeBase{6.8, 14.0, 0}, kRingBase{6.6, 14.0, 8.4};  // baseLat
struct Hop {
  ByProtocol tree, ring;
};
constexpr Hop kNvlink{{0.6, 1.25, 28}, {0.6, 1.9, 3.4}};  // hwLat
constexpr Hop kPcie{{1.0, 1.9, 28}, {1.0, 2.5, 5.7}};
constexpr Hop kNetwork{{5.0, 8.5, 28}, {2.7, 4.0, 14.0}};

constexpr double kLLOneNode = 87.7, kLLTwoNodes = 39.0, kLLMoreNodes = 20.4;  // llMaxBws: Ampere and later; Intel CPUs
constexpr double kNetworkOverhead = 1.0;  // us, getNetOverhead: Intel CPUs; three times as much with Simple
constexpr double kRingPlateau = 1.4;      // on the latency of Simple across nodes, Ampere and later
constexpr int kChannels = 16;             // assumed; decides from where on there is that plateau

// treeCorrectionFactor, by powers of two from 64 B on.
constexpr std::array<std::array<double, 23>, 3> kTreeCorrection{{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
}};

double most_ll_bandwidth(int nodes) { return nodes == 1 ? kLLOneNode : nodes == 2 ? kLLTwoNodes : kLLMoreNodes; }

/// us that NCCL expects of its rings.
double ring_time(const NcclNetwork& network, Protocol protocol, double bytes) {
  const double steps = 2.0 * (network.ranks - 1), inter = network.nodes > 1 ? 2.0 * network.nodes : 0;
  const double per_node = static_cast<double>(network.ranks) / network.nodes;
  double bus = network.bus_bandwidth / 1e9;
  if (protocol == kLL) bus = std::min(most_ll_bandwidth(network.nodes), bus / 4);
  if (protocol == kLL128) bus *= per_node < 2 ? 0.7 : 0.92;
  double hop = (network.nvlink ? kNvlink : kPcie).ring[protocol];
  if (network.nodes > 1) hop = std::max(hop, kNetworkOverhead * (protocol == kSimple ? 3 : 1));
  double latency = kRingBase[protocol] + (steps - inter) * hop + inter * kNetwork.ring[protocol];
  if (protocol == kSimple && network.nodes > 1 && bytes / (kChannels * network.ranks) >= 64) latency *= kRingPlateau;
  return latency + bytes / (1e3 * bus * network.ranks / steps);
}

/// us that NCCL expects of its trees: a chain in each node, double binary trees between the nodes.
double tree_time(const NcclNetwork& network, Protocol protocol, double bytes) {
  double bus = network.bus_bandwidth / 1e9 * 0.92;
  if (protocol == kLL) bus = std::min(bus / 3.8, most_ll_bandwidth(network.nodes));
  if (protocol == kLL128) bus *= network.nodes == 1 ? 7.0 / 9 : 120.0 / 128;
  const double in_node = (network.nvlink ? kNvlink : kPcie).tree[protocol];
  const double latency = kTreeBase[protocol] + 2 * ((static_cast<double>(network.ranks / network.nodes) - 1) * in_node +
                                                    std::floor(std::log2(network.nodes)) * kNetwork.tree[protocol]);
  const auto size = static_cast<std::size_t>(std::log2(std::max(bytes / 64, 1.0)));
  if (size < kTreeCorrection[protocol].size()) bus *= kTreeCorrection[protocol][size];
  return latency + bytes / (1e3 * bus / 2);
}

}  // namespace

CollectiveAlgorithm taken_by_mpich(CollectiveOp op, int ranks, double bytes) {
  const int core = collectives::largest_power_of_two(ranks);
  const bool too_few_values = bytes / kValueBytes < core;  // to give every rank a part
  switch (op) {
    case CollectiveOp::all_reduce:
      return bytes <= kAllReduceShort || too_few_values ? A::recursive_doubling : A::halving_doubling;
    case CollectiveOp::reduce: return bytes <= kReduceShort || too_few_values ? A::binomial_tree : A::halving_doubling;
    case CollectiveOp::reduce_scatter: return bytes < kReduceScatterLong ? A::halving_doubling : A::pairwise;
    case CollectiveOp::all_gather:
      if (bytes < kAllGatherLong && core == ranks) return A::recursive_doubling;
      return bytes < kAllGatherShort ? A::bruck : A::ring;
    case CollectiveOp::all_to_all:
      return bytes / ranks <= kAllToAllShort && ranks >= kAllToAllLeastRanks ? A::bruck : A::pairwise;
    case CollectiveOp::broadcast:  // beyond: a scatter, then an all-gather, for which MPICH may take a ring
      return bytes < kBroadcastShort || ranks < kBroadcastLeastRanks ? A::binomial_tree : A::halving_doubling;
    default:  // gather, scatter
      return A::binomial_tree;
  }
}

CollectiveAlgorithm all_reduce_of_nccl(const NcclNetwork& network, double bytes) {
  double ring = std::numeric_limits<double>::infinity(), tree = ring;
  for (const Protocol protocol : kAllProtocols) {
    if (protocol == kLL128 && !network.ll128) continue;
    ring = std::min(ring, ring_time(network, protocol, bytes));
    tree = std::min(tree, tree_time(network, protocol, bytes));
  }
  return tree < ring ? A::double_binary_tree : A::ring;
}

}  // namespace epocast
