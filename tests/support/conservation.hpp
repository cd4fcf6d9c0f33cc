#pragma once
// What a graph must send, derived from the graph alone.

#include <optional>
#include <string>
#include <vector>

#include "sim/collective.hpp"
#include "sim/task_graph.hpp"

namespace epocast::testing {

/// Whether collectives that run together may be carried out by another algorithm than each by itself: which of them
/// do, and so how many bytes who sends, is known in simulated time only.
inline bool fuses_what_it_chooses(const CyclicTaskGraph& graph) {
  for (const Task& task : graph.tasks()) {
    const auto* collective = std::get_if<Collective>(&task.work);
    if (collective != nullptr && is_choice(collective->algorithm) && task.queue != QueueId::none &&
        graph.queue(task.queue).fusion_limit.value > 0)
      return true;
  }
  return false;
}

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
      const int size = static_cast<int>(task.axis.extent);
      const CollectiveAlgorithm algorithm = algorithms.empty() ? collective->algorithm : algorithms[t].value();
      const CollectiveSchedule schedule = make_schedule(collective->op, algorithm, size, collective->bytes.value);
      for (std::uint32_t team = 0; team < task.axis.teams(static_cast<std::uint32_t>(ranks.size())); ++team)
        for (const Round& round : schedule.rounds)
          for_each_message(round, size, [&](const Message& m) {
            const DeviceId from = ranks[task.axis.rank_at(team, static_cast<std::uint32_t>(m.from))];
            sent[static_cast<std::size_t>(from)] += round.repeat * m.bytes;
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
