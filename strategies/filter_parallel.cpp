#include "strategies/filter_parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "strategies/step/composition_text.hpp"
#include "strategies/step/message.hpp"
#include "strategies/step/options.hpp"

namespace epocast {
namespace {

/// The task graph of a network that is spread over devices.
class FilterGraphBuilder {
 public:
  /// `devices`: by part, its device in each replica.
  FilterGraphBuilder(const WorkloadTrace& trace, const FilterParts& parts, SpreadNetwork network,
                     const std::vector<std::vector<DeviceId>>& devices, const CollectiveSettings& collective,
                     int in_flight, double copy)
      : trace_(trace),
        parts_(parts),
        network_(std::move(network)),
        collective_(collective),
        in_flight_(in_flight),
        copy_(copy) {
    for (std::size_t d = 0; d < devices.size(); ++d) {
      const std::string name = fmt::format("part {}", d);
      const GroupId device = graph_.add_group(name, devices[d]);
      const auto queue = [&](const std::string& what, QueueRole role) {
        return graph_.add_queue(name + what, device, role, Discipline::fifo);
      };
      devices_.push_back({device,
                          queue("", QueueRole::compute),
                          queue(" activations", QueueRole::communication),
                          queue(" gradients", QueueRole::communication),
                          {}});
      if (devices[d].size() > 1) devices_.back().sums = queue(" sums", QueueRole::communication);
    }
  }

  CyclicTaskGraph build() {
    for (const FilterNode& node : network_.nodes) forward_.push_back(add(node, true));
    for (const FilterNode& node : network_.nodes) backward_.push_back(add(node, false));
    for (std::size_t n = 0; n < network_.nodes.size(); ++n) graph_.after(forward_[n], backward_[n]);
    for (const FilterLink& link : network_.links) add(link);
    add_updates();
    return std::move(graph_);
  }

 private:
  struct Part {
    GroupId device;
    QueueId compute, activations, gradients;
    std::optional<QueueId> sums;  ///< over replicas, if there are several
  };
  const Part& part(int device) const { return devices_[static_cast<std::size_t>(device)]; }

  std::string name_of(const FilterNode& node) const {
    std::string name = trace_.layers[node.layers.front()].name;
    if (node.layers.size() > 1) name += ".." + trace_.layers[node.layers.back()].name;
    return parts_.devices() > 1 ? fmt::format("{} part {}", name, node.device) : name;
  }

  /// What a node's share of its layers takes in some pass.
  template <class Pass>
  DeviceTime time_of(const FilterNode& node, Pass pass) const {
    DeviceTime time;
    if (node.gathers) return time;
    for (const std::size_t l : node.layers) time += pass(trace_.layers[l].times) * parts_.share(l, node.device);
    return time;
  }

  TaskId add(const FilterNode& node, bool forward) {
    const DeviceTime time = time_of(node, [&](const LayerTimes& t) { return forward ? t.forward : t.backward(); });
    return compute(node.device, time, {node.gathers ? "gather" : forward ? "forward" : "backward", name_of(node)});
  }

  TaskId compute(int device, const DeviceTime& time, const Label& label) {
    const QueueId queue = time.any() ? part(device).compute : QueueId::none;
    return graph_.compute_for(part(device).device, queue, time, label);
  }

  void add(const FilterLink& link) {
    const FilterNode& from = network_.nodes[link.from];
    const int to = network_.nodes[link.to.front()].device;
    if (from.device == to) {
      for (const std::size_t target : link.to) {
        graph_.after(forward_[link.from], forward_[target]);
        graph_.after(backward_[target], backward_[link.from]);
      }
      return;
    }
    const Part &sender = part(from.device), &receiver = part(to);
    const auto message = [&](const Part& a, QueueId queue, const Part& b, const char* operation) {
      return add_message(graph_, queue, a.device, b.device, link.bytes, copy_, {operation, name_of(from)});
    };
    const MessageTasks there = message(sender, sender.activations, receiver, "send activations");
    std::optional<MessageTasks> back;
    if (trace_.layers[from.layers.back()].needs_gradient)
      back = message(receiver, receiver.gradients, sender, "send gradients");
    graph_.after(forward_[link.from], there.first);
    if (back) graph_.after(back->last, backward_[link.from]);
    for (const std::size_t target : link.to) {
      graph_.after(there.last, forward_[target]);
      if (back) graph_.after(backward_[target], back->first);
    }
  }

  /// The sum of a node's gradients over the replicas; its backward pass if there is one replica.
  TaskId add_sum(std::size_t n) {
    const FilterNode& node = network_.nodes[n];
    const Part& device = part(node.device);
    if (!device.sums) return backward_[n];
    Bytes gradients;
    for (const std::size_t l : node.layers)
      for (const auto& tensor : trace_.layers[l].gradients) gradients += tensor.bytes * parts_.share(l, node.device);
    const TaskId sum = graph_.collective(*device.sums, collective_.all_reduce(gradients, device.device),
                                         {"all-reduce", name_of(node)});
    graph_.after(backward_[n], sum);
    return sum;
  }

  bool has_weights(const FilterNode& node) const {
    return !node.gathers && std::any_of(node.layers.begin(), node.layers.end(),
                                        [&](std::size_t l) { return !trace_.layers[l].gradients.empty(); });
  }

  void add_updates() {
    // A batch begins when the one in_flight before it has passed through everything.
    const TaskId begin = graph_.compute_for(devices_.front().device, QueueId::none, Seconds(0), {"next batch", ""});
    std::vector<bool> follows(network_.nodes.size(), false);
    for (const FilterLink& link : network_.links)
      for (const std::size_t target : link.to) follows[target] = true;
    std::vector<std::optional<TaskId>> read(devices_.size()), written(devices_.size());
    for (std::size_t n = network_.nodes.size(); n-- > 0;) {
      const FilterNode& node = network_.nodes[n];
      if (!follows[n]) graph_.after(begin, forward_[n]);
      TaskId last = backward_[n];
      if (has_weights(node)) {
        last = compute(node.device, time_of(node, [](const LayerTimes& t) { return t.update; }),
                       {"update", name_of(node)});
        graph_.after(add_sum(n), last);
        read[static_cast<std::size_t>(node.device)] = forward_[n];
        written[static_cast<std::size_t>(node.device)] = last;
      }
      graph_.after(last, begin, in_flight_);
    }
    // The first layer with weights on a device is the first to read and the last to be updated.
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (!read[d]) continue;
      const StoreId store = graph_.add_store(fmt::format("part {}", d));
      graph_.set_version_effect(*read[d], {store, VersionEffect::read_at_start});
      graph_.set_version_effect(*written[d], {store, VersionEffect::write_at_end});
    }
  }

  const WorkloadTrace& trace_;
  const FilterParts& parts_;
  SpreadNetwork network_;
  CollectiveSettings collective_;
  int in_flight_;
  double copy_;
  CyclicTaskGraph graph_;
  std::vector<Part> devices_;
  std::vector<TaskId> forward_, backward_;  ///< by node
};

MemoryUse memory_of(const WorkloadTrace& trace, const FilterParts& parts, const SpreadNetwork& network, int device,
                    int in_flight, Optimizer optimizer) {
  Bytes parameters, frozen, offloaded, activations, recomputed,
      segment;  // the largest segment is computed again for one batch at a time
  for (std::size_t l = 0; l < trace.layers.size(); ++l) {
    const LayerTrace& layer = trace.layers[l];
    parameters += layer.parameters * parts.share(l, device);
    frozen += layer.frozen * parts.share(l, device);
    offloaded += layer.offloaded * parts.share(l, device);
    // Input data is on every device.
    activations += layer.kept_activations * (layer.kind == LayerKind::input ? 1 : parts.share(l, device));
    if (l > 0 && layer.segment != trace.layers[l - 1].segment) segment = Bytes(0);
    segment += layer.recomputed * parts.share(l, device);
    recomputed = std::max(recomputed, segment);
  }
  for (const FilterLink& link : network.links)
    if (network.nodes[link.to.front()].device == device) activations += link.bytes;
  MemoryUse use{.parameters = parameters + frozen,
                .gradients = parameters,
                .activations = (activations + std::min(trace.staging, offloaded)) * in_flight + recomputed,
                .on_host = offloaded * in_flight,
                .passing = offloaded * in_flight};
  use.state_of(trace) += parameters * optimizer_share(optimizer, trace);
  return use;
}

}  // namespace

EntryInfo FilterParallel::info() {
  return {"filter_parallel",
          "model parallelism inside layers: every layer's filters are divided over the devices",
          {{"parts", "", "map of lists", "even", "each layer's filters by worker, as in {conv1: [48, 16], fc: [1, 0]}"},
           {"shares", "", "list of numbers", "none",
            "instead of parts, with volume: each worker's share of all work, if no more is known of a partition"},
           {"exchange", "", "direct | root", "direct",
            "activations go straight to where they are read, or are gathered and pooled on one device first"},
           {"volume", "bytes", "> 0", "from parts",
            "per sample: what all devices send in a forward pass; scales all messages to it"},
           {"copy_rate", "bytes/s", "> 0", "infinite",
            "at which a message is copied to and from the network, beside computing"},
           {"in_flight", "batches", "1 .. 1000", "1", "batches under way at a time; more than 1 is asynchronous"}}};
}

EntryInfo FilterParallel::body_info() { return epocast::body_info(info(), "filters", {"copy_rate", "in_flight"}); }

bool FilterParallel::is_partition(const ConfigNode& options) {
  return std::ranges::any_of(body_info().parameters, [&](const auto& option) { return options.has(option.name); });
}

FilterParallel::FilterParallel(const ConfigNode& options, const AroundBody& around)
    : FilterParallel(options, around.schedule.value_or(ConfigNode::load_text("{}", "schedule")), around.teams) {
  around.check_synchronisation("filters");
  if (!around.schedule) return;
  const ConfigNode& schedule = *around.schedule;
  if (schedule.get("name", "threaded") != "threaded")
    throw schedule.at("name").error(
        "a partition takes batches whole, as many at a time as are in flight; use schedule: {name: threaded, "
        "in_flight: N}, or leave schedule out for one at a time");
}

FilterParallel::FilterParallel(const ConfigNode& options, const ConfigNode& schedule, ReplicaTeams teams)
    : options_(options),
      teams_(std::move(teams)),
      exchange_(choose(options, "exchange", {{"direct", FilterExchange::direct}, {"root", FilterExchange::root}},
                       FilterExchange::direct)),
      in_flight_(static_cast<int>(schedule.get("in_flight", 1, Range{1, 1000}))),
      copy_(seconds_per_byte(schedule, "copy_rate")) {
  if (options.has("parts"))
    for (const std::string& name : options.at("parts").keys()) options.at("parts").at(name).mark_all_read();
  if (options.has("volume")) options.at("volume").as_bytes({1e-3, 1e15});
  if (!options.has("shares")) return;
  for (const ConfigNode& item : options.at("shares").items()) item.as_double({1e-12, 1e12});
  for (const char* other : {"parts", "exchange"})
    if (options.has(other))
      throw options.at(other).error(
          "shares stand for a partition that is not known in detail; leave out one of the two");
  if (!options.has("volume"))
    throw options.at("shares").error("shares say nothing of what is sent; give the volume of a forward pass as well");
}

std::pair<FilterParts, SpreadNetwork> FilterParallel::divide(const WorkloadTrace& trace, int devices) const {
  const Bytes volume =
      options_.has("volume") ? options_.at("volume").as_bytes() * static_cast<double>(trace.batch) : Bytes(0);
  if (options_.has("shares")) {
    const ConfigNode list = options_.at("shares");
    std::vector<double> shares;
    for (const ConfigNode& item : list.items()) shares.push_back(item.as_double({1e-12, 1e12}));
    if (shares.size() != static_cast<std::size_t>(devices))
      throw list.error(fmt::format("{} shares for {} workers; give each worker one", shares.size(), devices));
    return {FilterParts(trace, shares), chain_of_parts(trace, devices, volume)};
  }
  const std::optional<ConfigNode> given = options_.has("parts") ? std::optional(options_.at("parts")) : std::nullopt;
  const FilterParts parts(trace, devices, exchange_, given ? &*given : nullptr);
  SpreadNetwork network = spread(trace, parts, exchange_);
  if (volume.value > 0) {
    const Bytes have = network.volume();
    if (have.value <= 0)
      throw options_.at("volume").error("with these parts nothing is sent, so there is no volume to scale");
    for (FilterLink& link : network.links) link.bytes *= volume / have;
  }
  return {parts, network};
}

TrainingStep FilterParallel::compile(const StrategyContext& context) const {
  const std::vector<std::vector<DeviceId>> devices = teams_.on(context.workers);
  const auto replicas = static_cast<std::int64_t>(devices.front().size());
  const WorkloadTrace trace = context.trace(context.global_batch / replicas);
  const auto [parts, network] = divide(trace, static_cast<int>(devices.size()));
  TrainingStep step;
  step.composition = text_of({.mesh = teams_.axes(static_cast<std::int64_t>(context.workers.size())),
                              .schedule = "threaded",
                              .in_flight = in_flight_,
                              .bodies = {"filters"},
                              .synchronisation = replicas > 1 ? "all_reduce" : "none"});
  for (std::size_t d = 0; d < devices.size(); ++d)
    step.memory.push_back({fmt::format("part {}", d), devices[d],
                           memory_of(trace, parts, network, static_cast<int>(d), in_flight_, context.optimizer)});
  step.graph = FilterGraphBuilder(trace, parts, network, devices, context.collective, in_flight_, copy_).build();
  return step;
}

}  // namespace epocast
