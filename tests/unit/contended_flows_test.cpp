// Flows that share links get max-min fair rates, however many run between the same two hosts and whenever they start.
// The reference fills links step by step, flow by flow.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "sim/simgrid/engine.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::contended_flows_test {

namespace {

constexpr double kBandwidth = 1e9;  // B/s, of each host's uplink and downlink
constexpr int kHosts = 4;

struct Flow {
  double start;  // s
  int from, to;
  double bytes;
};

/// Rates of flows that share up- and downlinks: the link that leaves its flows least is filled first.
std::vector<double> fair_rates(const std::vector<Flow>& flows, const std::vector<std::size_t>& moving) {
  std::vector<double> rate(flows.size(), 0), left(2 * kHosts, kBandwidth);
  std::vector<std::size_t> open = moving;
  const auto crosses = [&](std::size_t flow, int link) {
    return link < kHosts ? flows[flow].from == link : flows[flow].to == link - kHosts;
  };
  while (!open.empty()) {
    int narrow = -1;
    double least = std::numeric_limits<double>::infinity();
    for (int link = 0; link < 2 * kHosts; ++link) {
      const auto n = std::ranges::count_if(open, [&](std::size_t f) { return crosses(f, link); });
      if (n > 0 && left[static_cast<std::size_t>(link)] / static_cast<double>(n) < least) {
        narrow = link;
        least = left[static_cast<std::size_t>(link)] / static_cast<double>(n);
      }
    }
    for (const std::size_t f : open) {
      if (!crosses(f, narrow)) continue;
      rate[f] = least;
      left[static_cast<std::size_t>(flows[f].from)] -= least;
      left[static_cast<std::size_t>(flows[f].to + kHosts)] -= least;
    }
    std::erase_if(open, [&](std::size_t f) { return crosses(f, narrow); });
  }
  return rate;
}

/// When each ends [s].
std::vector<double> reference(const std::vector<Flow>& flows) {
  std::vector<double> end(flows.size(), -1), left;
  for (const Flow& flow : flows) left.push_back(flow.bytes);
  for (double now = 0;;) {
    std::vector<std::size_t> moving;
    double next = std::numeric_limits<double>::infinity();
    for (std::size_t f = 0; f < flows.size(); ++f)
      if (flows[f].start > now)
        next = std::min(next, flows[f].start);
      else if (end[f] < 0)
        moving.push_back(f);
    if (moving.empty() && next == std::numeric_limits<double>::infinity()) return end;
    const std::vector<double> rate = fair_rates(flows, moving);
    for (const std::size_t f : moving) next = std::min(next, now + left[f] / rate[f]);
    for (const std::size_t f : moving) {
      left[f] -= rate[f] * (next - now);
      if (left[f] <= 1e-3) end[f] = next;
    }
    now = next;
  }
}

/// Starts each flow at its date and notes when it ends.
class Program : public SimEngine::Listener {
 public:
  Program(SimEngine& engine, const std::vector<Flow>& flows) : engine_(engine), flows_(flows), end_(flows.size(), -1) {
    engine.set_listener(*this);
    for (std::size_t f = 0; f < flows.size(); ++f)
      if (flows[f].start > 0)
        engine.start_timer(flows[f].start, f);
      else
        on_timer(f);
    engine.run();
  }
  void on_timer(std::uint64_t f) override { engine_.start_flow(flows_[f].from, flows_[f].to, flows_[f].bytes, f); }
  void on_flow_done(std::uint64_t f) override { end_[f] = end_[f] < 0 ? engine_.now() : -2; }
  const std::vector<double>& ends() const { return end_; }

 private:
  SimEngine& engine_;
  const std::vector<Flow>& flows_;
  std::vector<double> end_;
};

std::string differences(const Cluster& cluster, const std::vector<Flow>& flows, const std::vector<double>& expected) {
  return testing::in_child([&] {
    SimEngine engine(cluster);
    const Program program(engine, flows);
    std::string out;
    for (std::size_t f = 0; f < flows.size(); ++f)
      if (std::abs(program.ends()[f] - expected[f]) > 1e-9 * std::max(1.0, expected[f]))
        out += fmt::format("flow {} ends at {:.12g} s instead of {:.12g}; ", f, program.ends()[f], expected[f]);
    return out;
  });
}

}  // namespace

TEST_CASE("flows share links fairly, alone and many between the same hosts", "[engine]") {
  const testing::Star star(kHosts, kBandwidth, 0);
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); };
    std::vector<Flow> flows;
    for (int f = 0; f < 60; ++f) {
      // Several at a date, some of one size, some between hosts that already have some.
      const bool again = f > 0 && below(2) == 0;
      const int from = again ? flows.back().from : below(kHosts);
      const int to = again ? flows.back().to : (from + 1 + below(kHosts - 1)) % kHosts;
      const double start = again && below(2) == 0 ? flows.back().start : 0.1 * below(20);
      flows.push_back({start, from, to, below(3) == 0 ? 5e7 : std::floor(std::exp(1.0 * below(19)))});
    }
    INFO("seed " << seed);
    CHECK(differences(star.cluster(), flows, reference(flows)).empty());
  }
}

TEST_CASE("a switch that never blocks gives each of several flows between two hosts its full rate", "[engine]") {
  const testing::TemporaryPlatform platform(R"(<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="pair" routing="Full">
    <prop id="epocast.device_model" value="synthetic"/>
    <prop id="epocast.memory" value="16 GB"/>
    <prop id="epocast.memory_bandwidth" value="500 GB/s"/>
    <host id="a" speed="1Tf"/>
    <host id="b" speed="1Tf"/>
    <link id="switch" bandwidth="1GBps" latency="0us" sharing_policy="FATPIPE"/>
    <route src="a" dst="b"><link_ctn id="switch"/></route>
  </zone>
</platform>
)");
  const std::vector<Flow> flows = {{0, 0, 1, 1e9}, {0, 0, 1, 2e9}, {0.5, 0, 1, 1e9}};
  CHECK(differences(platform.cluster(), flows, {1, 2, 1.5}).empty());
}

}  // namespace epocast::contended_flows_test
