#include "strategies/synchronisation/hogwild.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace epocast {
namespace {

class SharedMemoryPlace final : public PlaceSynchronisation {
 public:
  /// Without a bandwidth the memory keeps nobody waiting.
  SharedMemoryPlace(const ParameterPlace& place, std::optional<BytesPerSecond> bandwidth)
      : place_(place), graph_(place.stage.graph()) {
    if (!bandwidth) return;
    memory_ = shared_memory();
    time_ = place.context.update_bytes(place.chunk.parameters, place.trace.precision) / *bandwidth;
  }

  void before_forward(std::size_t layer, const Turn& turn) override {
    if (turn.first && layer == place_.chunk.first) read_ = place_.stage.mark("");
  }

  void after_backward_pass(const Turn& turn) override {
    if (turn.last) made_ = place_.stage.cut("").front();
  }

  Lanes update(int /*step*/) override {
    const std::string name = place_.by_layer ? "" : place_.chunk.name;
    written_ = place_.stage.task(place_.chunk.update, {"write", name}).front();
    if (!memory_) return {written_};
    // The thread that computes also writes: it goes on when it is done, and the memory too.
    const TaskId served = graph_.compute_for(place_.stage.group(), *memory_, time_, {"update", name});
    graph_.after(made_, served);
    const TaskId written = place_.stage.moment({"written", name});
    for (const TaskId before : {written_, served}) graph_.after(before, written);
    place_.stage.wait(written);
    written_ = written;
    return {written_};
  }

  void tie() override {
    if (place_.parts() > 1) return;  // of parts, none is a version of the whole
    const StoreId store = graph_.add_store(place_.name() + "parameters");
    graph_.set_version_effect(place_.stage.at(read_).first.front(), {store, VersionEffect::read_at_start});
    graph_.set_version_effect(written_, {store, VersionEffect::write_at_end});
  }

  bool reads_first() const override { return true; }

  /// Parameters and the optimizer's state are there once; each replica has its gradient and activations.
  void change(MemoryUse& use) const override {
    const double others = 1 - 1.0 / place_.replicas();
    use.parameters -= place_.chunk.parameters * others;
    use.state_of(place_.trace) -= place_.optimizer_state() * others;
  }

 private:
  /// One for all that is in the node. It belongs to no worker, so that none is slow or stands still on its account.
  QueueId shared_memory() {
    const DeviceId first = place_.stage.ranks().devices.front();
    const std::string name = "shared memory of " + place_.context.device(first).node;
    const auto known = std::ranges::find(graph_.queues(), name, &Queue::name);
    if (known != graph_.queues().end()) return static_cast<QueueId>(known - graph_.queues().begin());
    const QueueId memory = graph_.add_queue(name, graph_.add_group(name, {first}), QueueRole::server, Discipline::fifo);
    graph_.set_steady(memory);
    return memory;
  }

  ParameterPlace place_;
  CyclicTaskGraph& graph_;
  std::optional<QueueId> memory_;
  Seconds time_;
  std::size_t read_ = 0;  ///< mark of the first pass
  TaskId made_{}, written_{};
};

}  // namespace

EntryInfo Hogwild::info() {
  return {"hogwild",
          "workers of one node update parameters in shared memory, without locks",
          {{"memory_bandwidth", "bytes/s", "> 0", "sum over the workers",
            "of the memory that holds the parameters, for all updates together"}}};
}

Hogwild::Hogwild(const ConfigNode& options) : options_(options) {
  if (options.has("memory_bandwidth")) bandwidth_ = options.at("memory_bandwidth").as_bytes_per_second(Range{1, 1e18});
}

std::unique_ptr<PlaceSynchronisation> Hogwild::at(const ParameterPlace& place) const {
  const std::vector<DeviceId>& devices = place.stage.ranks().devices;
  const Device& first = place.context.device(devices.front());
  for (const DeviceId device : devices)
    if (const Device& other = place.context.device(device); other.node != first.node)
      throw options_.error(
          fmt::format("hogwild needs shared memory, but '{}' and '{}' are on different nodes; use workers of one node, "
                      "or parameter_server",
                      first.name, other.name));
  return std::make_unique<SharedMemoryPlace>(place, bandwidth_);
}

}  // namespace epocast
