#include "strategies/synchronisation/sharded.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "strategies/step/piece.hpp"

namespace epocast {
namespace {

/// Gathered with a unit's parameters are those that are not trained.
Bytes gathered_bytes(const ParameterPiece& unit) { return unit.bytes + unit.frozen; }

/// The most bytes, counted by `of`, that `count` neighbouring units have together.
template <class Of>
Bytes largest_window(const std::vector<ParameterPiece>& units, std::size_t count, Of of) {
  Bytes most;
  for (std::size_t u = 0; u < units.size(); ++u) {
    Bytes sum;
    for (std::size_t v = u; v < std::min(units.size(), u + count); ++v) sum += of(units[v]);
    most = std::max(most, sum);
  }
  return most;
}

constexpr Bytes kUnit{25.0 * (1 << 20)};

/// `size`: none for the copies of blocks, where the network has any.
std::vector<ParameterPiece> units_of(const WorkloadTrace& trace, const std::optional<Bytes>& size) {
  std::vector<ParameterPiece> units = size ? pieces_of_layers(trace, *size) : pieces_of_blocks(trace);
  return units.empty() ? pieces_of_layers(trace, kUnit) : units;
}

class ShardedPlace final : public PlaceSynchronisation {
 public:
  /// `shards`: of the place's replicas, so many in a row own one copy together. REQUIRES: it divides them.
  ShardedPlace(const Sharded::Settings& settings, const Encoding& compression, const ParameterPlace& place, int shards)
      : settings_(settings),
        compression_(shards > 1 ? compression.of_gradients(place.trace) : compression),
        place_(place),
        graph_(place.stage.graph()),
        units_(units_of(place.own_trace(), settings.unit)),
        shards_(shards),
        sharers_{place.along.stride, static_cast<std::uint32_t>(shards)},
        copies_{place.along.stride * static_cast<std::uint32_t>(shards),
                place.along.extent / static_cast<std::uint32_t>(shards)},
        unit_ending_at_(place.trace.layers.size(), kNone),
        unit_starting_at_(place.trace.layers.size(), kNone),
        summed_(units_.size()) {
    // Layers without parameters go with what is before them.
    for (std::size_t u = 0; u < units_.size(); ++u) {
      unit_starting_at_[u == 0 ? place.chunk.first : units_[u].layers.front()] = u;
      unit_ending_at_[(u + 1 == units_.size() ? place.chunk.last : units_[u + 1].layers.front()) - 1] = u;
    }
    if (shards_ > 1) communication_ = place.communication(place.by_layer ? "communication" : "shards");
  }

  void before_forward(std::size_t layer, const Turn& turn) override {
    if (const std::size_t u = unit_starting_at_[layer]; u != kNone && shards_ > 1 && looks_at_forward(turn)) {
      if (u == 0) passes_.push_back({turn, false, {}, {}});
      const std::string before = u > 0 ? units_[u - 1].name : "";
      if (u > 0) passes_.back().done.push_back(place_.stage.cut(before));
      passes_.back().marks.push_back(place_.stage.mark(before));
    }
  }

  void after_forward_pass(const Turn& turn) override {
    if (shards_ > 1 && !units_.empty() && looks_at_forward(turn)) passes_.back().done.push_back(place_.stage.cut(""));
  }

  void before_backward(std::size_t layer, const Turn& turn) override {
    const std::size_t u = unit_ending_at_[layer];
    if (u == kNone || shards_ == 1 || !gathers_again()) return;
    const bool first = u + 1 == units_.size();
    const std::string before = first ? "" : units_[u + 1].name;
    if (first) passes_.push_back({turn, true, {}, {}});
    if (!first) passes_.back().done.push_back(place_.stage.cut(before));
    passes_.back().marks.push_back(place_.stage.mark(before));
  }

  void after_backward_data_pass(const Turn&) override {
    if (shards_ > 1 && !units_.empty() && gathers_again()) passes_.back().done.push_back(place_.stage.cut(""));
  }

  void after_backward(std::size_t layer, const Turn& turn) override {
    const std::size_t u = unit_starting_at_[layer];
    if (u == kNone || shards_ == 1 || !(units_[u].bytes.value > 0)) return;
    if (!turn.last && settings_.stage < 2) return;
    scatters_.push_back({u, turn, compression_.any() ? encode(units_[u]) : place_.stage.cut(units_[u].name)});
  }

  void after_backward_pass(const Turn& turn) override {
    if (settings_.overlap || scatters_.empty()) return;
    const Lanes end = place_.stage.cut("");
    std::optional<std::size_t> next;
    if (!turn.last) next = place_.stage.mark("");
    for (std::size_t s = scatters_.size(); s-- > 0 && scatters_[s].turn.micro_batch == turn.micro_batch;) {
      scatters_[s].end = end;
      scatters_[s].next = next;
    }
  }

  Lanes update(int /*step*/) override {
    decodings_.resize(units_.size());
    for (std::size_t u = units_.size(); !place_.by_layer && u-- > 0;) decode(u);
    if (!place_.by_layer) {
      const Lanes written =
          place_.stage.task(place_.chunk.update / static_cast<double>(shards_), {"update", place_.chunk.name});
      updates_.assign(units_.size(), written);
      for (const Lanes& decoding : decodings_)
        for (std::size_t lane = 0; !place_.stage.in_program_order() && lane < decoding.size(); ++lane)
          graph_.after(decoding[lane], written[lane]);
      return written;
    }
    updates_.resize(units_.size());
    for (std::size_t u = units_.size(); u-- > 0;) {
      decode(u);
      updates_[u] = place_.stage.task(units_[u].update / static_cast<double>(shards_), {"update", units_[u].name});
    }
    return {};
  }

  void tie() override {
    if (shards_ == 1) return;
    for (const Scatter& scatter : scatters_) {
      const bool sums = compression_.sums_on_the_way();
      const TaskId scattered = communicate(sums ? CollectiveOp::reduce_scatter : CollectiveOp::all_to_all,
                                           sums ? "reduce-scatter" : "all-to-all", scatter.unit, scatter.turn);
      after(scatter.made, scattered);
      after(scatter.end, scattered);
      if (scatter.next) after(scattered, place_.stage.at(*scatter.next).first, place_.stage.at(*scatter.next).second);
      if (!scatter.turn.last) continue;
      const TaskId summed = sum_over_copies(scattered, scatter);
      if (!settings_.overlap) after(summed, compression_.any() ? decodings_.back() : updates_.back());  // the first
      after(summed, compression_.any() ? decodings_[scatter.unit] : updates_[scatter.unit]);
      summed_[scatter.unit] = compression_.any() ? decodings_[scatter.unit] : Lanes{summed};
    }
    for (std::size_t p = 0; p < passes_.size(); ++p) gather(p);
  }

  StageSum stage_sum(std::size_t layer) const override {
    for (std::size_t u = 0; u < units_.size(); ++u)
      if (std::ranges::binary_search(units_[u].layers, layer))
        return {.after = summed_[u], .before = {}, .shares = shards_};
    return {};
  }

  void change(MemoryUse& use) const override {
    const Bytes own = place_.chunk.parameters;
    const double share = 1.0 / shards_;
    const Bytes gradients = place_.chunk.gradients;
    const auto of_unit = [](const ParameterPiece& unit) { return unit.gradients; };
    const bool leave = settings_.stage >= 2 && place_.trace.state_on_host;
    if (leave) {
      // A unit's gradients leave as soon as they are summed (Ren et al. 2021, section 4.1). The host has this replica's
      // share of all, which the next step does without.
      use.gradients += largest_window(units_, 1, of_unit) - gradients;
      use.on_host += gradients * share;
      use.passing += gradients * share;
    }
    if (shards_ == 1) return;
    for (const ParameterPiece& unit : units_) use.gradients += compression_.rest(unit.gradients);
    use.state_of(place_.trace) -= place_.optimizer_state() * (1 - share);
    if (settings_.stage >= 2 && !leave) use.gradients += largest_window(units_, 1, of_unit) - gradients * (1 - share);
    if (settings_.stage < 3) return;
    const Bytes window = largest_window(units_, settings_.reshard ? ahead() : units_.size(), gathered_bytes);
    use.parameters += window - (own * place_.versions + place_.chunk.frozen) * (1 - share);
    use.passing += window;
  }

 private:
  Lanes encode(const ParameterPiece& unit) {
    return place_.stage.task_behind(unit.name, place_.context.on_each_worker([&](const Device& device) {
      return compression_.encode_time(unit.gradients, device);
    }),
                                    {"encode", place_.name() + unit.name});
  }

  /// What this replica got of the others' gradients, of as many micro-batches as they were sent for.
  void decode(std::size_t u) {
    if (!compression_.any() || shards_ == 1) return;
    const double times = settings_.stage >= 2 ? place_.micro_batches : 1;
    const DeviceTime time = place_.context.on_each_worker([&](const Device& device) {
      return compression_.decode_share_time(units_[u].gradients, device, shards_) * times;
    });
    decodings_[u] = place_.stage.task(time, {"decode", place_.name() + units_[u].name});
  }

  static constexpr std::size_t kNone = ~std::size_t{0};

  /// A pass through the chunk, unit by unit in the order of the pass.
  struct GatheredPass {
    Turn turn;
    bool backward = false;
    std::vector<std::size_t> marks;  ///< where a unit begins
    std::vector<Lanes> done;         ///< its last task
  };
  struct Scatter {
    std::size_t unit = 0;
    Turn turn;
    Lanes made;
    Lanes end = {};                        ///< of the pass, if it waits for that
    std::optional<std::size_t> next = {};  ///< mark of what waits for it
  };

  /// Whether a backward pass reads the unit's parameters: something at or before them is trained.
  bool goes_back(const ParameterPiece& unit) const {
    return std::ranges::any_of(unit.layers, [&](std::size_t l) { return place_.trace.layers[l].needs_gradient; });
  }
  bool in_pass() const { return settings_.stage == 3; }
  bool gathers_again() const { return in_pass() && settings_.reshard; }
  /// Whether parameters come just before this pass.
  bool looks_at_forward(const Turn& turn) const { return turn.first || gathers_again(); }
  /// How many units further on those are that may be gathered once one has been computed.
  std::size_t ahead() const { return static_cast<std::size_t>(settings_.prefetch) + 1; }

  void after(const Lanes& before, TaskId task, int lag = 0) {
    for (const TaskId one : before) graph_.after(one, task, lag);
  }
  void after(TaskId before, const Lanes& tasks, int lag = 0) {
    for (const TaskId one : tasks) graph_.after(before, one, lag);
  }

  TaskId communicate(CollectiveOp op, const char* operation, std::size_t u, const Turn& turn) {
    const int shown = place_.micro_batches > 1 ? turn.micro_batch : -1;
    return place_.stage.collective(op, sharers_, communication_,
                                   op != CollectiveOp::all_gather ? compression_.compressed(units_[u].gradients)
                                   : in_pass()                    ? gathered_bytes(units_[u])
                                                                  : units_[u].bytes,
                                   {operation, place_.name() + units_[u].name, shown});
  }

  /// The gradients of a unit's shares, of which each copy has summed its own replicas'.
  TaskId sum_over_copies(TaskId scattered, const Scatter& scatter) {
    if (copies_.extent < 2) return scattered;
    const ParameterPiece& unit = units_[scatter.unit];
    const TaskId summed = place_.stage.collective(
        CollectiveOp::all_reduce, copies_, communication_, unit.gradients / shards_,
        {"all-reduce", place_.name() + unit.name, place_.micro_batches > 1 ? scatter.turn.micro_batch : -1});
    graph_.after(scattered, summed);
    return summed;
  }

  /// The pass after which parameters for this one may come; null: none. Of a program that is served as its passes
  /// become ready, the order of writing says nothing: but a micro-batch's backward pass follows its forward pass.
  const GatheredPass* pass_before(std::size_t p) const {
    if (p == 0) return nullptr;
    if (place_.stage.in_program_order() || !passes_[p].backward) return &passes_[p - 1];
    const int micro_batch = passes_[p].turn.micro_batch;
    const auto forward = std::ranges::find_if(
        passes_, [&](const GatheredPass& q) { return !q.backward && q.turn.micro_batch == micro_batch; });
    return forward == passes_.end() ? nullptr : &*forward;
  }

  /// Brings parameters to all replicas, in the order in which the pass needs them: during the pass, or right behind the
  /// update.
  void gather(std::size_t p) {
    const GatheredPass& pass = passes_[p];
    std::optional<TaskId> before;
    for (std::size_t i = 0; i < pass.marks.size(); ++i) {
      const std::size_t u = pass.backward ? units_.size() - 1 - i : i;
      if (!in_pass() && !(units_[u].bytes.value > 0)) continue;  // nothing changed
      if (pass.backward && !goes_back(units_[u])) continue;
      const TaskId gathered =
          communicate(CollectiveOp::all_gather, pass.backward ? "all-gather again" : "all-gather", u, pass.turn);
      if (before) graph_.after(*before, gathered);
      before = gathered;
      const auto& [needed_by, lag] = place_.stage.at(pass.marks[i]);
      after(gathered, needed_by, lag + (in_pass() ? 0 : place_.behind));
      if (!pass.backward && pass.turn.first) after(updates_[u], gathered, in_pass() ? place_.behind : 0);
      if (!in_pass()) {
        if (settings_.overlap_gathers) continue;
        after(updates_.front(), gathered);  // the last
        const auto& [first, its_lag] = place_.stage.at(pass.marks.front());
        after(gathered, first, its_lag + place_.behind);
        continue;
      }
      if (i >= ahead())
        after(pass.done[i - ahead()], gathered);
      else if (const GatheredPass* previous = pass_before(p))
        after(previous->done.back(), gathered);
    }
  }

  Sharded::Settings settings_;
  Encoding compression_;
  ParameterPlace place_;
  CyclicTaskGraph& graph_;
  std::vector<ParameterPiece> units_;
  int shards_;
  Axis sharers_, copies_;  ///< of one copy; of the devices with the same share of each copy
  QueueId communication_ = QueueId::none;
  std::vector<std::size_t> unit_ending_at_, unit_starting_at_;  ///< by layer
  std::vector<GatheredPass> passes_;                            ///< in the program's order
  std::vector<Scatter> scatters_;
  std::vector<Lanes> updates_, decodings_;  ///< by unit
  std::vector<Lanes> summed_;               ///< by unit: its gradients, over all replicas
};

}  // namespace

EntryInfo Sharded::info() {
  return Encoding::added_to(
      {"sharded",
       "each replica owns a share of what it trains (ZeRO, FSDP)",
       {{"stage", "", "1 .. 3", "3", "what is sharded: optimizer state; gradients too; parameters too"},
        {"unit", "", "bytes, or block", "25 MiB",
         "parameters that travel together, in whole layers; block: each copy of what the network repeats, and what is "
         "between"},
        {"overlap", "", "true | false", "true",
         "start reduce-scatters during the backward pass; without, after it, and what comes next waits for them"},
        {"overlap_gathers", "", "true | false", "true",
         "gather parameters as updates and the next forward pass go on; without, between the two (stage: 1, 2)"},
        {"prefetch", "count", "0 .. 1e6", "1", "units gathered ahead of the one that computes (stage: 3)"},
        {"reshard", "", "true | false", "true",
         "drop the gathered parameters after the forward pass and gather them again (stage: 3)"},
        {"shards", "replicas", "2 .. 1e5, or node", "all",
         "so many in a row, or those of a node, own one copy together; copies sum their gradients (hybrid shard)"}}});
}

Sharded::Sharded(const ConfigNode& options) : options_(options), compression_(options) {
  settings_.stage = options.get("stage", settings_.stage, Range{1, 3});
  const bool by_block =
      options.has("unit") && options.at("unit").is_scalar() && options.at("unit").as_string() == "block";
  if (!by_block) settings_.unit = options.get("unit", kUnit, Range{1, 1e15});
  settings_.overlap = options.get("overlap", settings_.overlap);
  settings_.overlap_gathers = options.get("overlap_gathers", settings_.overlap_gathers);
  if (options.has("overlap_gathers") && settings_.stage == 3)
    throw options.at("overlap_gathers").error("stage 3 gathers during the passes; use prefetch to say how far ahead");
  settings_.prefetch = options.get("prefetch", settings_.prefetch, Range{0, 1e6});
  settings_.reshard = options.get("reshard", settings_.reshard);
  if (options.has("shards")) {
    const ConfigNode shards = options.at("shards");
    const std::string word = shards.as_string();
    settings_.shards = word == "all" ? kAll : word == "node" ? kNode : shards.as_int({2, 1e5});
    if (settings_.shards != kAll && compression_.any())
      throw shards.error("encoded gradients cannot be summed over copies; leave out shards or compression");
  }
  for (const char* key : {"prefetch", "reshard"})
    if (options.has(key) && settings_.stage < 3)
      throw options.at(key).error("parameters are gathered during the passes in stage 3 only; use stage: 3");
}

/// How many replicas own one copy together.
int Sharded::shards_of(const ParameterPlace& place) const {
  const int replicas = place.replicas();
  if (settings_.shards == kAll || replicas == 1) return replicas;
  if (settings_.shards != kNode) {
    if (replicas % settings_.shards == 0) return static_cast<int>(settings_.shards);
    throw options_.at("shards").error(
        fmt::format("{} shards do not divide {} replicas; use a divisor of these, or all", settings_.shards, replicas));
  }
  const std::optional<int> on_node = place.replicas_on_node();
  if (!on_node)
    throw options_.at("shards").error(
        "replicas are not equally many on all nodes, neighbours first; give the number of shards");
  if (*on_node == 1)
    throw options_.at("shards").error("each node has one replica only, with nobody to share with; leave this out");
  return *on_node;
}

std::unique_ptr<PlaceSynchronisation> Sharded::at(const ParameterPlace& place) const {
  return std::make_unique<ShardedPlace>(settings_, compression_, place, shards_of(place));
}

}  // namespace epocast
