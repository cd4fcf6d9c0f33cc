#include "strategies/synchronisation/gossip.hpp"

#include <optional>

#include "strategies/step/options.hpp"

namespace epocast {
namespace {

/// How far away the neighbours are, one exchange after the other.
std::vector<std::uint32_t> neighbour_offsets(int replicas, bool exponential) {
  std::vector<std::uint32_t> offsets;
  for (std::uint32_t offset = 1; offset < static_cast<std::uint32_t>(replicas); offset *= 2) {
    offsets.push_back(offset);
    if (!exponential) break;
  }
  return offsets;
}

/// Everybody's neighbour, in rank order.
std::vector<DeviceId> neighbours(const std::vector<DeviceId>& devices, Axis axis, std::uint32_t offset) {
  std::vector<DeviceId> out;
  for (std::uint32_t rank = 0; rank < devices.size(); ++rank)
    out.push_back(devices[axis.rank_at(axis.team_of(rank), (axis.place_of(rank) + offset) % axis.extent)]);
  return out;
}

class GossipPlace final : public PlaceSynchronisation {
 public:
  GossipPlace(const Gossip::Settings& settings, const Encoding& compression, const ParameterPlace& place)
      : settings_(settings),
        compression_(compression.of(place.trace.precision)),
        place_(place),
        graph_(place.stage.graph()),
        offsets_(neighbour_offsets(place.replicas(), settings.exponential)),
        talk_(place.communication("average")),
        averaging_(place.context.on_each_worker([&](const Device& device) {
          const Seconds average = place.chunk.parameters * 3.0 / device.memory_bandwidth;  // two reads, one write
          return average + compression_.decode_time(place.chunk.parameters, device, 1);
        })) {}

  void before_forward(std::size_t layer, const Turn& turn) override {
    if (settings_.overlap || !turn.first || layer != place_.chunk.first || turn.step % settings_.period != 0) return;
    if (averaged_)
      place_.stage.wait(*averaged_);
    else
      start_ = place_.stage.mark("");
  }

  void after_backward_pass(const Turn& turn) override {
    if (turn.last) last_ = place_.stage.cut("").front();
  }

  Lanes update(int step) override {
    awaits_ = settings_.overlap && step % settings_.period == 0;
    Lanes written;
    if (place_.by_layer) {
      for (const LayerTrace& layer : place_.trace.layers)
        if (!layer.gradients.empty()) write(layer.times.update, {"update", layer.name});
    } else {
      written = write(place_.chunk.update, {"update", place_.chunk.name});
    }
    if ((step + 1) % settings_.period == 0) exchange(offsets_[static_cast<std::size_t>(step / settings_.period)]);
    return written;
  }

  void tie() override {
    if (first_update_) {
      graph_.after(*averaged_, *first_update_, 1);
    } else if (start_) {
      const auto& [tasks, lag] = place_.stage.at(*start_);
      graph_.after(*averaged_, tasks.front(), 1 + lag);
    }
  }

  void change(MemoryUse& use) const override {
    for (Bytes* bytes : {&use.parameters, &use.passing}) *bytes += place_.chunk.parameters;  // the neighbour's
    use.gradients += compression_.rest(place_.chunk.parameters);
  }

 private:
  /// With overlap, the first update after an exchange waits for it.
  Lanes write(const DeviceTime& time, const Label& label) {
    const Lanes written = place_.stage.task(time, label);
    last_ = written.front();
    if (!std::exchange(awaits_, false)) return written;
    if (averaged_)
      graph_.after(*averaged_, last_);
    else
      first_update_ = last_;
    return written;
  }

  void exchange(std::uint32_t offset) {
    const GroupId own = place_.stage.group();
    const Bytes bytes = compression_.compressed(place_.chunk.parameters);
    const std::string name = place_.by_layer ? "" : place_.chunk.name;
    const GroupId others = graph_.add_group(place_.name() + "neighbours " + std::to_string(offset),
                                            neighbours(place_.stage.ranks().devices, place_.along, offset));
    const QueueId answer =
        graph_.add_queue(place_.name() + "answer", others, QueueRole::communication, Discipline::fifo);
    const TaskId send = graph_.transfer(own, QueueId::none, {own, others, bytes}, {"send", name});
    const TaskId reply = graph_.transfer(own, QueueId::none, {others, own, bytes}, {"reply", name});
    const TaskId theirs = graph_.compute_for(own, answer, averaging_, {"average at neighbour", name});
    averaged_ = graph_.compute(talk_, averaging_, {"average", name});
    if (compression_.any()) {
      const DeviceTime encoding = place_.context.on_each_worker(
          [&](const Device& device) { return compression_.encode_time(place_.chunk.parameters, device); });
      last_ = place_.stage.task(encoding, {"encode", name}).front();
      const TaskId encoded = graph_.compute_for(own, answer, encoding, {"encode at neighbour", name});
      graph_.after(send, encoded);
      graph_.after(encoded, reply);
    }
    graph_.after(last_, send);
    graph_.after(send, reply);
    graph_.after(send, theirs);
    graph_.after(reply, *averaged_);
  }

  Gossip::Settings settings_;
  Encoding compression_;
  ParameterPlace place_;
  CyclicTaskGraph& graph_;
  std::vector<std::uint32_t> offsets_;
  QueueId talk_;
  DeviceTime averaging_;
  TaskId last_{};                       ///< of the step
  bool awaits_ = false;                 ///< the next update waits for the last exchange
  std::optional<TaskId> averaged_;      ///< of the last exchange
  std::optional<TaskId> first_update_;  ///< of the round
  std::optional<std::size_t> start_;    ///< mark of the round's first pass
};

}  // namespace

EntryInfo Gossip::info() {
  return Encoding::added_to(
      {"gossip",
       "every worker averages its parameters with a neighbour's, asynchronously and without a server",
       {{"period", "steps", "1 .. 1000", "1", "local steps of a worker from one exchange to the next"},
        {"topology", "", "ring | exponential", "ring",
         "the neighbour: the next worker, or 1, 2, 4, .. further in turn"},
        {"overlap", "", "true | false", "true", "exchange while the next step computes"}}});
}

Gossip::Gossip(const ConfigNode& options)
    : options_(options),
      settings_{.period = static_cast<int>(options.get("period", 1, Range{1, 1000})),
                .exponential = choose(options, "topology", {{"ring", false}, {"exponential", true}}, false),
                .overlap = options.get("overlap", true)},
      compression_(options) {}

TrainingRound Gossip::round(int replicas) const {
  const auto exchanges = static_cast<int>(neighbour_offsets(replicas, settings_.exponential).size());
  const int periods = std::max(1, exchanges);
  return {.steps = periods * settings_.period, .one_version = true, .data_only = true, .periods = periods};
}

std::unique_ptr<PlaceSynchronisation> Gossip::at(const ParameterPlace& place) const {
  if (place.replicas() < 2)
    throw options_.error(
        place.stage.ranks().devices.size() < 2 && place.by_layer
            ? "gossip needs at least 2 workers; use strategy: single"
            : "gossip needs at least 2 replicas of a stage; give the mesh more along data, or use all_reduce");
  return std::make_unique<GossipPlace>(settings_, compression_, place);
}

}  // namespace epocast
