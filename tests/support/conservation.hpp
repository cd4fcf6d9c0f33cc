#pragma once
// What a graph must send, derived from the graph alone.

#include <optional>
#include <string>
#include <vector>

#include "sim/collective.hpp"
#include "sim/task_graph.hpp"

namespace epocast::testing {

/// Bytes that one iteration of the graph sends between different devices, by sending device. `algorithms`: what the
/// collectives took, by task; empty: what they name.
inline std::vector<double> bytes_sent_per_iteration(
    const CyclicTaskGraph& graph, std::size_t devices,
    const std::vector<std::optional<CollectiveAlgorithm>>& algorithms = {}) {
  std::vector<double> sent(devices, 0);
  for (std::size_t t = 0; t < graph.tasks().size(); ++t) {
    const Task& task = graph.tasks()[t];
    const auto& ranks = graph.group(task.ranks).devices;
    if (const auto* transfer = std::get_if<Transfer>(&task.work)) {
      const auto& from = graph.group(transfer->from).devices;
      const auto& to = graph.group(transfer->to).devices;
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        const DeviceId a = from[from.size() == 1 ? 0 : r], b = to[to.size() == 1 ? 0 : r];
        if (a != b) sent[static_cast<std::size_t>(a)] += transfer->bytes.value;
      }
    } else if (const auto* collective = std::get_if<Collective>(&task.work)) {
      const int size = static_cast<int>(ranks.size());
      const CollectiveAlgorithm algorithm = algorithms.empty() ? collective->algorithm : algorithms[t].value();
      const CollectiveSchedule schedule = make_schedule(collective->op, algorithm, size, collective->bytes.value);
      for (const Round& round : schedule.rounds)
        for_each_message(round, size, [&](const Message& m) {
          sent[static_cast<std::size_t>(ranks[static_cast<std::size_t>(m.from)])] += round.repeat * m.bytes;
        });
    }
  }
  return sent;
}

inline double sum(const std::vector<double>& values) {
  double total = 0;
  for (const double v : values) total += v;
  return total;
}

}  // namespace epocast::testing
