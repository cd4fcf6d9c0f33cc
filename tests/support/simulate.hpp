#pragma once
// Platforms and executions for tests.

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "platforms/platform_loader.hpp"
#include "sim/executor.hpp"
#include "tests/support/archive.hpp"
#include "tests/support/in_child.hpp"

namespace epocast::testing {

/// A shipped platform.
inline Cluster platform(const std::string& name) {
  return load_platform(std::filesystem::path(EPOCAST_SOURCE_DIR) / "platforms" / (name + ".xml"));
}

/// A star of equal devices: `bandwidth` [B/s] of each device's up- and downlink, `latency` [s] from device to device.
/// Device memory moves 500 GB/s. Its file is temporary.
class Star {
 public:
  Star(int devices, double bandwidth, double latency) {
    static int made = 0;
    file_ = std::filesystem::temp_directory_path() / fmt::format("epocast-star-{}-{}.xml", getpid(), made++);
    std::ofstream(file_) << fmt::format(R"(<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="test_star" routing="Full">
    <prop id="epocast.device_model" value="synthetic"/>
    <prop id="epocast.memory" value="16 GB"/>
    <prop id="epocast.memory_bandwidth" value="500 GB/s"/>
    <cluster id="star" prefix="d" radical="0-{}" suffix="" speed="1Tf" bw="{:.17g}Bps" lat="{:.17g}s" sharing_policy="SPLITDUPLEX"/>
  </zone>
</platform>
)",
                                        devices - 1, bandwidth, latency / 2);
    cluster_ = load_platform(file_);
  }
  ~Star() {
    std::error_code ignored;
    std::filesystem::remove(file_, ignored);
  }
  Star(const Star&) = delete;
  Star& operator=(const Star&) = delete;

  const Cluster& cluster() const { return cluster_; }

 private:
  std::filesystem::path file_;
  Cluster cluster_;
};

/// A graph and how to execute it.
struct Run {
  CyclicTaskGraph graph;
  ExecutionOptions options = {};
};

/// Executes the runs one after the other on one engine, in a child.
inline std::vector<ExecutionResult> simulate(const Cluster& cluster, const std::vector<Run>& runs) {
  std::vector<ExecutionResult> results;
  Archive archive(in_child([&] {
    SimEngine engine(cluster.platform_file.string());
    for (const Run& run : runs) results.push_back(execute(run.graph, cluster, engine, run.options));
    Archive out;
    out(results);
    return out.bytes();
  }));
  archive(results);
  return results;
}

inline ExecutionResult simulate(const Cluster& cluster, const CyclicTaskGraph& graph, const ExecutionOptions& options = {}) {
  return simulate(cluster, std::vector{Run{graph, options}}).front();
}

/// The interval of a task in the recorded timeline. Throws std::runtime_error if there is none.
inline Interval interval(const CyclicTaskGraph& graph, const ExecutionResult& result, const std::string& label,
                         std::uint32_t rank = 0, std::int64_t iteration = 0) {
  for (const Interval& i : result.timeline.intervals)
    if (graph.tasks()[i.task].label.text() == label && i.rank == rank && i.iteration == iteration) return i;
  throw std::runtime_error(fmt::format("no '{}' of rank {} in iteration {}", label, rank, iteration));
}

}  // namespace epocast::testing
