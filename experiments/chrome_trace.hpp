#pragma once
// Timelines in the Trace Event Format of Chrome, which Perfetto reads too.

#include <filesystem>
#include <memory>
#include <string>

#include "sim/cluster.hpp"
#include "sim/execution.hpp"
#include "sim/task_graph.hpp"

namespace epocast {

/// Collects the timelines of a scenario's phases and writes one JSON file: a process per device; lanes for its
/// computation, its communication and its server work; a slice per task; arrows from producers to consumers in other
/// lanes. Scope: a folded result shows the first of each group of interchangeable ranks; what is left out (extrapolated
/// iterations, slices and arrows beyond the limits of TraceSlices) is said in the file's otherData.notes.
class ChromeTrace {
 public:
  ChromeTrace();
  ~ChromeTrace();

  /// Adds a phase that starts `start` seconds into the run.
  void add(const CyclicTaskGraph& graph, const Cluster& cluster, const ExecutionResult& result, double start);

  /// Writes the file, complete or not at all (by renaming). Throws ConfigError if it cannot be written.
  void write(const std::filesystem::path& file) const;
  std::string text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace epocast
