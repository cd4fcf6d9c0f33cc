#include "sim/server_accounts.hpp"

namespace epocast {

std::vector<ServerReport> ServerAccounts::report(double makespan) const {
  std::vector<ServerReport> servers;
  for (std::size_t q = 0; q < services_.size(); ++q) {
    const Queue& queue = graph_.graph->queues()[q];
    if (queue.role != QueueRole::server || makespan <= 0) continue;
    const std::size_t devices = graph_.folded ? 1 : graph_.graph->group(queue.group).devices.size();
    servers.push_back({queue.name, services_[q].busy / makespan / static_cast<double>(devices), services_[q].served});
  }
  return servers;
}

}  // namespace epocast
