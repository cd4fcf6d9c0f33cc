#pragma once
// Platforms from a description of a few lines: equal nodes of equal devices on one switch.
//
//     cluster: lab                        # its name
//     nodes: 8
//     devices: {kind: v100_sxm2_16gb, per_node: 8}            # of the catalogue platforms/devices.yaml
//     inside: {rate: 130 GB/s, latency: 3.4 us}               # of a device's link, each way, and from device to device
//     cards: {per_node: 1, rate: 100 Gb/s, latency: 28 us}    # network cards, and from node to node
//     processors: {kind: xeon_e5_2686_v4_pair}                # of a node, where parameter servers may be
//
// One host is one device, gpu-NODE-NUMBER, on a link of its own to its node's switch. `devices.per_switch` and
// `inside.uplink` put so many devices in a row below a switch of their own whose uplink they share, as PCIe switches
// and dual boards do. Where devices have no access to each other's memory, `inside.peer_access: false`, what they
// exchange goes through the host's, so that neighbours on a switch share its uplink, too. Kinds of devices that come
// several to a board (`per_board` of the catalogue) are numbered board by board; see boards.hpp. With one card a node,
// traffic to other nodes takes the device's link and the card's. With several, devices in a row share a card and reach
// it by a link of their own, and no traffic changes the card inside a node. The network between the cards is one switch
// that never limits. The processors of a node are one more host on the node's switch, which trains nothing.
//
//     inside: {rate: 15.75 GB/s, latency: 5.7 us, mesh: {rate: 22.3 GB/s, latency: 3.4 us, links: [0-1, 0-3, 0-3]}}
//
// With a mesh, devices that have links of their own use them, two links of a pair as one of twice the rate; others, and
// the network cards, are reached over the node's switches. Nothing is forwarded by a third device.
//
// Scope and limits: rails and tapered networks need a platform file.

#include <string>

#include "sim/cluster.hpp"
#include "sim/config.hpp"

namespace epocast {

/// The platform file in XML. `devices`: the catalogue. Throws ConfigError for keys that are missing, unknown or out of
/// range, numbers of devices that cannot be divided over switches or cards, and unknown devices.
std::string cluster_platform(const ConfigNode& description, const ConfigNode& devices);

/// The cluster of a description, with its platform file, which goes to the system's folder for temporary files.
Cluster load_cluster(const ConfigNode& description, const ConfigNode& devices);

}  // namespace epocast
