#include "strategies/synchronisation/average.hpp"

#include <optional>

#include "strategies/step/piece.hpp"

namespace epocast {
namespace {

class AveragedPlace final : public PlaceSynchronisation {
 public:
  AveragedPlace(const Average::Settings& settings, const Encoding& compression, const ParameterPlace& place)
      : settings_(settings),
        compression_(compression.of(place.trace.precision)),
        place_(place),
        trace_(place.own_trace()),
        updates_(trace_.layers.size()) {
    if (place.replicas() == 1) return;  // which is the average
    const PieceRule rule{.granularity = Granularity::bucket, .limit = settings.bucket, .first = settings.bucket};
    buckets_ = make_pieces(trace_, rule);
    communication_ = place.communication(place.by_layer ? "communication" : "averages");
  }

  void before_forward(std::size_t layer, const Turn& turn) override {
    if (turn.step == 0 && turn.first && layer == place_.chunk.first) start_ = place_.stage.mark("");
  }

  Lanes update(int step) override {
    Lanes written;
    const bool ends = step + 1 == settings_.period;
    if (ends && settings_.overlap) decode();
    if (!place_.by_layer) {
      written = place_.stage.task(place_.chunk.update, {"update", place_.chunk.name});
      updates_.assign(updates_.size(), written);
    } else {
      for (std::size_t l = trace_.layers.size(); l-- > 0;)
        if (!trace_.layers[l].gradients.empty())
          updates_[l] = place_.stage.task(trace_.layers[l].times.update, {"update", trace_.layers[l].name});
    }
    if (ends) average();
    if (ends && !settings_.overlap) decode();
    return written;
  }

  void tie() override {
    // Steps that are written as one come before any pass that could be marked.
    const auto [start, lag] = start_ ? place_.stage.at(*start_) : std::pair(place_.stage.first(), 0);
    // With overlap the last update of a round mixes in what the round before it sent off, at no cost worth counting.
    for (std::size_t b = 0; b < averages_.size(); ++b)
      for (const TaskId task : settings_.overlap ? updates_[buckets_[b].layers.front()] : start)
        place_.stage.graph().after(averages_[b], task, 1 + (settings_.overlap ? 0 : lag));
    for (std::size_t b = 0; b < decodings_.size(); ++b)
      for (const TaskId task : decodings_[b]) place_.stage.graph().after(averages_[b], task, settings_.overlap ? 1 : 0);
  }

  void change(MemoryUse& use) const override {
    if (settings_.overlap && place_.replicas() > 1) use.gradients += place_.chunk.parameters;  // the average on its way
    for (const ParameterPiece& bucket : buckets_) use.gradients += compression_.rest(bucket.bytes);
  }

 private:
  template <class Of>
  Lanes task(Of time, const char* operation, const ParameterPiece& bucket) {
    return place_.stage.task(place_.context.on_each_worker(time), {operation, place_.name() + bucket.name});
  }

  void average() {
    for (const ParameterPiece& bucket : buckets_) {
      Lanes made;
      if (compression_.any())
        made = task([&](const Device& device) { return compression_.encode_time(bucket.bytes, device); }, "encode",
                    bucket);
      averages_.push_back(place_.stage.graph().collective_along(
          place_.along, communication_,
          compression_.sum(bucket.bytes, place_.context.collective, place_.stage.group(), place_.replicas()),
          {"all-reduce", place_.name() + bucket.name}));
      for (const TaskId update : updates_[bucket.layers.front()]) place_.stage.graph().after(update, averages_.back());
      for (const TaskId one : made) place_.stage.graph().after(one, averages_.back());
    }
  }

  /// What the others sent: of this round, or with overlap of the one before.
  void decode() {
    if (!compression_.any()) return;
    for (const ParameterPiece& bucket : buckets_)
      decodings_.push_back(
          task([&](const Device& device) { return compression_.decode_time(bucket.bytes, device, place_.replicas()); },
               "decode", bucket));
  }

  Average::Settings settings_;
  Encoding compression_;
  ParameterPlace place_;
  WorkloadTrace trace_;
  std::vector<ParameterPiece> buckets_;
  QueueId communication_ = QueueId::none;
  std::vector<Lanes> updates_;        ///< by layer: of the last step
  std::vector<TaskId> averages_;      ///< by bucket
  std::vector<Lanes> decodings_;      ///< by bucket; none without compression
  std::optional<std::size_t> start_;  ///< mark of the round's first pass
};

}  // namespace

EntryInfo Average::info() {
  return Encoding::added_to(
      {"average",
       "replicas train by themselves for some steps, then average their parameters by all-reduce (local SGD)",
       {{"period", "count", "1 .. 1e6", "8", "steps from one average to the next"},
        {"bucket", "bytes", "> 0", "25 MiB", "size at which a bucket of parameters is closed"},
        {"overlap", "", "true | false", "false", "average while the next round computes; mix it in at its end"}}});
}

Average::Average(const ConfigNode& options)
    : settings_{.period = static_cast<int>(options.get("period", 8, Range{1, 1e6})),
                .bucket = options.get("bucket", Bytes(25.0 * (1 << 20)), Range{1, 1e15}),
                .overlap = options.get("overlap", false)},
      compression_(options) {}

std::unique_ptr<PlaceSynchronisation> Average::at(const ParameterPlace& place) const {
  return std::make_unique<AveragedPlace>(settings_, compression_, place);
}

}  // namespace epocast
