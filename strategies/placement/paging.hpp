#pragma once
// One device with less memory than a step needs, whose outputs move to the host and back, as under CUDA's unified
// memory.
//
// Nodes run one by one, first in, first out. What a node reads has to be on the device, as has the room for what it
// makes. What is missing is fetched, page fault by page fault; for want of room the output that was used least recently
// leaves, over the same link, unless the host has it already. An output goes once its last reader has run; variables
// stay, on the device or on the host. Times are those of the second of two steps, as a step begins with what the one
// before it left.
//
// Limits: nothing is fetched before it is missed, and computing waits; whole outputs move, not pages; a node that needs
// more than there is moves what is beyond it once more.

#include "strategies/placement/replay.hpp"

namespace epocast {

struct PagingLink {
  double bytes_per_second = 12e9;  ///< PCIe 3.0 x16, one direction, as large copies reach
  Ticks fault = to_ticks(25e-6);   ///< for a page that is missed; assumed, of 20 to 50 us that are reported for a fault
  double page_bytes = 2 << 20;     ///< what CUDA's driver evicts at a time
};

struct PagedStep {
  Ticks makespan = 0;
  double fetched = 0, evicted = 0;  ///< bytes
};

/// REQUIRES memory > 0 [bytes].
PagedStep page_step(const PlacementGraph& graph, double memory, const PagingLink& link = {});

}  // namespace epocast
