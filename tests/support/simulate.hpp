#pragma once
// Platforms and executions for tests.

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "platforms/platform_loader.hpp"
#include "sim/execution_archive.hpp"
#include "sim/executor.hpp"
#include "tests/support/in_child.hpp"

namespace epocast::testing {

/// A shipped platform.
inline Cluster platform(const std::string& name) {
  return load_platform(std::filesystem::path(EPOCAST_SOURCE_DIR) / "platforms" / (name + ".xml"));
}

/// A platform file that exists as long as this does.
class TemporaryPlatform {
 public:
  explicit TemporaryPlatform(const std::string& xml) {
    static int made = 0;
    file_ = std::filesystem::temp_directory_path() / fmt::format("epocast-test-{}-{}.xml", getpid(), made++);
    std::ofstream(file_) << xml;
    cluster_ = load_platform(file_);
  }
  ~TemporaryPlatform() {
    std::error_code ignored;
    std::filesystem::remove(file_, ignored);
  }
  TemporaryPlatform(const TemporaryPlatform&) = delete;
  TemporaryPlatform& operator=(const TemporaryPlatform&) = delete;

  const Cluster& cluster() const { return cluster_; }

 private:
  std::filesystem::path file_;
  Cluster cluster_;
};

/// A star of equal devices: `bandwidth` [B/s] of each device's up- and downlink, `latency` [s] from device to device.
/// Device memory moves 500 GB/s.
class Star : public TemporaryPlatform {
 public:
  Star(int devices, double bandwidth, double latency)
      : TemporaryPlatform(fmt::format(R"(<?xml version="1.0"?>
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
                                      devices - 1, bandwidth, latency / 2)) {}
};

/// A graph and how to execute it.
struct Run {
  CyclicTaskGraph graph;
  ExecutionOptions options = {};
};

/// Executes the runs one after the other on the engine, in a child; unpack() reads what it returns.
inline std::string execute_packed(const Cluster& cluster, SimEngine& engine, const std::vector<Run>& runs) {
  std::vector<ExecutionResult> results;
  for (const Run& run : runs) results.push_back(execute(run.graph, cluster, engine, run.options));
  Archive archive;
  archive(results);
  return archive.bytes();
}

/// The same on an engine of their own: the first of this process.
inline std::string execute_packed(const Cluster& cluster, const std::vector<Run>& runs) {
  SimEngine engine(cluster);
  return execute_packed(cluster, engine, runs);
}

inline std::vector<ExecutionResult> unpack(const std::string& packed) {
  std::vector<ExecutionResult> results;
  Archive archive(packed);
  archive(results);
  return results;
}

/// Executes the runs one after the other on one engine, in a child.
inline std::vector<ExecutionResult> simulate(const Cluster& cluster, const std::vector<Run>& runs) {
  return unpack(in_child([&] { return execute_packed(cluster, runs); }));
}

inline ExecutionResult simulate(const Cluster& cluster, const CyclicTaskGraph& graph,
                                const ExecutionOptions& options = {}) {
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
