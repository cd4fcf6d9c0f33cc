#include "strategies/synchronisation/all_reduce.hpp"

#include <algorithm>
#include <optional>

#include "strategies/step/options.hpp"

namespace epocast {
namespace {

using UpdateTime = AllReduce::UpdateTime;

/// Refuses an option that does nothing with the rule's granularity.
void check_used(const ConfigNode& options, const char* key, bool used, const char* granularities) {
  if (options.has(key) && !used)
    throw options.at(key).error(std::string("has no effect with this granularity; use granularity: ") + granularities);
}

PieceRule read_buckets(const ConfigNode& options) {
  using enum Granularity;
  PieceRule rule;
  rule.granularity =
      choose(options, "granularity",
             {{"tensor", tensor}, {"layer", layer}, {"bucket", bucket}, {"cycle", cycle}, {"model", model}}, bucket);
  check_used(options, "bucket", rule.granularity == bucket || rule.granularity == cycle, "bucket, or cycle");
  check_used(options, "first_bucket", rule.granularity == bucket, "bucket");
  check_used(options, "cycle", rule.granularity == cycle, "cycle");
  // HOROVOD_FUSION_THRESHOLD (docs/tensor-fusion of Horovod: "Default fusion buffer size is 64 MB").
  if (rule.granularity == cycle) rule.limit = Bytes(64.0 * (1 << 20));
  rule.limit = options.get("bucket", rule.limit, Range{1, 1e15});
  rule.first = options.get("first_bucket", rule.limit, Range{1, 1e15});
  rule.cycle = options.get("cycle", rule.cycle, Range{1e-9, 1e6});
  return rule;
}

AllReduce::Settings read_settings(const ConfigNode& options) {
  AllReduce::Settings settings{.rule = read_buckets(options)};
  settings.at_once = static_cast<int>(options.get("at_once", 1, Range{1, 64}));
  if (settings.at_once > 1 && settings.rule.granularity == Granularity::cycle)
    throw options.at("at_once").error("what waits is fused by one thread; use another granularity, or at_once: 1");
  settings.overlap = options.get("overlap", settings.overlap);
  settings.order =
      choose(options, "order", {{"fifo", Discipline::fifo}, {"priority", Discipline::priority}}, settings.order);
  settings.update = choose(options, "update",
                           {{"after_all", UpdateTime::after_all},
                            {"after_backward", UpdateTime::after_backward},
                            {"before_forward", UpdateTime::before_forward}},
                           settings.overlap ? UpdateTime::after_backward : UpdateTime::after_all);
  return settings;
}

/// Parameters of one chunk of layers.
class ReducedPlace final : public PlaceSynchronisation {
 public:
  ReducedPlace(const AllReduce::Settings& settings, const Encoding& compression, const ParameterPlace& place)
      : settings_(settings),
        place_(place),
        graph_(place.stage.graph()),
        trace_(place.own_trace()),
        compression_(place.replicas() > 1 ? compression.of_gradients(trace_) : compression),
        updates_(trace_.layers.size()) {
    if (place.replicas() > 1) buckets_ = make_pieces(trace_, settings.rule);
    made_.resize(buckets_.size());
    decoded_.resize(buckets_.size(), false);
    decodings_.resize(buckets_.size());
    if (buckets_.empty()) return;
    const std::string name = place.by_layer ? "communication" : "reductions";
    for (int q = 0; q < settings.at_once; ++q)
      communication_.push_back(place.communication(q == 0 ? name : name + " " + std::to_string(q + 1), settings.order));
    if (settings.rule.granularity == Granularity::cycle) graph_.set_fusion(communication_.front(), settings.rule.limit);
  }

  void before_forward(std::size_t layer, const Turn& turn) override {
    if (early() && turn.first) update_layer(layer);
  }

  void after_backward(std::size_t layer, const Turn& turn) override {
    if (!turn.last) return;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      if (buckets_[b].layers.front() != layer) continue;
      if (compression_.any()) {
        made_[b] = place_.stage.task_behind(buckets_[b].name, on_each([&](const Device& d) {
                                              return compression_.encode_time(buckets_[b].gradients, d);
                                            }),
                                            {"encode", place_.name() + buckets_[b].name});
      } else if (settings_.overlap) {
        made_[b] = place_.stage.cut(buckets_[b].name);
      }
    }
  }

  void after_backward_pass(const Turn& turn) override {
    if (!turn.last) return;
    const Lanes end = place_.stage.cut("");
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      const ParameterPiece& bucket = buckets_[b];
      if (made_[b].empty()) made_[b] = end;
      Collective sum =
          compression_.sum(bucket.gradients, place_.context.collective, place_.stage.group(), place_.replicas());
      const TaskId reduced = graph_.collective_along(
          place_.along, communication_[b % communication_.size()], sum,
          {sum.op == CollectiveOp::all_reduce ? "all-reduce" : "all-gather", place_.name() + bucket.name});
      reduced_.push_back(reduced);
      graph_.set_priority(reduced, static_cast<int>(bucket.layers.front()));
      for (const TaskId made : ready(b)) graph_.after(made, reduced);
      if (!settings_.overlap)
        for (const TaskId task : end) graph_.after(task, reduced);
    }
  }

  Lanes update(int /*step*/) override {
    Lanes written;
    if (!place_.by_layer) {
      for (std::size_t b = 0; b < buckets_.size(); ++b)
        if (compression_.any()) decode(b), graph_.after(reduced_[b], decodings_[b].front());
      written = place_.stage.task(place_.chunk.update, {"update", place_.chunk.name});
      for (const TaskId reduced : reduced_)
        for (const TaskId task : written) graph_.after(reduced, task);
      for (const Lanes& decoding : decodings_)
        for (std::size_t lane = 0; !place_.stage.in_program_order() && lane < decoding.size(); ++lane)
          graph_.after(decoding[lane], written[lane]);
      return written;
    }
    const std::size_t passes = graph_.tasks().size();
    if (!early())
      for (std::size_t l = place_.chunk.last; l-- > place_.chunk.first;) update_layer(l);
    for (std::size_t b = 0; b < reduced_.size(); ++b) {
      if (settings_.update == UpdateTime::after_all) {
        if (passes < graph_.tasks().size())
          graph_.after(reduced_[b], static_cast<TaskId>(passes));  // the others follow in program order
        continue;
      }
      if (compression_.any()) graph_.after(reduced_[b], decodings_[b].front(), early() ? 1 : 0);
      for (const std::size_t l : buckets_[b].layers)
        if (!compression_.any()) graph_.after(reduced_[b], *updates_[l], early() ? 1 : 0);
    }
    return written;
  }

  StageSum stage_sum(std::size_t layer) const override {
    StageSum sum;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      if (!std::ranges::binary_search(buckets_[b].layers, layer)) continue;
      if (compression_.any())
        sum.after.insert(sum.after.end(), decodings_[b].begin(), decodings_[b].end());
      else
        sum.after.push_back(reduced_[b]);
    }
    return sum;
  }

  void change(MemoryUse& use) const override {
    for (const ParameterPiece& bucket : buckets_) use.gradients += compression_.rest(bucket.gradients);
  }

 private:
  /// Only where layers' updates are tasks of their own.
  bool early() const { return settings_.update == UpdateTime::before_forward && place_.by_layer; }
  template <class Of>
  DeviceTime on_each(Of of) const {
    return place_.context.on_each_worker(of);
  }

  void decode(std::size_t b) {
    if (decoded_[b]) return;
    decoded_[b] = true;
    const DeviceTime time = on_each([&](const Device& device) {
      return compression_.decode_time(buckets_[b].gradients, device, place_.replicas());
    });
    decodings_[b] = place_.stage.task(time, {"decode", place_.name() + buckets_[b].name});
  }

  /// A layer's update, after the decoding of the gradients that it needs.
  void update_layer(std::size_t l) {
    if (trace_.layers[l].gradients.empty()) return;
    if (compression_.any())
      for (std::size_t b = 0; b < buckets_.size(); ++b)
        if (std::ranges::find(buckets_[b].layers, l) != buckets_[b].layers.end()) decode(b);
    updates_[l] = place_.stage.task(trace_.layers[l].times.update, {"update", trace_.layers[l].name}).front();
  }

  /// After which a bucket may be sent: its encoding or backward pass, or the end of the cycle that these fall into.
  Lanes ready(std::size_t b) {
    if (buckets_[b].cycle == 0) return made_[b];
    if (b > 0 && buckets_[b - 1].cycle == buckets_[b].cycle) return {*cycle_end_};
    std::size_t last = b;
    while (last + 1 < buckets_.size() && buckets_[last + 1].cycle == buckets_[b].cycle) ++last;
    cycle_end_ = graph_.compute(place_.stage.communication("fusion timer"), buckets_[last].delay,
                                {"wait for the cycle of", place_.name() + buckets_[last].name});
    for (const TaskId made : made_[last]) graph_.after(made, *cycle_end_);
    return {*cycle_end_};
  }

  AllReduce::Settings settings_;
  ParameterPlace place_;
  CyclicTaskGraph& graph_;
  WorkloadTrace trace_;
  Encoding compression_;
  std::vector<ParameterPiece> buckets_;         ///< none if there is nobody to reduce with
  std::vector<QueueId> communication_;          ///< buckets take them in turn
  std::vector<std::optional<TaskId>> updates_;  ///< by layer
  std::vector<bool> decoded_;                   ///< by bucket: whether its decoding has been added
  std::vector<Lanes> made_, decodings_;         ///< by bucket
  std::vector<TaskId> reduced_;                 ///< by bucket
  std::optional<TaskId> cycle_end_;             ///< of the current cycle
};

}  // namespace

EntryInfo AllReduce::info() {
  return Encoding::added_to(
      {"all_reduce",
       "gradients are summed over all replicas, each of which updates all",
       {{"granularity", "", "tensor | layer | bucket | cycle | model", "bucket", "what one all-reduce carries"},
        {"bucket", "bytes", "> 0", "25 MiB; 64 MiB with cycle",
         "size at which a bucket is closed; with cycle, the most that is fused"},
        {"first_bucket", "bytes", "> 0", "bucket", "the same for the first bucket of a step"},
        {"cycle", "s", "> 0", "1 ms",
         "gradients are sent at the end of the cycle they are made in, or when the exchange under way then has ended, "
         "all "
         "that wait as one (granularity: cycle)"},
        {"at_once", "count", "1 .. 64", "1",
         "all-reduces under way at a time, as if so many threads took them in turn (not with granularity: cycle)"},
        {"overlap", "", "true | false", "true",
         "start all-reduces during the backward pass; without, after it, and then nothing hides them but what `update` "
         "lets run beside them"},
        {"order", "", "fifo | priority", "fifo",
         "which all-reduce is next: the first ready, or the one that the next forward pass needs first"},
        {"update", "", "after_all | after_backward | before_forward", "after_backward; after_all without overlap",
         "when a layer is updated: when the gradients of all layers are there; after the backward pass, when its own "
         "are there; or just before its next forward pass"}}});
}

AllReduce::AllReduce(const ConfigNode& options) : settings_(read_settings(options)), compression_(options) {}

std::unique_ptr<PlaceSynchronisation> AllReduce::at(const ParameterPlace& place) const {
  return std::make_unique<ReducedPlace>(settings_, compression_, place);
}

}  // namespace epocast
