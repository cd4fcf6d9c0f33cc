#pragma once
// How busy servers are.

#include <cstdint>
#include <vector>

#include "sim/compiled_graph.hpp"
#include "sim/execution.hpp"

namespace epocast {

/// Adds up what queues with the role of a server have done.
class ServerAccounts {
 public:
  explicit ServerAccounts(const CompiledGraph& graph) : graph_(graph), services_(graph.graph->queues().size()) {}

  /// A task of the queue (or of none) has ended that took so long [s].
  void served(QueueId queue, double seconds) {
    if (queue == QueueId::none) return;
    Service& service = services_[CyclicTaskGraph::index(queue)];
    service.busy += seconds;
    ++service.served;
  }

  /// By queue that is a server, over a run of so many seconds; none of a run that took no time.
  std::vector<ServerReport> report(double makespan) const;

 private:
  struct Service {
    double busy = 0;  ///< s
    std::int64_t served = 0;
  };
  const CompiledGraph& graph_;
  std::vector<Service> services_;  ///< by queue
};

}  // namespace epocast
