#pragma once
// Devices that share a board, and with it power: while others of their board train too, each is slower than alone.
//
// Hosts say on which board they are, `epocast.board`, and they or a zone around them what share of its speed a device
// keeps there, `epocast.shared_speed`.
//
// Scope and limits: a device is as slow with one neighbour as with several, and in all of a step if they train at all.

#include <span>
#include <vector>

#include "sim/cluster.hpp"

namespace epocast {

/// Factor >= 1 on the compute times of each of the cluster's devices while `workers` train: above 1 for those of them
/// that share a board with another. Empty if the cluster has no boards.
std::vector<double> board_slowdown(const Cluster& cluster, std::span<const DeviceId> workers);

}  // namespace epocast
