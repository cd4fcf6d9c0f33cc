#pragma once
// Reads SimGrid platform files, strictly: SimGrid itself aborts the process on some mistakes and ignores others.

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/config.hpp"

namespace epocast {

/// Loads and checks a platform file. Devices are in the order of the hosts in the file.
///
/// Understood are <zone> with routing Full, Floyd, Dijkstra, DijkstraCache or None, nested at will; <host>, <router>,
/// <link>, <route>, <zoneRoute>; and <cluster> as a star, FAT_TREE or TORUS. Figures of the devices are properties,
/// each on a host, its cluster or a zone around it, the innermost counting:
///
///     epocast.device_model      hardware, in words                          required
///     epocast.memory            capacity usable for training, "384 GB"      required
///     epocast.memory_bandwidth  "255.9 GB/s"                                required
///     epocast.peak_rate         fp32 peak, "8.24 TFLOP/s"                   default: the host's speed x core, to which
///                                                                           it must be equal if given
///     epocast.peak_rate_fp16    "312 TFLOP/s"; also _bf16, _tf32 and _fp8     optional
///     epocast.kernels_like      model of a measured device with like kernels  optional
///     epocast.product_share     of peak rates, that products reach, over      default: 1
///                               what they reach on the measured device
///     epocast.cores             physical cores                              default: the host's core attribute
///     epocast.node              machine that the device sits in             default: the host's own name
///     epocast.description       of the whole platform, on the outer zone
///     source.<key>              where the number behind epocast.<key>, link_bandwidth, link_latency, ... comes from
///     measured.<key>            what was measured, in words; and any other name without "epocast.": not looked at
///
/// Throws ConfigError, with line and column, for the first mistake found: XML that is broken or not a platform; unknown
/// elements, attributes and epocast properties; names given twice; numbers without a unit or beyond reason; routes over
/// unknown links; hosts that cannot reach each other; topology parameters that do not fit the number of hosts.
/// See probe_platform() for mistakes that only SimGrid can find.
Cluster load_platform(const std::filesystem::path& file);

/// The same from text; `name` stands for the file in messages.
Cluster parse_platform(std::string_view text, const std::string& name);

/// The platform that `value` names: `skylake_opa` for DATA_DIR/platforms/skylake_opa.xml, or a path (anything with a
/// `/` or ending in .xml), relative to the file that `value` stands in. `p2_16xlarge` for the description
/// DATA_DIR/platforms/clusters/p2_16xlarge.yaml, or a path ending in .yaml (cluster_generator.hpp); a map is a
/// description itself, or changes one: {name: p2_16xlarge, nodes: 4}.
Cluster load_platform_named(const ConfigNode& value, const std::filesystem::path& data_dir);

/// What `epocast list platforms` prints of one file.
struct PlatformInfo {
  std::string name;  ///< the file's name without extension
  std::string description;
  int devices = 0;
  std::string device_model;  ///< of the first device
  std::string problem;       ///< why the file cannot be loaded; "" if it can
};

/// All platform files of a folder, sorted by name.
std::vector<PlatformInfo> list_platforms(const std::filesystem::path& folder);

/// The kinds of devices in the catalogue of a folder with platforms, in its order.
std::vector<std::pair<std::string, Device>> list_devices(const std::filesystem::path& folder);

/// All cluster descriptions that ship in a folder with platforms, sorted by name.
std::vector<PlatformInfo> list_clusters(const std::filesystem::path& folder);

}  // namespace epocast
