#include "platforms/pod_generator.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "sim/config.hpp"
#include "sim/error.hpp"

namespace epocast {

namespace {

/// What all pods of a generation have in common.
struct Generation {
  const char* speed;  // of a host, fp32
  const char* cores;
  const char* cores_source;
  std::vector<std::pair<const char*, const char*>> rates;  // of products, by property
  const char* rate_source;
  int scalable_unit;    // nodes
  double nvlink, port;  // per direction [GB/s]
  const char* network;
  const char* bandwidth_source;
  const char* topology_source;
  std::vector<std::pair<const char*, const char*>> measured;
};

const Generation& hopper() {
  static const Generation it{
      "66.9Tf",
      "132",
      "streaming multiprocessors (glennklockwood.com/garden/processors/h100)",
      {{"peak_rate", "66.9 TFLOP/s"},
       {"peak_rate_tf32", "494.7 TFLOP/s"},
       {"peak_rate_fp16", "989.4 TFLOP/s"},
       {"peak_rate_bf16", "989.4 TFLOP/s"},
       {"peak_rate_fp8", "1978.9 TFLOP/s"}},
      "glennklockwood.com/garden/processors/h100, which cites the NVIDIA H100 white paper; tensor rates are dense; "
      "H200 computes as H100 SXM5 does",
      32,
      450,
      50,
      "NDR",
      "NVLink4: 450 GB/s per direction (glennklockwood.com/garden/processors/h100: 900 both); InfiniBand NDR: 50 GB/s "
      "per direction (400 Gb/s), a port for each GPU",
      "NVIDIA DGX SuperPOD Reference Architecture RA-11333-001: 32 nodes to a scalable unit, 8 leaf switches each, "
      "rail-optimised full fat tree",
      {{"port", "47 GB/s, 46 to 48 expected (github.com/NVIDIA/nccl-tests/issues/290)"},
       {"all_reduce_bus_bandwidth",
        "370 GB/s in one node, ring (NCCL developer, github.com/NVIDIA/nccl-tests/issues/212)"}}};
  return it;
}

const Generation& ampere() {
  static const Generation it{
      "19.5Tf",
      "108",
      "streaming multiprocessors (glennklockwood.com/garden/processors/A100)",
      {{"peak_rate", "19.5 TFLOP/s"},
       {"peak_rate_tf32", "156 TFLOP/s"},
       {"peak_rate_fp16", "312 TFLOP/s"},
       {"peak_rate_bf16", "312 TFLOP/s"}},
      "glennklockwood.com/garden/processors/A100, which cites the NVIDIA A100 data sheet; tensor rates are dense",
      20,
      300,
      25,
      "HDR",
      "NVLink3: 300 GB/s per direction (glennklockwood.com/garden/processors/A100: 600 both); InfiniBand HDR: 25 GB/s "
      "per direction (200 Gb/s), a port for each GPU",
      "NVIDIA DGX SuperPOD Reference Architecture for DGX A100, RA-09950-001: 20 nodes to a scalable unit, 8 leaf "
      "switches each, rail-optimised full fat tree; not re-verified",
      {{"all_reduce_bus_bandwidth",
        "222 to 240 GB/s in one node (github:microsoft/vidur, github:VIA-Research/vTrain)"}}};
  return it;
}

struct Family {
  std::string name;
  std::string node;  // what people call one
  std::string device;
  std::string memory;            // [GB]
  std::string memory_bandwidth;  // [GB/s]
  std::string memory_source;
  const Generation& generation;
};

const std::vector<Family>& families() {
  static const std::string kH100Source =
      "glennklockwood.com/garden/processors/h100, which cites the NVIDIA H100 white paper";
  static const std::vector<Family> table = {
      {"dgx_a100_pod", "DGX A100", "NVIDIA A100 SXM4 80GB", "80", "2039",
       "glennklockwood.com/garden/processors/A100, which cites the NVIDIA A100 data sheet", ampere()},
      {"dgx_h100_pod", "DGX H100", "NVIDIA H100 SXM5 80GB", "80", "3350", kH100Source, hopper()},
      {"dgx_h200_pod", "DGX H200", "NVIDIA H200 SXM 141GB", "141", "4800", "lzwjava.github.io, H200 table", hopper()},
  };
  return table;
}

constexpr int kGpus = 8;  // of a node, and rails

class PodWriter {
 public:
  PodWriter(const Family& family, int nodes, double oversubscription)
      : family_(family), of_(family.generation), nodes_(nodes), oversubscription_(oversubscription) {}

  std::string write() {
    head();
    for (int n = 0; n < nodes_; ++n)
      for (int g = 0; g < kGpus; ++g)
        line(R"(<host id="gpu-{0}-{1}" speed="{2}"><prop id="epocast.node" value="node-{0}"/></host>)", n, g,
             of_.speed);
    for (int n = 0; n < nodes_; ++n) line(R"(<router id="nvswitch-{}"/>)", n);
    for (int r = 0; r < kGpus; ++r) {
      for (int u = 0; u < units(); ++u) line(R"(<router id="leaf-{}-{}"/>)", u, r);
      if (units() > 1) line(R"(<router id="spine-{}"/>)", r);
    }
    links();
    routes();
    out_ += "  </zone>\n</platform>\n";
    return std::move(out_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> text, Args&&... args) {
    out_ += "    ";
    fmt::format_to(std::back_inserter(out_), text, std::forward<Args>(args)...);
    out_ += '\n';
  }
  void property(const std::string& id, const std::string& value) { line(R"(<prop id="{}" value="{}"/>)", id, value); }

  int units() const { return (nodes_ + of_.scalable_unit - 1) / of_.scalable_unit; }
  int nodes_of_unit(int unit) const { return std::min(of_.scalable_unit, nodes_ - unit * of_.scalable_unit); }

  void head() {
    const std::string taper =
        oversubscription_ == 1 ? "" : fmt::format(", oversubscribed {:g} to 1", oversubscription_);
    const char* tiers = units() > 1 ? " of\n     its scalable unit; the leaves of a rail hang on a spine" : "";
    out_ += fmt::format(R"(<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<!-- A pod of {0} {1}{2}. Written by `epocast platform`; see docs/platforms.md.

     One host is one GPU. gpu-N-G hangs on the NVSwitch of node N, and by its network port on the leaf switch of rail G{3}.
     Routes are the shortest: NVSwitch inside a node, the rail between GPUs of one number, and both between others, where
     the rail is changed in the sender's node. Links carry the nominal rate. -->
<platform version="4.1">
  <zone id="{4}_{0}" routing="DijkstraCache">
)",
                        nodes_, family_.node, taper, tiers, family_.name);
    property("epocast.description",
             fmt::format("{} {} on rail-optimised {} InfiniBand{}", nodes_, family_.node, of_.network, taper));
    property("epocast.device_model", family_.device);
    property("source.device_model", "what a " + family_.node + " is made of");
    property("epocast.cores", of_.cores);
    property("source.cores", of_.cores_source);
    for (const auto& [what, rate] : of_.rates) property(std::string("epocast.") + what, rate);
    property("epocast.memory", family_.memory + " GB");
    property("epocast.memory_bandwidth", family_.memory_bandwidth + " GB/s");
    property("source.peak_rate", of_.rate_source);
    property("source.memory", family_.memory_source + "; all of it counts as usable");
    property("source.memory_bandwidth", family_.memory_source);
    property("source.link_bandwidth", of_.bandwidth_source);
    property(
        "source.link_latency",
        "NVIDIA NCCL, src/graph/tuning.cc, hwLat (a step of a ring, Simple protocol): 3.4 us over NVLink, half on each "
        "of two links; 14 us over the network, half on each port, all switches included");
    property("source.topology", of_.topology_source);
    for (const auto& [what, value] : of_.measured) property(std::string("measured.") + what, value);
    out_ += '\n';
  }

  void links() {
    out_ += '\n';
    const auto link = [this](const std::string& id, double bandwidth, const char* latency) {
      line(R"(<link id="{}" bandwidth="{:g}GBps" latency="{}" sharing_policy="SPLITDUPLEX"/>)", id, bandwidth, latency);
    };
    for (int n = 0; n < nodes_; ++n)
      for (int g = 0; g < kGpus; ++g) {
        link(fmt::format("nvlink-{}-{}", n, g), of_.nvlink, "1.7us");
        link(fmt::format("port-{}-{}", n, g), of_.port, "7us");
      }
    for (int u = 0; u < units() && units() > 1; ++u)
      for (int r = 0; r < kGpus; ++r)
        link(fmt::format("uplink-{}-{}", u, r), nodes_of_unit(u) * of_.port / oversubscription_, "0us");
  }

  void routes() {
    out_ += '\n';
    const auto route = [this](const std::string& from, const std::string& to, const std::string& by) {
      line(R"(<route src="{}" dst="{}"><link_ctn id="{}" direction="UP"/></route>)", from, to, by);
    };
    // Of two shortest routes the one is taken that comes to its end by what is mentioned first: by the rail,
    // everywhere.
    for (int n = 0; n < nodes_; ++n)
      for (int g = 0; g < kGpus; ++g)
        route(fmt::format("gpu-{}-{}", n, g), fmt::format("leaf-{}-{}", n / of_.scalable_unit, g),
              fmt::format("port-{}-{}", n, g));
    for (int n = 0; n < nodes_; ++n)
      for (int g = 0; g < kGpus; ++g)
        route(fmt::format("gpu-{}-{}", n, g), fmt::format("nvswitch-{}", n), fmt::format("nvlink-{}-{}", n, g));
    for (int u = 0; u < units() && units() > 1; ++u)
      for (int r = 0; r < kGpus; ++r)
        route(fmt::format("leaf-{}-{}", u, r), fmt::format("spine-{}", r), fmt::format("uplink-{}-{}", u, r));
  }

  const Family& family_;
  const Generation& of_;
  int nodes_;
  double oversubscription_;
  std::string out_;
};

}  // namespace

std::vector<std::string> pod_families() {
  std::vector<std::string> out;
  for (const Family& family : families()) out.push_back(family.name);
  return out;
}

std::string pod_platform(const std::string& family, int nodes, double oversubscription) {
  const auto found = std::ranges::find(families(), family, &Family::name);
  if (found == families().end())
    throw ConfigError("no platform can be generated by the name '" + family + "'" + name_hint(family, pod_families()));
  if (nodes < 1 || nodes > kMostPodNodes)
    throw ConfigError(fmt::format("nodes: expected 1 to {}, got {}", kMostPodNodes, nodes));
  if (!(oversubscription >= 1 && oversubscription <= 1000))
    throw ConfigError(fmt::format("oversubscription: expected 1 to 1000, got {:g}", oversubscription));
  return PodWriter(*found, nodes, oversubscription).write();
}

}  // namespace epocast
