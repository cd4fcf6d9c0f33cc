#include "sim/least_time.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "sim/compiled_graph.hpp"
#include "sim/cycle_bound.hpp"
#include "sim/network_plan.hpp"

namespace epocast {
namespace {

// Levels of a collective agree within 0.01 %, and flows are rounded to parts of a byte.
constexpr double kSureOfNetwork = 0.999;
// Counting messages takes time, too; some of them are a bound as well.
constexpr std::size_t kMostMessages = 2'000'000;

/// Whether one rank stands for all of its group as far as computations go.
bool ranks_compute_alike(const CyclicTaskGraph& graph) {
  for (const Queue& queue : graph.queues())
    if (std::ranges::any_of(queue.slowdown, [&](double s) { return s != queue.slowdown.front(); })) return false;
  return std::ranges::all_of(graph.tasks(), [](const Task& task) {
    const auto* compute = std::get_if<Compute>(&task.work);
    return compute == nullptr || compute->duration.is_same();
  });
}

double compute_time(const CompiledGraph& compiled, Instance instance) {
  const Task& task = compiled.task(instance.task);
  double slowdown = 1;
  DeviceId device = compiled.device(instance);
  if (task.queue != QueueId::none) {
    const Queue& queue = compiled.graph->queue(task.queue);
    const std::vector<DeviceId>& devices = compiled.graph->group(queue.group).devices;
    const std::size_t rank = devices.size() == 1 ? 0 : compiled.first_rank(instance);
    device = devices[rank];
    if (rank < queue.slowdown.size()) slowdown = queue.slowdown[rank];
  }
  return slowdown * std::get<Compute>(task.work).duration.on(device).value;
}

double communication_time(const CompiledGraph& compiled, Instance instance, const NetworkPlan& network,
                          const CommunicationCosts& costs) {
  const Task& task = compiled.task(instance.task);
  // What waits together may run as one, in less time than one by one.
  if (task.queue != QueueId::none && compiled.graph->queue(task.queue).fusion_limit.value > 0) return 0;
  double time = network.idle_time(instance.task, instance.rank);
  if (const auto* collective = std::get_if<Collective>(&task.work)) {
    if (collective->measured) return time;
    time += costs.overhead + costs.copy_time * collective->bytes.value;
  }
  return kSureOfNetwork * time;
}

/// s per iteration that the busiest shared link needs for what it carries.
double busiest_link(const CyclicTaskGraph& graph, const NetworkPlan& network, SimEngine& engine) {
  std::vector<double> bytes(static_cast<std::size_t>(engine.link_count()));
  std::size_t messages = 0;
  const auto add = [&](int from, int to, double size) {
    ++messages;
    if (from == to) return;
    for (const int link : engine.route(from, to).links) bytes[static_cast<std::size_t>(link)] += size;
  };
  for (std::uint32_t t = 0; t < graph.tasks().size() && messages < kMostMessages; ++t) {
    const Work& work = graph.tasks()[t].work;
    if (const auto* transfer = std::get_if<Transfer>(&work)) {
      for (std::uint32_t r = 0; r < graph.group(graph.tasks()[t].ranks).devices.size(); ++r) {
        const auto [from, to] = network.ends(*transfer, r);
        add(from, to, transfer->bytes.value);
      }
    } else if (std::holds_alternative<Collective>(work)) {
      for (std::uint32_t team = 0; team < static_cast<std::uint32_t>(graph.width_of(TaskId(t))); ++team) {
        const CollectivePlan& plan = network.collective(t, team);
        if (plan.level == CollectiveLevel::closed_form) break;  // loads no links
        const std::vector<int>& hosts = network.team_hosts(t, team);
        for (const FlowStep& step : plan.steps)
          for_each_message(step.flows, static_cast<int>(hosts.size()), [&](const Message& m) {
            add(hosts[static_cast<std::size_t>(m.from)], hosts[static_cast<std::size_t>(m.to)], m.bytes);
          });
      }
    }
  }
  double busiest = 0;
  for (int link = 0; link < engine.link_count(); ++link)
    if (engine.link_sharing(link) == LinkSharing::kShared)
      busiest = std::max(busiest, bytes[static_cast<std::size_t>(link)] / engine.link_bandwidth(link));
  return kSureOfNetwork * busiest;
}

/// See LeastTime::computing.
std::map<DeviceId, double> computing_time(const CompiledGraph& compiled) {
  std::map<QueueId, std::map<std::uint32_t, double>> by_queue;  // and rank
  for (std::uint32_t t = 0; t < compiled.tasks.size(); ++t) {
    const Task& task = compiled.task(t);
    if (!std::holds_alternative<Compute>(task.work) || task.queue == QueueId::none ||
        compiled.graph->queue(task.queue).role != QueueRole::compute)
      continue;
    for (std::uint32_t r = 0; r < compiled.tasks[t].width; ++r)
      by_queue[task.queue][compiled.first_rank({t, r})] += compute_time(compiled, {t, r});
  }
  std::map<DeviceId, double> by_device;
  for (const auto& [queue, ranks] : by_queue) {
    const std::vector<DeviceId>& devices = compiled.graph->group(compiled.graph->queue(queue).group).devices;
    for (std::size_t d = 0; d < devices.size(); ++d) {
      const auto own = ranks.find(compiled.folded ? 0 : static_cast<std::uint32_t>(d));
      if (own != ranks.end()) by_device[devices[d]] = std::max(by_device[devices[d]], own->second);
    }
  }
  return by_device;
}

}  // namespace

double LeastTime::iteration() const { return std::max(busy, cycle / lag); }

double LeastTime::total(double iterations) const {
  return std::max(busy * iterations, cycle * std::floor(iterations / lag));
}

LeastTime least_time(const CyclicTaskGraph& graph, const Cluster& cluster, SimEngine* engine,
                     const CommunicationCosts& costs, bool even) {
  std::optional<NetworkPlan> network;
  if (engine != nullptr) {
    engine->set_handshake(costs.handshake);
    engine->set_window(costs.window);
    network.emplace(graph, cluster, *engine);
  }
  const bool one_rank = even && (network ? network->ranks_interchangeable() : ranks_compute_alike(graph));
  const CompiledGraph compiled = compile(graph, one_rank);
  const auto duration = [&](Instance i) {
    if (std::holds_alternative<Compute>(compiled.task(i.task).work)) return compute_time(compiled, i);
    return network ? communication_time(compiled, i, *network, costs) : 0.0;
  };

  LeastTime out;
  std::vector<double> by_slot(compiled.slot_discipline.size());
  for (std::uint32_t t = 0; t < compiled.tasks.size(); ++t) {
    if (compiled.tasks[t].first_slot < 0) continue;
    for (std::uint32_t r = 0; r < compiled.tasks[t].width; ++r) {
      const double seconds = duration({t, r});
      compiled.for_each_slot({t, r},
                             [&](std::uint32_t slot) { out.busy = std::max(out.busy, by_slot[slot] += seconds); });
    }
  }
  out.computing = computing_time(compiled);
  if (network) out.busy = std::max(out.busy, busiest_link(graph, *network, *engine));
  const CycleBound cycle = maximum_cycle_ratio(compiled, duration, {});
  out.cycle = std::accumulate(cycle.durations.begin(), cycle.durations.end(), 0.0);
  out.lag = std::max(1, std::accumulate(cycle.lags.begin(), cycle.lags.end(), 0));
  return out;
}

}  // namespace epocast
