#pragma once
// Which algorithm NCCL and MPICH take for a collective: their own rules, by size and number of ranks.

#include "sim/collective.hpp"

namespace epocast {

/// What MPICH takes (its rules of 3.x and 4.x without tuning file, without its stages for shared memory). `bytes` as in
/// CollectiveSchedule.
CollectiveAlgorithm taken_by_mpich(CollectiveOp op, int ranks, double bytes);

/// What NCCL's tuning model knows of a communicator.
struct NcclNetwork {
  int ranks = 2;
  int nodes = 1;
  double bus_bandwidth = 0;  ///< B/s that its rings reach together
  bool nvlink = false;       ///< joins the GPUs of a node; else PCIe
  bool ll128 = false;        ///< the protocol of that name is on: NVLink of Volta or later
};

/// What NCCL takes for an all-reduce: `ring` or its tree, here `double_binary_tree`, as its tuning model predicts
/// (2.20). NVLink SHARP and CollNet are taken to be off.
CollectiveAlgorithm all_reduce_of_nccl(const NcclNetwork& network, double bytes);

}  // namespace epocast
