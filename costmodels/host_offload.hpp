#pragma once
// Keeping things in the host's memory that a device has no room for: memory for time.
//
// The optimizer's state (Ren et al. 2021, "ZeRO-Offload", arXiv 2101.06840): gradients go to the host, its processors
// update an fp32 copy of the parameters, new parameters come back. An update of n parameters of w bytes takes the
// longest of n w / link (each way) and n 4 accesses / (host_memory / devices), as pieces follow one another; without
// `overlap` all three in turn.
//
// Activations (Rajbhandari et al. 2021, "ZeRO-Infinity", arXiv 2104.07857, section 5.1.3): what is kept for backward
// leaves the device when its layer has made it, and comes back before backward reads it. Copies go on beside computing.
// At most `buffer` bytes are on their way at a time, or the largest two neighbouring layers' if these have more; a
// device that gets further ahead waits:
//
//     forward:   link(l) = max(link(l-1), device(l)) + bytes(l) / link,  device(l) >= link(l) - buffer / link
//     backward:  link(l) = max(link(l+1), when all but `buffer` bytes of what has come were used) + bytes(l) / link
//
// and a layer's backward pass waits for the activations of the nearest layer before it that keeps any. Without
// `overlap` each copy takes its time.
//
// This is a transform of the trace of one device that has the network and one pass under way at a time. Stages of a
// pipeline, and devices with several passes under way, take the waiting out again and wait for copies of their own
// (strategies/step/host_copies.hpp).
// Scope and limits: of a node all devices copy and update at once, and share its memory and links evenly; updates do
// not overlap with the backward pass, and no step is delayed; the copies cost the processors nothing else. Whatever
// kernels the device updates parameters with, those of the host read and write each value once. Validation:
// tests/unit/host_offload_test.cpp (timelines by hand).

#include "sim/memory.hpp"
#include "sim/workload_trace.hpp"

namespace epocast {

struct HostOffload {
  bool optimizer = false;
  bool activations = false;
  /// Of a device to its host, each way. NVIDIA/nvbandwidth, README.md: 26.0 GB/s from pinned host memory to a device,
  /// on PCIe 4.0 with 16 lanes.
  BytesPerSecond link{26e9};
  int devices_per_link = 1;  ///< that share it
  /// Of a node. Assumed: about half of what two sockets with eight channels of DDR4-3200 each have (410 GB/s).
  BytesPerSecond host_memory{200e9};
  bool overlap = true;
  Bytes buffer{1e9};  ///< of a device, for all passes under way; assumed
  Bytes capacity{};   ///< of a node's memory, for this; 0: whatever it takes

  bool any() const { return optimizer || activations; }
  /// To a trace on one device, of whose node so many devices train. REQUIRES: recomputation has been applied already.
  void apply(WorkloadTrace& trace, Optimizer how, int devices) const;

 private:
  void offload_updates(WorkloadTrace& trace, Optimizer how, int devices) const;
  void offload_activations(WorkloadTrace& trace) const;
  double copy_rate() const { return link.value / devices_per_link; }  // B/s
};

}  // namespace epocast
