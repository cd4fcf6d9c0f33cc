#include "strategies/layerwise/step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

namespace epocast {
namespace {

/// Tasks of the places of an operator.
using ByPlace = std::vector<TaskId>;

class Writer {
 public:
  Writer(const StrategyContext& context, const LayerwisePlan& plan, TileTimes& times, const LayerwiseSettings& settings)
      : context_(context), plan_(plan), times_(times), settings_(settings) {
    for (std::size_t d = 0; d < context.workers.size(); ++d) {
      const std::string name = fmt::format("device {}", d);
      const GroupId group = graph_.add_group(name, {context.workers[d]});
      const auto queue = [&](const char* what, QueueRole role, Discipline discipline) {
        return graph_.add_queue(name + what, group, role, discipline);
      };
      devices_.push_back({group, queue("", QueueRole::compute, Discipline::program_order),
                          queue(" activations", QueueRole::communication, Discipline::fifo),
                          queue(" gradients", QueueRole::communication, Discipline::fifo), std::nullopt, std::nullopt,
                          std::nullopt});
    }
    for (const Division& division : plan.divisions)
      for (std::size_t p = 0; p < division.places(); ++p) times.ask(division.number(), division.tile(p));
  }

  CyclicTaskGraph write() {
    const std::size_t operators = plan_.divisions.size();
    forward_.resize(operators);
    made_.resize(operators);
    backward_.resize(operators);
    needs_.resize(operators);
    for (const OperatorEdge& edge : plan_.network->edges()) {
      needs_[edge.to].push_back({edge, pieces(plan_.divisions[edge.from], plan_.divisions[edge.to], edge.input)});
      in_rotation(needs_[edge.to].back().pieces, plan_.divisions[edge.from], plan_.divisions[edge.to]);
    }
    for (std::size_t op = 0; op < operators; ++op) forward(op);
    for (std::size_t op = operators; op-- > 0;) backward(op);
    exchange();
    return std::move(graph_);
  }

 private:
  struct Device {
    GroupId group{};
    QueueId compute{}, activations{}, gradients{};
    std::optional<QueueId> pushes, pulls;
    std::optional<TaskId> last_backward;
  };
  struct Need {
    OperatorEdge edge;
    std::vector<Piece> pieces;
  };
  /// Gradients of a shard, when they are there.
  struct Made {
    ParameterShard shard;
    std::size_t op = 0;
    std::vector<TaskId> after;  ///< by place of the shard
  };

  Device& device(const Division& of, std::size_t place) { return devices_[static_cast<std::size_t>(of.device(place))]; }

  std::string name_of(const Division& of, const std::string& layer, std::size_t place) const {
    return of.places() == 1 ? layer : fmt::format("{} part {}", layer, place);
  }

  /// Each sender begins with the receiver behind it, so that not all send to the same one at first.
  void in_rotation(std::vector<Piece>& list, const Division& from, const Division& to) const {
    const int workers = static_cast<int>(devices_.size());
    std::ranges::stable_sort(list, {}, [&](const Piece& piece) {
      return std::pair((to.device(piece.to) - from.device(piece.from) + workers) % workers, piece.from);
    });
  }

  TaskId compute(Device& on, const DeviceTime& time, const Label& label, bool must_queue = false) {
    return graph_.compute_for(on.group, time.any() || must_queue ? on.compute : QueueId::none, time, label);
  }

  TaskId send(QueueId queue, const Device& from, const Device& to, Bytes bytes, const char* what,
              const std::string& name) {
    return graph_.transfer(from.group, queue, {from.group, to.group, bytes}, {what, name});
  }
  Bytes bytes_of(const Piece& piece) const { return Bytes(static_cast<double>(piece.values) * plan_.value_bytes); }

  const LayerTrace& trace(const Division& of, std::size_t layer, std::size_t place) {
    return times_.trace(of.number(), layer, of.tile(place));
  }

  void forward(std::size_t op) {
    const Division& own = plan_.divisions[op];
    const bool sums = own.degrees()[Dimension::k] > 1;
    ByPlace first;
    for (std::size_t p = 0; p < own.places(); ++p) {
      DeviceTime alone, rest;
      for (const std::size_t l : own.op().layers)
        (sums && l != own.op().layers.front() ? rest : alone) += trace(own, l, p).times.forward;
      const std::string name = name_of(own, own.op().name, p);
      first.push_back(compute(device(own, p), alone, {"forward", name}, own.op().inputs.empty()));
      if (sums) rest_.push_back(rest);
      made_[op].push_back(first.back());
    }
    forward_[op] = first;
    for (const Need& need : needs_[op]) {
      const Division& from = plan_.divisions[need.edge.from];
      for (const Piece& piece : need.pieces) {
        const TaskId source = made_[need.edge.from][piece.from];
        if (piece.local) {
          graph_.after(source, first[piece.to]);
          continue;
        }
        Device& sender = device(from, piece.from);
        const TaskId message =
            send(sender.activations, sender, device(own, piece.to), bytes_of(piece), "send activations",
                 fmt::format("{} to {}", name_of(from, from.op().name, piece.from), own.op().name));
        graph_.after(source, message);
        graph_.after(message, first[piece.to]);
      }
    }
    if (!sums) return;
    for (std::size_t p = 0; p < own.places(); ++p) {
      // Normalisation and activation wait for the sums, of which a place keeps its part.
      const double share = 1.0 / own.degrees()[Dimension::k];
      const std::string name = name_of(own, own.op().name, p);
      made_[op][p] = compute(device(own, p), rest_[p] * share, {"forward sums", name}, true);
    }
    rest_.clear();
    for (const Piece& piece : sum_pieces(own)) {
      if (piece.local) {
        graph_.after(first[piece.from], made_[op][piece.to]);
        continue;
      }
      Device& sender = device(own, piece.from);
      const TaskId message = send(sender.activations, sender, device(own, piece.to), bytes_of(piece), "send sums",
                                  name_of(own, own.op().name, piece.from));
      graph_.after(first[piece.from], message);
      graph_.after(message, made_[op][piece.to]);
    }
  }

  void backward(std::size_t op) {
    const Division& own = plan_.divisions[op];
    const bool sums = own.degrees()[Dimension::k] > 1;
    const std::vector<ParameterShard> shards = own.shards();
    std::vector<std::map<std::size_t, TaskId>> gradient_of(own.places());  // by layer with parameters
    ByPlace first, before_sums, last;
    for (std::size_t p = 0; p < own.places(); ++p) {
      Device& on = device(own, p);
      const std::string name = name_of(own, own.op().name, p);
      std::optional<TaskId> begin, end, summed;
      DeviceTime pending;
      bool any = false;
      const auto flush = [&](const char* what, bool must_queue) {
        const TaskId task = compute(on, pending, {what, name}, must_queue);
        if (end) graph_.after(*end, task);
        if (!begin) begin = task;
        end = task;
        pending = {};
        any = false;
        return task;
      };
      for (std::size_t i = own.op().layers.size(); i-- > 0;) {
        const std::size_t l = own.op().layers[i];
        const bool is_first = i == 0;
        if (sums && is_first) summed = flush("backward sums", true);
        const DeviceTime time = trace(own, l, p).times.backward();
        pending += sums && !is_first ? time * (1.0 / own.degrees()[Dimension::k]) : time;
        any = true;
        const bool has_gradient =
            std::ranges::any_of(shards, [&](const ParameterShard& shard) { return shard.layer == l; });
        if (has_gradient) gradient_of[p][l] = flush("backward", false);
        // What the sums' gradients have been gathered for comes after them.
        if (sums && is_first && any) flush("backward", false);
      }
      if (any || !begin) flush("backward", false);
      first.push_back(*begin);
      last.push_back(*end);
      if (sums) before_sums.push_back(*summed);
      on.last_backward = *end;
      graph_.after(made_[op][p], *begin);
    }
    if (sums) gather_sums(own, before_sums, last, gradient_of);
    backward_[op] = last;
    // From those that read it.
    for (std::size_t reader = op + 1; reader < plan_.divisions.size(); ++reader)
      for (const Need& need : needs_[reader]) {
        if (need.edge.from != op) continue;
        const Division& to = plan_.divisions[reader];
        for (const Piece& piece : need.pieces) {
          const TaskId source = backward_[reader][piece.to];
          if (piece.local || !sends_back(*plan_.network, need.edge)) {
            if (piece.local) graph_.after(source, first[piece.from]);
            continue;
          }
          Device& sender = device(to, piece.to);
          const TaskId message =
              send(sender.gradients, sender, device(own, piece.from), bytes_of(piece), "send gradients",
                   fmt::format("{} to {}", name_of(to, to.op().name, piece.to), own.op().name));
          graph_.after(source, message);
          graph_.after(message, first[piece.from]);
        }
      }
    for (auto shard = shards.rbegin(); shard != shards.rend(); ++shard) {
      Made& made = gradients_.emplace_back(Made{*shard, op, {}});
      for (const std::size_t p : shard->places) made.after.push_back(gradient_of[p].at(shard->layer));
    }
  }

  /// Gradients of a tile that several places have made sums for: each gets the others' parts.
  void gather_sums(const Division& own, const ByPlace& parts, const ByPlace& last,
                   const std::vector<std::map<std::size_t, TaskId>>& gradient_of) {
    if (!own.op().needs_gradient) return;
    for (const Piece& piece : sum_pieces(own)) {
      // The part of `to` goes back to all who added to it.
      const auto known = gradient_of[piece.from].find(own.op().layers.front());
      const TaskId waits = known != gradient_of[piece.from].end() ? known->second : last[piece.from];
      if (piece.local) continue;
      Device& sender = device(own, piece.to);
      const TaskId message = send(sender.gradients, sender, device(own, piece.from), bytes_of(piece),
                                  "send sums' gradients", name_of(own, own.op().name, piece.to));
      graph_.after(parts[piece.to], message);
      graph_.after(message, waits);
    }
  }

  /// Devices of a group do one collective at a time.
  std::pair<GroupId, QueueId> team(const Made& made) {
    const Division& of = plan_.divisions[made.op];
    std::vector<DeviceId> devices;
    for (const std::size_t p : made.shard.places)
      devices.push_back(context_.workers[static_cast<std::size_t>(of.device(p))]);
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
    for (std::size_t p = 0; p < of.places(); ++p) graph_.after(*device(of, p).last_backward, task);
  }

  void exchange() {
    std::vector<std::optional<TaskId>> all_there(devices_.size());
    std::vector<std::vector<TaskId>> arrivals(devices_.size());
    std::vector<std::pair<TaskId, const Made*>> reduced;
    std::vector<Bytes> load(devices_.size());
    for (const Made& made : gradients_) {
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
    for (const Made& made : gradients_) {
      const bool is_shared = made.shard.places.size() > 1;
      const std::optional<TaskId> sum = is_shared && settings_.exchange == GradientExchange::all_reduce
                                            ? std::optional(reduced[r++].first)
                                            : std::nullopt;
      if (is_shared && !sum) continue;  // a server updates it
      const Division& of = plan_.divisions[made.op];
      for (const std::size_t p : made.shard.places) {
        const auto d = static_cast<std::size_t>(of.device(p));
        const auto [known, is_new] = updates.try_emplace({made.shard.layer, d}, TaskId{});
        if (is_new) {
          known->second = graph_.compute(devices_[d].compute, trace(of, made.shard.layer, p).times.update,
                                         {"update", name_of(of, layer_name(made), p)});
          if (!settings_.overlap)
            for (const TaskId arrival : arrivals[d]) graph_.after(arrival, known->second);
        }
        if (sum && settings_.overlap) graph_.after(*sum, known->second);
      }
    }
  }

  std::string layer_name(const Made& made) const { return times_.whole().layers[made.shard.layer].name; }

  TaskId all_reduce(const Made& made) {
    const auto [group, queue] = team(made);
    const TaskId task = graph_.collective(queue,
                                          {.op = CollectiveOp::all_reduce,
                                           .algorithm = context_.collective.algorithm,
                                           .level = context_.collective.level,
                                           .group = group,
                                           .bytes = Bytes(made.shard.values * plan_.value_bytes),
                                           .gamma = context_.collective.gamma},
                                          {"all-reduce", layer_name(made)});
    for (const TaskId after : made.after) graph_.after(after, task);
    wait_for_backward(task, made.op);
    return task;
  }

  /// Updates of a layer's shard by a single place.
  DeviceTime update_time(const Made& made, std::size_t place) {
    return trace(plan_.divisions[made.op], made.shard.layer, place).times.update;
  }

  /// What a device does next with the shard: its next forward pass of the operator waits for it.
  void bring(TaskId last, const Made& made, std::size_t place) { graph_.after(last, forward_[made.op][place], 1); }

  /// One server in host memory takes gradients in and gives parameters out, one message at a time at its rate. The rate
  /// has its updates in it.
  void host_server(const Made& made) {
    const Division& of = plan_.divisions[made.op];
    if (!server_)
      server_ = graph_.add_queue("host server", devices_.front().group, QueueRole::server, Discipline::fifo);
    const Seconds time = Bytes(made.shard.values * plan_.value_bytes) / settings_.server_rate;
    const TaskId sum = graph_.compute_for(devices_.front().group, QueueId::none, Seconds(0), {"sum", layer_name(made)});
    for (std::size_t i = 0; i < made.shard.places.size(); ++i) {
      const std::size_t p = made.shard.places[i];
      const Device& on = device(of, p);
      const std::string name = name_of(of, layer_name(made), p);
      const TaskId push = graph_.compute_for(on.group, *server_, time, {"push", name});
      graph_.after(made.after[i], push);
      wait_for_backward(push, made.op);
      graph_.after(push, sum);
      const TaskId pull = graph_.compute_for(on.group, *server_, time, {"pull", name});
      graph_.after(sum, pull);
      bring(pull, made, p);
    }
  }

  QueueId queue_of(std::optional<QueueId>& queue, const Device& on, const char* what) {
    if (!queue)
      queue =
          graph_.add_queue(graph_.group(on.group).name + what, on.group, QueueRole::communication, Discipline::fifo);
    return *queue;
  }

  /// One of the places, that with the least to do so far, takes gradients in, updates, and gives parameters out.
  void device_server(const Made& made, std::vector<Bytes>& load) {
    const Division& of = plan_.divisions[made.op];
    const Bytes bytes(made.shard.values * plan_.value_bytes);
    const auto load_of = [&](std::size_t p) { return load[static_cast<std::size_t>(of.device(p))]; };
    const std::size_t server = *std::ranges::min_element(made.shard.places, {}, load_of);
    load[static_cast<std::size_t>(of.device(server))] += bytes;
    Device& there = device(of, server);
    const TaskId update = graph_.compute_for(there.group, there.compute, update_time(made, server),
                                             {"update", name_of(of, layer_name(made), server)});
    for (std::size_t i = 0; i < made.shard.places.size(); ++i) {
      const std::size_t p = made.shard.places[i];
      if (p == server) {
        graph_.after(made.after[i], update);
        continue;
      }
      Device& here = device(of, p);
      const std::string name = name_of(of, layer_name(made), p);
      const TaskId push = send(queue_of(here.pushes, here, " pushes"), here, there, bytes, "push", name);
      graph_.after(made.after[i], push);
      wait_for_backward(push, made.op);
      graph_.after(push, update);
      const TaskId pull = send(queue_of(there.pulls, there, " pulls"), there, here, bytes, "pull", name);
      graph_.after(update, pull);
      bring(pull, made, p);
    }
  }

  /// Parameters of one operator that the same places hold.
  using Together = std::vector<const Made*>;

  std::vector<Together> by_operator() const {
    std::vector<Together> out;
    for (const Made& made : gradients_) {
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
    const Made& made = *together.front();
    const Division& of = plan_.divisions[made.op];
    double values = 0;
    for (const Made* each : together) values += each->shard.values;
    const auto [group, queue] = team(made);
    const auto exchange = [&, group = group, queue = queue](CollectiveOp op, const char* what) {
      return graph_.collective(queue,
                               {.op = op,
                                .algorithm = CollectiveAlgorithm::pairwise,
                                .level = context_.collective.level,
                                .group = group,
                                .bytes = Bytes(values * plan_.value_bytes),
                                .gamma = context_.collective.gamma},
                               {what, of.op().name});
    };
    const TaskId push = exchange(CollectiveOp::reduce_scatter, "push");
    for (const Made* each : together)
      for (const TaskId after : each->after) graph_.after(after, push);
    wait_for_backward(push, made.op);
    const TaskId pull = exchange(CollectiveOp::all_gather, "pull");
    const double share = 1 / static_cast<double>(made.shard.places.size());
    for (const std::size_t p : made.shard.places) {
      DeviceTime time;
      for (const Made* each : together) time += update_time(*each, p) * share;
      const TaskId update = compute(device(of, p), time, {"update", name_of(of, of.op().name, p)}, /*must_queue=*/true);
      graph_.after(push, update);
      graph_.after(update, pull);
      bring(pull, made, p);
    }
  }

  const StrategyContext& context_;
  const LayerwisePlan& plan_;
  TileTimes& times_;
  LayerwiseSettings settings_;
  CyclicTaskGraph graph_;
  std::vector<Device> devices_;
  std::vector<std::vector<Need>> needs_;  ///< by operator that needs
  std::vector<ByPlace> forward_;          ///< by operator: its first task of the forward pass
  std::vector<ByPlace> made_;             ///< when a place has what it holds of the output
  std::vector<ByPlace> backward_;         ///< when a place has the gradients of what it read
  std::vector<Made> gradients_;           ///< in the order of the backward pass
  std::vector<DeviceTime> rest_;
  std::map<std::vector<DeviceId>, std::pair<GroupId, QueueId>> teams_;
  std::optional<QueueId> server_;
};

/// What a device holds at its peak: the tiles it has as if they were its network, and what it is sent.
MemoryUse memory_of(int device, const LayerwisePlan& plan, TileTimes& times, Optimizer optimizer) {
  WorkloadTrace own = times.whole();
  Bytes received;
  std::vector<bool> here(own.layers.size(), false);
  for (const Division& division : plan.divisions) {
    const int place = division.place_on(device);
    if (place < 0) continue;
    const auto p = static_cast<std::size_t>(place);
    for (const std::size_t l : division.op().layers) {
      own.layers[l] = times.trace(division.number(), l, division.tile(p));
      here[l] = true;
    }
    for (std::size_t i = 0; i < division.op().inputs.size(); ++i) {
      const OperatorInput& input = division.op().inputs[i];
      const Division& from = plan.divisions[input.from];
      Bytes values(static_cast<double>(division.needed(input, p).values()));
      if (const int source = from.place_on(device); source >= 0)
        values -= Bytes(static_cast<double>(
            intersection(from.held(static_cast<std::size_t>(source)), division.needed(input, p)).values()));
      received += values * plan.value_bytes;
    }
  }
  for (std::size_t l = 0; l < own.layers.size(); ++l) {
    LayerTrace& layer = own.layers[l];
    if (here[l] || layer.kind == LayerKind::input) continue;
    layer.times = {};
    layer.gradients.clear();
    layer.parameters = layer.output = layer.kept_activations = layer.inner = layer.workspace = layer.recomputed = {};
  }
  MemoryUse use = replica_memory(own, optimizer);
  use.activations += received;
  return use;
}

}  // namespace

TrainingStep layerwise_step(const StrategyContext& context, const LayerwisePlan& plan, TileTimes& times,
                            const LayerwiseSettings& settings) {
  TrainingStep step;
  step.graph = Writer(context, plan, times, settings).write();
  for (std::size_t d = 0; d < context.workers.size(); ++d) {
    const MemoryUse use = memory_of(static_cast<int>(d), plan, times, context.optimizer);
    const auto alike = std::ranges::find_if(step.memory, [&](const DeviceMemory& other) {
      return other.use.total() == use.total() && other.use.moment == use.moment;
    });
    if (alike != step.memory.end())
      alike->devices.push_back(context.workers[d]);
    else
      step.memory.push_back({fmt::format("device {}", d), {context.workers[d]}, use});
  }
  return step;
}

}  // namespace epocast
