#pragma once
// How long a collective across nodes takes: the fastest of three protocols, fitted to measured ones.
//
//     time = (t_1^-4 + t_2^-4 + t_3^-4)^(-1/4)                           (a smooth minimum)
//     t = base + level log2(nodes) + step (ranks - 1) + wire bytes beta / (ranks / nodes)
//
// Libraries choose among trees and rings and among protocols with less latency or more bandwidth (Hu et al. 2025,
// arXiv 2507.04786, of NCCL); here they are three sets of constants that the data tell apart. `level` is what a tree
// needs for each doubling of nodes, `step` what a ring needs for each rank. Each rank has its share of its node's
// adapters, so that bytes go ranks / nodes times as fast as one's: `beta` [s/B] is of one rank alone on its node. wire,
// the share of the bytes that a node sends for each of its ranks: all-reduce 2 (p - 1) / p, reduce-scatter and
// all-gather (p - 1) / p (Thakur, Rabenseifner, Gropp 2005), all-to-all what leaves the node, (p - g) / p times g = p /
// nodes.
//
// Three protocols do not say all of a setting, of which often two groups were measured. Settings of one system share
// its network and the library's choices, so measurements correct the formula. ln time is a mean of
//
//     - the formula's, weighted by 0.1 for each group that it learnt from but the first, as one group does not show
//       how time grows with groups
//     - for every other setting in which the group was measured, ln time there + e, weighted by exp(-4 |d|)
//
//     d = ln (time here / time there) of the nearest group that was measured here, at equal bytes
//     e = d (1 - (2 s / d)^2), and 0 if |d| < 2 s
//
// s is by how much, in ln time, logs of equal software on two machines of equal nodes differ: what differs by less
// than twice as much is no difference (James and Stein 1961 shrink so). A group that was measured here takes what was
// measured. The two weights were chosen on a coarse grid with the left-out groups in view: docs/calibration.md.
//
// Scope and limits: one operation of one library in one setting on one system, nodes with equally many ranks, nothing
// else on the network. Validation: whole group shapes (ranks and nodes) left out,
// tests/published/network_groups_test.cpp and docs/calibration.md.

#include <array>
#include <span>
#include <string>
#include <vector>

#include "costmodels/robust_fit.hpp"
#include "sim/collective.hpp"
#include "sim/quantity.hpp"

namespace epocast {

/// Over how many ranks on how many nodes, equally many on each.
struct GroupShape {
  int ranks = 2;
  int nodes = 1;
  friend auto operator<=>(const GroupShape&, const GroupShape&) = default;
};

inline constexpr std::size_t kProtocols = 3;
inline constexpr std::size_t kProtocolConstants = 4;  ///< base [s], level [s], step [s], beta [s/B]
using ProtocolConstants = std::array<double, kProtocols * kProtocolConstants>;  ///< of one protocol after the other

Seconds protocols_time(const ProtocolConstants& constants, CollectiveOp op, GroupShape group, double bytes);

struct GroupTiming {
  GroupShape group;
  double bytes = 0;
  Seconds time;
};

/// Of one operation in one setting.
using GroupTimings = std::vector<GroupTiming>;

/// Fits the constants to timings of one operation. REQUIRES at least one timing.
ProtocolConstants fit_protocols(CollectiveOp op, const GroupTimings& timings);

/// Of the same operation on the same system in another setting.
struct OtherSetting {
  GroupTimings timings;
  bool other_version = false;  ///< of the same setting in another version of the library
};

/// Whether two libraries have one name but for words that begin with a digit: "NCCL 2.18 over TCP", "NCCL 2.21 over
/// TCP".
bool same_but_for_version(const std::string& one, const std::string& other);

struct WeightedTime {
  Seconds time{0};
  double weight = 0;  ///< infinite if the group was measured here; 0 if nothing tells
};

/// By measurements of this setting and others of the same system, as said above.
WeightedTime time_by_measurements(CollectiveOp op, const GroupTimings& own, std::span<const OtherSetting> others,
                                  GroupShape group, double bytes);

/// The formula's time, corrected by measurements.
Seconds corrected_time(const ProtocolConstants& constants, CollectiveOp op, const GroupTimings& own,
                       std::span<const OtherSetting> others, GroupShape group, double bytes);

/// Errors |predicted / measured - 1| of timings whose group shape was left out of what predicts it, in their order:
/// out of this setting and of its other versions. Empty if there is but one group.
std::vector<double> left_out_errors(CollectiveOp op, const GroupTimings& timings,
                                    std::span<const OtherSetting> others = {});

}  // namespace epocast
