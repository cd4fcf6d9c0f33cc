#pragma once
// Writes platform files of DGX pods of any size: files of that size are long and regular, and nobody should edit them.

#include <string>
#include <vector>

namespace epocast {

/// The families that pod_platform() knows, sorted by name: "dgx_a100_pod", "dgx_h100_pod", "dgx_h200_pod".
std::vector<std::string> pod_families();

/// Largest number of nodes of a pod.
constexpr int kMostPodNodes = 2048;

/// A pod of DGX nodes on rail-optimised InfiniBand, as a SimGrid platform file in XML.
///
/// Each GPU hangs on the NVSwitch of its node (450 GB/s per direction; of A100 300) and, by a network port of its own
/// (50 GB/s; 25), on the leaf switch of its rail: the GPUs with the same number in all nodes of a scalable unit of 32
/// (20). Of more nodes, a spine switch per rail joins the leaves; the link of a leaf to it has the bandwidth of the
/// ports below, divided by `oversubscription`, and stands for all the cables of a full fat tree with ideal routing.
/// Traffic between rails changes the rail inside a node, over NVSwitch, as NCCL's PXN does. NVIDIA, DGX SuperPOD
/// Reference Architecture, RA-11333-001: 32 nodes to a scalable unit, 8 leaves each, as many cables up as down.
///
/// Throws ConfigError for an unknown family, nodes outside 1..kMostPodNodes, or an oversubscription outside 1..1000.
std::string pod_platform(const std::string& family, int nodes, double oversubscription = 1);

}  // namespace epocast
