#include "strategies/layerwise/gradient_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace epocast {
namespace {

class GradientWriter {
 public:
  GradientWriter(const StrategyContext& context, const LayerwisePlan& plan, const LayerwiseSettings& settings,
                 PassWriter& passes, CyclicTaskGraph& graph)
      : context_(context),
        plan_(plan),
        settings_(settings),
        passes_(passes),
        graph_(graph),
        gradients_(passes.gradients()) {}

  void write() {
    add_up_tables();
    std::vector<std::vector<TaskId>> arrivals(passes_.devices().size());
    std::vector<std::pair<TaskId, const MadeGradients*>> reduced;
    std::vector<Bytes> load(passes_.devices().size());
    for (const MadeGradients& made : gradients_) {
      if (made.shard.places.size() < 2) continue;
      switch (settings_.exchange) {
        case GradientExchange::all_reduce: reduced.emplace_back(all_reduce(made), &made); break;
        case GradientExchange::host_server: host_server(made); break;
        case GradientExchange::device_servers: device_server(made, load); break;
        case GradientExchange::sharded_servers: break;  // by operator, below
      }
    }
    if (settings_.exchange == GradientExchange::sharded_servers)
      for (const Together& together : by_operator()) sharded_servers(together);
    for (const auto& [task, made] : reduced)
      for (const std::size_t p : made->shard.places)
        arrivals[static_cast<std::size_t>(plan_.divisions[made->op].device(p))].push_back(task);
    // In the order of the backward pass, on each device.
    std::size_t r = 0;
    std::map<std::pair<std::size_t, std::size_t>, TaskId> updates;  // by layer and device: of all its shards
    for (const MadeGradients& made : gradients_) {
      const bool is_shared = made.shard.places.size() > 1;
      const std::optional<TaskId> sum = is_shared && settings_.exchange == GradientExchange::all_reduce
                                            ? std::optional(reduced[r++].first)
                                            : std::nullopt;
      if (is_shared && !sum) continue;  // a server updates it
      const Division& of = plan_.divisions[made.op];
      for (std::size_t i = 0; i < made.shard.places.size(); ++i) {
        const std::size_t p = made.shard.places[i];
        const auto d = static_cast<std::size_t>(of.device(p));
        const auto [known, is_new] = updates.try_emplace({made.shard.layer, d}, TaskId{});
        if (is_new) {
          known->second =
              graph_.compute(passes_.devices()[d].compute, passes_.trace(of, made.shard.layer, p).times.update,
                             {"update", passes_.name_of(of, layer_name(made), p)});
          if (!settings_.overlap)
            for (const TaskId arrival : arrivals[d]) graph_.after(arrival, known->second);
        }
        if (sum && settings_.overlap) graph_.after(*sum, known->second);
        if (sums_.contains(made.after[i])) graph_.after(made.after[i], known->second);
      }
    }
  }

 private:
  /// Those of tables that stages share, before the places of a stage add up theirs: it is these sums that are made
  /// then.
  void add_up_tables() {
    for (const TableTeam& table : table_teams(plan_)) {
      std::vector<DeviceId> devices;
      std::vector<TaskId*> made;
      for (const TableTeam::Member& member : table.members) {
        devices.push_back(worker(plan_.divisions[member.op], member.place));
        for (MadeGradients& of : gradients_)
          for (std::size_t i = 0; i < of.after.size(); ++i)
            if (of.op == member.op && of.shard.layer == member.layer && of.shard.places[i] == member.place)
              made.push_back(&of.after[i]);
      }
      const auto [group, queue] = team(std::move(devices));
      const std::string& name = passes_.layer_name(table.members.front().layer);
      const TaskId sum =
          graph_.collective(queue, context_.collective.all_reduce(Bytes(table.values * plan_.gradient_bytes), group),
                            {"all-reduce", "gradients of " + name});
      sums_.insert(sum);
      for (const TableTeam::Member& member : table.members) wait_for_backward(sum, member.op);
      for (TaskId* const one : made) {
        graph_.after(*one, sum);
        *one = sum;
      }
    }
  }

  DeviceId worker(const Division& of, std::size_t place) const {
    return context_.workers[static_cast<std::size_t>(of.device(place))];
  }

  std::pair<GroupId, QueueId> team(const MadeGradients& made) {
    std::vector<DeviceId> devices;
    for (const std::size_t p : made.shard.places) devices.push_back(worker(plan_.divisions[made.op], p));
    return team(std::move(devices));
  }

  /// Devices of a group do one collective at a time.
  std::pair<GroupId, QueueId> team(std::vector<DeviceId> devices) {
    const auto found = teams_.find(devices);
    if (found != teams_.end()) return found->second;
    const GroupId group = graph_.add_group(fmt::format("team {}", teams_.size()), devices);
    const QueueId queue = graph_.add_queue(fmt::format("reductions {}", teams_.size()), group, QueueRole::communication,
                                           Discipline::fifo);
    return teams_[std::move(devices)] = {group, queue};
  }

  /// Where nothing overlaps, gradients wait for the end of the backward pass.
  void wait_for_backward(TaskId task, std::size_t op) {
    if (settings_.overlap) return;
    const Division& of = plan_.divisions[op];
    for (std::size_t p = 0; p < of.places(); ++p) graph_.after(*passes_.device(of, p).last_backward, task);
  }

  std::string layer_name(const MadeGradients& made) const { return passes_.layer_name(made.shard.layer); }

  TaskId all_reduce(const MadeGradients& made) {
    const auto [group, queue] = team(made);
    const Bytes bytes(made.shard.values * plan_.gradient_bytes);
    const TaskId task =
        graph_.collective(queue, context_.collective.all_reduce(bytes, group), {"all-reduce", layer_name(made)});
    for (const TaskId after : made.after) graph_.after(after, task);
    wait_for_backward(task, made.op);
    return task;
  }

  /// Updates of a layer's shard by a single place.
  DeviceTime update_time(const MadeGradients& made, std::size_t place) {
    return passes_.trace(plan_.divisions[made.op], made.shard.layer, place).times.update;
  }

  /// What a device does next with the shard: its next forward pass of the operator waits for it.
  void bring(TaskId last, const MadeGradients& made, std::size_t place) {
    graph_.after(last, passes_.first_forward(made.op, place), 1);
  }

  /// One server in host memory takes gradients in and gives parameters out, one message at a time at its rate. The rate
  /// has its updates in it.
  void host_server(const MadeGradients& made) {
    const Division& of = plan_.divisions[made.op];
    if (!server_)
      server_ = graph_.add_queue("host server", passes_.devices().front().group, QueueRole::server, Discipline::fifo);
    const Seconds time = Bytes(made.shard.values * plan_.value_bytes) / settings_.server_rate;
    const TaskId sum =
        graph_.compute_for(passes_.devices().front().group, QueueId::none, Seconds(0), {"sum", layer_name(made)});
    for (std::size_t i = 0; i < made.shard.places.size(); ++i) {
      const std::size_t p = made.shard.places[i];
      const LayerwiseDevice& on = passes_.device(of, p);
      const std::string name = passes_.name_of(of, layer_name(made), p);
      const TaskId push = graph_.compute_for(on.group, *server_, time, {"push", name});
      graph_.after(made.after[i], push);
      wait_for_backward(push, made.op);
      graph_.after(push, sum);
      const TaskId pull = graph_.compute_for(on.group, *server_, time, {"pull", name});
      graph_.after(sum, pull);
      bring(pull, made, p);
    }
  }

  QueueId queue_of(std::optional<QueueId>& queue, const LayerwiseDevice& on, const char* what) {
    if (!queue)
      queue =
          graph_.add_queue(graph_.group(on.group).name + what, on.group, QueueRole::communication, Discipline::fifo);
    return *queue;
  }

  /// One of the places, that with the least to do so far, takes gradients in, updates, and gives parameters out.
  void device_server(const MadeGradients& made, std::vector<Bytes>& load) {
    const Division& of = plan_.divisions[made.op];
    const Bytes bytes(made.shard.values * plan_.value_bytes);
    const Bytes gradients(made.shard.values * plan_.gradient_bytes);
    const auto load_of = [&](std::size_t p) { return load[static_cast<std::size_t>(of.device(p))]; };
    const std::size_t server = *std::ranges::min_element(made.shard.places, {}, load_of);
    load[static_cast<std::size_t>(of.device(server))] += bytes;
    LayerwiseDevice& there = passes_.device(of, server);
    const TaskId update = graph_.compute_for(there.group, there.compute, update_time(made, server),
                                             {"update", passes_.name_of(of, layer_name(made), server)});
    for (std::size_t i = 0; i < made.shard.places.size(); ++i) {
      const std::size_t p = made.shard.places[i];
      if (p == server) {
        graph_.after(made.after[i], update);
        continue;
      }
      LayerwiseDevice& here = passes_.device(of, p);
      const std::string name = passes_.name_of(of, layer_name(made), p);
      const TaskId push = passes_.send(queue_of(here.pushes, here, " pushes"), here, there, gradients, {"push", name});
      graph_.after(made.after[i], push);
      wait_for_backward(push, made.op);
      graph_.after(push, update);
      const TaskId pull = passes_.send(queue_of(there.pulls, there, " pulls"), there, here, bytes, {"pull", name});
      graph_.after(update, pull);
      bring(pull, made, p);
    }
  }

  /// Parameters of one operator that the same places hold.
  using Together = std::vector<const MadeGradients*>;

  std::vector<Together> by_operator() const {
    std::vector<Together> out;
    for (const MadeGradients& made : gradients_) {
      if (made.shard.places.size() < 2) continue;
      auto same = out.rbegin();
      while (same != out.rend() && same->front()->op == made.op && same->front()->shard.places != made.shard.places)
        ++same;
      if (same != out.rend() && same->front()->op == made.op)
        same->push_back(&made);
      else
        out.push_back({&made});
    }
    return out;
  }

  /// Each place takes in its part of the gradients from the others, updates it, and gives it out to them.
  void sharded_servers(const Together& together) {
    const MadeGradients& made = *together.front();
    const Division& of = plan_.divisions[made.op];
    double values = 0;
    for (const MadeGradients* each : together) values += each->shard.values;
    const auto [group, queue] = team(made);
    const auto exchange = [&, group = group, queue = queue](CollectiveOp op, double value_bytes, const char* what) {
      return graph_.collective(queue,
                               {.op = op,
                                .algorithm = CollectiveAlgorithm::pairwise,
                                .level = context_.collective.level,
                                .group = group,
                                .bytes = Bytes(values * value_bytes),
                                .gamma = context_.collective.gamma},
                               {what, of.op().name});
    };
    const TaskId push = exchange(CollectiveOp::reduce_scatter, plan_.gradient_bytes, "push");
    for (const MadeGradients* each : together)
      for (const TaskId after : each->after) graph_.after(after, push);
    wait_for_backward(push, made.op);
    const TaskId pull = exchange(CollectiveOp::all_gather, plan_.value_bytes, "pull");
    const double share = 1 / static_cast<double>(made.shard.places.size());
    for (const std::size_t p : made.shard.places) {
      DeviceTime time;
      for (const MadeGradients* each : together) time += update_time(*each, p) * share;
      const TaskId update = passes_.compute(passes_.device(of, p), time,
                                            {"update", passes_.name_of(of, of.op().name, p)}, /*must_queue=*/true);
      graph_.after(push, update);
      graph_.after(update, pull);
      bring(pull, made, p);
    }
  }

  const StrategyContext& context_;
  const LayerwisePlan& plan_;
  const LayerwiseSettings& settings_;
  PassWriter& passes_;
  CyclicTaskGraph& graph_;
  std::vector<MadeGradients> gradients_;  ///< in the order of the backward pass
  std::set<TaskId> sums_;                 ///< of tables
  std::map<std::vector<DeviceId>, std::pair<GroupId, QueueId>> teams_;
  std::optional<QueueId> server_;
};

}  // namespace

void write_exchange(const StrategyContext& context, const LayerwisePlan& plan, const LayerwiseSettings& settings,
                    PassWriter& passes, CyclicTaskGraph& graph) {
  GradientWriter(context, plan, settings, passes, graph).write();
}

}  // namespace epocast
