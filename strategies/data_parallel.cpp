#include "strategies/data_parallel.hpp"

#include <algorithm>
#include <optional>

#include "strategies/choice.hpp"
#include "strategies/layer_passes.hpp"

namespace epocast {
namespace {

/// Refuses an option that does nothing with the rule's granularity.
void check_used(const ConfigNode& options, const char* key, bool used, const char* granularities) {
  if (options.has(key) && !used)
    throw options.at(key).error(std::string("has no effect with this granularity; use granularity: ") + granularities);
}

BucketRule read_buckets(const ConfigNode& options) {
  using enum Granularity;
  BucketRule rule;
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

DataParallel::Settings read_settings(const ConfigNode& options) {
  using UpdateTime = DataParallel::UpdateTime;
  DataParallel::Settings settings{.rule = read_buckets(options)};
  settings.overlap = options.get("overlap", settings.overlap);
  settings.order =
      choose(options, "order", {{"fifo", Discipline::fifo}, {"priority", Discipline::priority}}, settings.order);
  settings.update = choose(options, "update",
                           {{"after_all", UpdateTime::after_all},
                            {"after_backward", UpdateTime::after_backward},
                            {"before_forward", UpdateTime::before_forward}},
                           settings.overlap ? UpdateTime::after_backward : UpdateTime::after_all);
  settings.accumulation = options.get("accumulation", settings.accumulation, Range{1, 1e6});
  return settings;
}

}  // namespace

EntryInfo DataParallel::info() {
  EntryInfo info{
      "data_parallel",
      "synchronous data parallelism with all-reduce",
      {{"granularity", "", "tensor | layer | bucket | cycle | model", "bucket", "what one all-reduce carries"},
       {"bucket", "bytes", "> 0", "25 MiB; 64 MiB with cycle",
        "size at which a bucket is closed; with cycle, the most that is fused"},
       {"first_bucket", "bytes", "> 0", "bucket", "the same for the first bucket of a step"},
       {"cycle", "s", "> 0", "1 ms",
        "gradients are sent at the end of the cycle they are made in, or when the exchange under way then has ended, "
        "all "
        "that wait as one (granularity: cycle)"},
       {"overlap", "", "true | false", "true",
        "start all-reduces during the backward pass; without, after it, and then nothing hides them but what `update` "
        "lets run beside them"},
       {"order", "", "fifo | priority", "fifo",
        "which all-reduce is next: the first ready, or the one that the next forward pass needs first"},
       {"update", "", "after_all | after_backward | before_forward", "after_backward; after_all without overlap",
        "when a layer is updated: when the gradients of all layers are there; after the backward pass, when its own "
        "are there; or just before its next forward pass"},
       {"accumulation", "count", "1 .. batch per worker", "1",
        "micro-batches whose gradients a worker adds up before they are reduced"}}};
  for (ParameterInfo& parameter : GradientCompression::parameters()) info.parameters.push_back(std::move(parameter));
  info.parameters.push_back(CommunicationCores::parameter());
  return info;
}

DataParallel::DataParallel(const ConfigNode& options)
    : options_(options), settings_(read_settings(options)), compression_(options), cores_(options) {}

DataParallel::DataParallel(const ConfigNode& options, const Settings& settings)
    : options_(options), settings_(settings), cores_(options) {}

std::int64_t DataParallel::micro_batch(const StrategyContext& context) const {
  const std::int64_t batch = context.worker_batch();
  if (batch % settings_.accumulation != 0)
    throw options_.at("accumulation")
        .error("a worker's batch of " + std::to_string(batch) + " cannot be divided into " +
               std::to_string(settings_.accumulation) + " micro-batches; use a divisor of " + std::to_string(batch));
  return batch / settings_.accumulation;
}

/// One training step. Everything on a worker's compute queue runs in the order in which it is added here.
class DataParallel::Builder {
 public:
  Builder(const DataParallel& strategy, const StrategyContext& context)
      : settings_(strategy.settings_),
        context_(context),
        trace_(strategy.cores_.slowed_trace(context, strategy.micro_batch(context))),
        compression_(strategy.compression_.of(trace_.precision)),
        buckets_(make_buckets(trace_, settings_.rule)),
        workers_(graph_.add_group("workers", context.workers)),
        compute_(graph_.add_queue("compute", workers_, QueueRole::compute, Discipline::program_order)),
        communication_(graph_.add_queue("communication", workers_, QueueRole::communication, settings_.order)),
        updates_(trace_.layers.size()),
        decoded_(buckets_.size(), false) {}

  TrainingStep build() {
    if (settings_.rule.granularity == Granularity::cycle) graph_.set_fusion(communication_, settings_.rule.limit);
    const bool early = settings_.update == UpdateTime::before_forward;
    for (std::int64_t m = 0; m < settings_.accumulation; ++m) {
      const bool first = m == 0, last = m + 1 == settings_.accumulation;
      const int label = settings_.accumulation > 1 ? static_cast<int>(m) : -1;
      add_forward(graph_, compute_, trace_, {label, [&](std::size_t l) {
                                               if (early && first) add_update(l);
                                             }});
      const LayerPass backward = add_backward(graph_, compute_, trace_, {label, [&](std::size_t l) {
                                                                           if (last) encode_buckets_of(l);
                                                                         }});
      if (last) reduce(backward);
    }
    const std::size_t passes = graph_.tasks().size();
    if (!early)
      for (std::size_t l = trace_.layers.size(); l-- > 0;) add_update(l);
    for (std::size_t b = 0; b < reduced_.size(); ++b) {
      if (settings_.update == UpdateTime::after_all) {
        graph_.after(reduced_[b], static_cast<TaskId>(passes));  // the others follow in program order
        continue;
      }
      if (compression_.any()) graph_.after(reduced_[b], decodings_[b], early ? 1 : 0);
      for (const std::size_t l : buckets_[b].layers)
        if (!compression_.any()) graph_.after(reduced_[b], *updates_[l], early ? 1 : 0);
    }
    return {std::move(graph_), {{"worker", context_.workers, replica_memory(trace_, context_.optimizer)}}};
  }

 private:
  bool reduces() const { return context_.workers.size() > 1; }  // one worker has nobody to reduce with
  int worker_count() const { return static_cast<int>(context_.workers.size()); }

  /// A layer's update, after the decoding of the gradients that it needs.
  void add_update(std::size_t l) {
    if (trace_.layers[l].gradients.empty()) return;
    if (reduces() && compression_.any())
      for (std::size_t b = 0; b < buckets_.size(); ++b) {
        const Bucket& bucket = buckets_[b];
        if (decoded_[b] || std::find(bucket.layers.begin(), bucket.layers.end(), l) == bucket.layers.end()) continue;
        decodings_.resize(buckets_.size());
        const DeviceTime time = context_.on_each_worker(
            [&](const Device& device) { return compression_.decode_time(bucket.bytes, device, worker_count()); });
        decodings_[b] = graph_.compute(compute_, time, {"decode", bucket.name});
        decoded_[b] = true;
      }
    updates_[l] = graph_.compute(compute_, trace_.layers[l].times.update, {"update", trace_.layers[l].name});
  }

  /// Encodes what the layer's backward pass has completed.
  void encode_buckets_of(std::size_t l) {
    if (!reduces() || !compression_.any()) return;
    for (const Bucket& bucket : buckets_) {
      if (bucket.ready_after != l) continue;
      const DeviceTime time =
          context_.on_each_worker([&](const Device& device) { return compression_.encode_time(bucket.bytes, device); });
      encodings_.push_back(graph_.compute(compute_, time, {"encode", bucket.name}));
    }
  }

  void reduce(const LayerPass& backward) {
    if (!reduces()) return;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      const Bucket& bucket = buckets_[b];
      const Collective sum = compression_.sum(bucket.bytes, context_.collective, workers_, worker_count());
      reduced_.push_back(graph_.collective(
          communication_, sum, {sum.op == CollectiveOp::all_reduce ? "all-reduce" : "all-gather", bucket.name}));
      graph_.set_priority(reduced_.back(), static_cast<int>(bucket.ready_after));
      graph_.after(ready(b, backward), reduced_.back());
      if (!settings_.overlap) graph_.after(backward.tasks.back(), reduced_.back());
    }
  }

  /// After which a bucket may be sent: its encoding or backward pass, or the end of the cycle that these fall into.
  TaskId ready(std::size_t b, const LayerPass& backward) {
    const auto made = [&](std::size_t i) {
      return encodings_.empty() ? backward.at(buckets_[i].ready_after) : encodings_[i];
    };
    if (buckets_[b].cycle == 0) return made(b);
    if (b > 0 && buckets_[b - 1].cycle == buckets_[b].cycle) return *cycle_end_;
    std::size_t last = b;
    while (last + 1 < buckets_.size() && buckets_[last + 1].cycle == buckets_[b].cycle) ++last;
    if (!timer_) timer_ = graph_.add_queue("fusion timer", workers_, QueueRole::communication, Discipline::fifo);
    cycle_end_ = graph_.compute(*timer_, buckets_[last].delay, {"wait", buckets_[last].name});
    graph_.after(made(last), *cycle_end_);
    return *cycle_end_;
  }

  const Settings& settings_;
  const StrategyContext& context_;
  WorkloadTrace trace_;
  GradientCompression compression_;
  std::vector<Bucket> buckets_;
  CyclicTaskGraph graph_;
  GroupId workers_;
  QueueId compute_, communication_;
  std::vector<std::optional<TaskId>> updates_;  ///< by layer
  std::vector<bool> decoded_;                   ///< by bucket: whether its decoding has been added
  std::optional<QueueId> timer_;
  std::optional<TaskId> cycle_end_;                      ///< of the current cycle
  std::vector<TaskId> encodings_, decodings_, reduced_;  ///< by bucket; empty without compression or reduction
};

TrainingStep DataParallel::compile(const StrategyContext& context) const { return Builder(*this, context).build(); }

}  // namespace epocast
