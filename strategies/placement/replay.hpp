#pragma once
// Replays one iteration of a placed operator graph: when every node starts and ends, what crosses links, and what each
// device has in memory at any time.
//
// A device runs one node at a time. A node becomes ready when all that it reads has arrived; ready nodes wait in a
// queue, first in first out, as TensorFlow's scheduler emulated by Qararyah 2020, section 4.1.2, or by priority. Nodes
// without time do not queue. An output goes to each device that reads all of it once; of an output with parts, each
// reader gets its own part.
//
// Links: `apart`, every transfer takes latency + bytes / rate whatever else is under way, as the thesis assumes; or
// `copy_engines`, a device sends one transfer at a time and receives one at a time, in the order in which they are
// asked for, as over a switch that does not block.
//
// Memory (eq. 4.3, and what it leaves out): a normal output lies on its device from its node's start until its last
// reader there has ended and it has been sent everywhere else; on another device from the beginning of its transfer
// until its last reader there has ended. Variables and constants lie on their device all the time. What is freed at a
// moment is gone before what is allocated at that moment.
//
// Limits: workspace of kernels, fragmentation, and buffers that an operation writes in place of its input are not
// there.

#include <functional>
#include <span>
#include <vector>

#include "strategies/placement/placement_graph.hpp"

namespace epocast {

enum class Links { apart, copy_engines };
enum class QueueOrder {
  fifo,
  priority,  ///< of what is ready when the device is free, the node of highest priority: earliest start time first
};

struct ReplayOptions {
  Links links = Links::apart;
  QueueOrder order = QueueOrder::fifo;
  std::span<const Ticks> priority = {};  ///< by node, for QueueOrder::priority; bottom levels as a rule
};

/// An output on its way to another device.
struct OutputTransfer {
  std::uint32_t node = 0;
  std::uint32_t edge = 0;  ///< the first that it serves
  std::int16_t to = 0;
  bool is_whole = true;  ///< serves all readers of the whole output there; else only `edge`
  double bytes = 0;
  Ticks begin = 0, end = 0;
};

struct ReplayResult {
  std::vector<Ticks> start, end;  ///< by node
  std::vector<OutputTransfer> transfers;
  Ticks makespan = 0;
  std::vector<Ticks> busy;  ///< by device
};

/// REQUIRES a device of the machine for each node.
ReplayResult replay(const PlacementGraph& graph, const PlacementMachine& machine, const Placement& placement,
                    const ReplayOptions& options = {});

/// Bytes on a device over some time.
struct Residence {
  std::uint32_t node = 0;
  std::int16_t device = 0;
  bool is_copy = false;  ///< of another device's output
  double bytes = 0;
  Ticks begin = 0, end = 0;  ///< end is the makespan, begin 0 for what survives iterations
};

/// Everything that is in memory in a replay.
std::vector<Residence> residences(const PlacementGraph& graph, const Placement& placement, const ReplayResult& result);

struct MemoryPeak {
  double bytes = 0;
  Ticks time = 0;
};
/// By device: the most that is there at a time, and when first.
std::vector<MemoryPeak> memory_peaks(std::span<const Residence> all, int devices);

/// A point of a device's memory over time.
struct MemoryPoint {
  Ticks time = 0;
  double bytes = 0;
};
std::vector<MemoryPoint> memory_over_time(std::span<const Residence> all, int device);

}  // namespace epocast
