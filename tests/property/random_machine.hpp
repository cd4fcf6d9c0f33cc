#pragma once
// Machines of random studies: a star of equal devices, or nodes of several behind a port each.

#include <fmt/format.h>

#include <string>

namespace epocast::testing {

struct MachineParts {
  int nodes = 1, devices_per_node = 1;  ///< with one device a node: a star
  double speed = 0;                     ///< FLOP/s
  double unequal = 1;                   ///< every third device of several a node has this share of the speed
  double memory_bandwidth = 0;          ///< B/s
  double inside = 0, outside = 0;       ///< B/s of a device's link in its node, and of what leads out of it
  double latency = 0;                   ///< s, of a link that leads out; half of it inside
};

inline std::string machine_xml(const MachineParts& m) {
  std::string hosts, links, routes;
  const bool is_star = m.devices_per_node == 1;
  if (is_star) {
    hosts = fmt::format(
        R"(<cluster id="star" prefix="d" radical="0-{}" suffix="" speed="{:.17g}f" bw="{:.17g}Bps" lat="{:.17g}s" sharing_policy="SPLITDUPLEX"/>)",
        m.nodes - 1, m.speed, m.outside, m.latency);
  } else {
    const auto join = [&](const std::string& end, const std::string& centre, const std::string& link, double bandwidth,
                          double delay) {
      links += fmt::format(
          "<link id=\"{}\" bandwidth=\"{:.17g}Bps\" latency=\"{:.17g}s\" sharing_policy=\"SPLITDUPLEX\"/>\n", link,
          bandwidth, delay);
      for (const bool up : {true, false})
        routes += fmt::format(
            "<route src=\"{}\" dst=\"{}\" symmetrical=\"NO\"><link_ctn id=\"{}\" direction=\"{}\"/></route>\n",
            up ? end : centre, up ? centre : end, link, up ? "UP" : "DOWN");
    };
    hosts = "<router id=\"switch\"/>\n";
    for (int n = 0; n < m.nodes; ++n) {
      const std::string node = fmt::format("node-{}", n);
      hosts += fmt::format("<router id=\"{}\"/>\n", node);
      join(node, "switch", "port-" + node, m.outside, m.latency);
      for (int d = 0; d < m.devices_per_node; ++d) {
        const int number = n * m.devices_per_node + d;
        const std::string device = fmt::format("d{}", number);
        hosts += fmt::format("<host id=\"{}\" speed=\"{:.17g}f\"><prop id=\"epocast.node\" value=\"{}\"/></host>\n",
                             device, number % 3 == 1 ? m.unequal * m.speed : m.speed, node);
        join(device, node, "slot-" + device, m.inside, m.latency / 2);
      }
    }
  }
  return fmt::format(R"(<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="random" routing="{}">
    <prop id="epocast.device_model" value="synthetic"/>
    <prop id="epocast.peak_rate_fp16" value="{:.17g} FLOP/s"/>
    <prop id="epocast.memory" value="64 GB"/>
    <prop id="epocast.memory_bandwidth" value="{:.17g} B/s"/>
    <prop id="epocast.cores" value="16"/>
{}{}{}
  </zone>
</platform>
)",
                     is_star ? "Full" : "Floyd", 4 * m.speed, m.memory_bandwidth, hosts, links, routes);
}

}  // namespace epocast::testing
