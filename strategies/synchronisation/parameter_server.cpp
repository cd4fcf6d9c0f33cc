#include "strategies/synchronisation/parameter_server.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/step/options.hpp"
#include "strategies/synchronisation/server_side.hpp"

namespace epocast {
namespace {

/// To add one worker's gradient to a sum in the server's memory: two reads and a write of each value.
constexpr int kAccumulationAccesses = 3;

/// How many steps a worker may be ahead of the slowest; absent: any number.
std::optional<int> read_staleness(const ConfigNode& options, ParameterServer::Mode mode) {
  if (mode != ParameterServer::Mode::stale) {
    if (options.has("staleness"))
      throw options.at("staleness").error("a bound has no effect in this mode; use mode: stale");
    return mode == ParameterServer::Mode::async ? std::nullopt : std::optional(0);
  }
  if (!options.has("staleness")) return 1;
  return count_or(options.at("staleness"), "infinite", Range{0, 1e6});
}

ParameterServer::Overlap read_overlap(const ConfigNode& options) {
  using enum ParameterServer::Overlap;
  if (options.has("overlap") && options.at("overlap").is_scalar()) {
    const std::string word = options.at("overlap").as_string();
    if (word == "push") return pushes;
    if (word == "step") return step;
  }
  return options.get("overlap", true) ? both : none;
}

int read_backup(const ConfigNode& options, ParameterServer::Mode mode) {
  if (mode == ParameterServer::Mode::backup) return static_cast<int>(options.get("backup", 1, Range{0, 1e6}));
  if (options.has("backup")) throw options.at("backup").error("no worker is spare in this mode; use mode: backup");
  return 0;
}

/// Parameters of one chunk of layers.
class ServedPlace final : public PlaceSynchronisation {
 public:
  ServedPlace(const ParameterServer::Settings& settings, const ParameterPlace& place)
      : settings_(settings),
        place_(place),
        graph_(place.stage.graph()),
        workers_(place.stage.group()),
        servers_(ServerSide::of(place, settings.servers, settings.servers.compression.of_gradients(place.trace))),
        updates_(servers_.trace(place.trace)),
        pieces_(
            place_parameters(place.own_trace(), servers_.count(), settings.servers.placement, settings.granularity)),
        needed_(place.trace.layers.size()),
        made_(place.trace.layers.size()),
        is_first_(place.trace.layers.size(), false),
        pushes_(place.trace.layers.size()) {
    for (const ParameterPiece& piece : pieces_) is_first_[piece.layers.front()] = true;
    if (settings.by_node) node_.extent = static_cast<std::uint32_t>(*place.replicas_on_node());
  }

  void before_forward(std::size_t layer, const Turn& turn) override {
    if (!turn.first || !place_.stage.in_program_order()) return;
    if (pulls_by_piece() ? is_first_[layer] : layer == place_.chunk.first) needed_[layer] = place_.stage.mark(passed_);
    passed_ = place_.trace.layers[layer].name;
  }

  void after_backward(std::size_t layer, const Turn& turn) override {
    if (!turn.last || !overlaps() || !is_first_[layer]) return;
    const std::string& name = place_.trace.layers[layer].name;
    made_[layer] = place_.stage.cut(name).front();
    for (const ParameterPiece& piece : pieces_)
      if (piece.layers.front() == layer && servers_.encodes())
        made_[layer] =
            place_.stage.task_behind(name, servers_.encode_time(piece), {"encode", label(piece.name)}).front();
  }

  void after_backward_pass(const Turn& turn) override {
    TaskId end = place_.stage.cut("").front();
    for (const ParameterPiece& piece : pieces_)
      if (turn.last && !overlaps() && servers_.encodes())
        end = place_.stage.task_behind("", servers_.encode_time(piece), {"encode", label(piece.name)}).front();
    if (turn.last || !place_.stage.in_program_order()) ends_.push_back(end);
  }

  Lanes update(int /*step*/) override {
    if (place_.by_layer) return {};
    updated_ = place_.stage.moment({"updated", place_.chunk.name});
    return {*updated_};
  }

  void tie() override {
    // Who is not waited for begins a step when its last one has ended, unless all have updated that step without it.
    if (settings_.backup > 0) {
      begin_ = place_.stage.moment({"begin", ""});
      graph_.after(ends_.back(), *begin_, 1);
    }
    // Without overlap a step is one whole: nothing of it begins before all updates that the last one led to; nor do
    // pulls where only pushes overlap. A server that replies to each push waits for no others.
    const bool waits = !overlaps() || settings_.overlap == ParameterServer::Overlap::pushes;
    if (waits && !settings_.servers.replies()) start_ = place_.stage.moment({"start", label("")});
    for (const ParameterPiece& piece : pieces_) serve(piece);
  }

  StageSum stage_sum(std::size_t layer) const override { return {.after = {}, .before = pushes_[layer]}; }

  void change(MemoryUse& use) const override {
    use.gradients += servers_.rest(pieces_);
    use.state_of(place_.trace) -= place_.optimizer_state();  // the servers keep it
  }

  bool reads_first() const override { return place_.stage.in_program_order(); }

  StoreId shared_versions() const override { return shared_versions_; }

  std::vector<DeviceMemory> elsewhere() const override {
    return servers_.memory(pieces_, place_.trace, place_.parts(),
                           optimizer_share(place_.context.optimizer, place_.trace));
  }

 private:
  bool overlaps() const { return settings_.overlap != ParameterServer::Overlap::none; }
  /// Whether the forward pass begins before all pulls have ended.
  bool pulls_by_piece() const { return overlaps() && settings_.overlap != ParameterServer::Overlap::step; }
  std::string label(const std::string& piece) const { return place_.name() + piece; }

  /// Pull, push and update of a piece. Where programs end their steps, a step begins with the pull; else with whatever
  /// parameters the last pull brought.
  void serve(ParameterPiece piece) {
    const std::size_t first = piece.layers.front();
    piece.name = label(piece.name);
    const bool pulls_first = place_.stage.in_program_order();
    const int next = pulls_first ? 1 : 0;
    const QueueId queue = servers_.queue(piece.server);
    ParameterPiece share = piece;  // that a device pushes and pulls
    share.bytes = share.bytes / node_.extent;
    share.gradients = share.gradients / node_.extent;
    TaskChain pull = servers_.pull(share), push = servers_.push(share);
    if (node_.extent > 1) {
      const TaskId summed = within_node(CollectiveOp::reduce_scatter, piece, "sum in node");
      graph_.after(summed, push.first);
      push.first = summed;
      const TaskId gathered = within_node(CollectiveOp::all_gather, piece, "gather in node");
      graph_.after(pull.last, gathered);
      pull.last = gathered;
    }

    if (pulls_first) {
      // On its way forward, a worker needs the piece at the first layer in it; on its way back it reaches that layer
      // last.
      const auto& [needed_by, lag] = place_.stage.at(*needed_[pulls_by_piece() ? first : place_.chunk.first]);
      for (const TaskId task : needed_by) graph_.after(pull.last, task, lag);
      if (updated_) graph_.after(*updated_, start_.value_or(pull.first), 1);
    } else {
      graph_.after(pull.last, *updated_);
    }
    for (const TaskId end : ends_)
      if (!overlaps() || !pulls_first) graph_.after(end, push.first);
    if (overlaps()) graph_.after(made_[first], push.first);

    for (const std::size_t layer : piece.layers) pushes_[layer].push_back(push.first);
    const TaskId updated = update(piece, share, push, queue, start_.value_or(pull.first), next);
    graph_.after(updated, start_.value_or(pull.first), next);
    if (start_) graph_.after(*start_, pull.first);
    if (begin_) graph_.after(*begin_, pull.first);
    // Late gradients are dropped, not stale: with backup workers there is nothing to count. Of parts, none is a version
    // of the whole. Where steps never end, passes use copies: of one server's versions, unless updates are for all.
    if (begin_ || place_.parts() > 1) return;
    if (!pulls_first && (settings_.staleness == 0 || shared_versions_ != StoreId::none)) return;
    if (!servers_.counts_versions(piece.server)) return;
    const StoreId store = servers_.store(piece.server);
    if (!pulls_first) shared_versions_ = store;
    graph_.set_version_effect(pull.first, {store, VersionEffect::read_at_start});
    graph_.set_version_effect(updated, {store, VersionEffect::write_at_end});
  }

  TaskId within_node(CollectiveOp op, const ParameterPiece& piece, const char* operation) {
    const Bytes bytes = op == CollectiveOp::reduce_scatter ? piece.gradients : piece.bytes;
    return place_.stage.collective(op, node_, place_.communication(operation), bytes, {operation, piece.name});
  }

  /// At the server, to which each device sends its share of the piece. `pulled`: what the next step begins with, so
  /// many iterations later.
  TaskId update(const ParameterPiece& piece, const ParameterPiece& share, const TaskChain& push, QueueId queue,
                TaskId pulled, int next) {
    const Seconds received = servers_.receive_time(share), update = servers_.update_time(piece, updates_);
    // With bound 0 all gradients of a step are there before anybody pulls: the server may sum them and update once.
    if (settings_.staleness == 0) {
      const Seconds sum = servers_.memory_time(piece.server, share.gradients, kAccumulationAccesses);
      const TaskId summing = graph_.compute_for(workers_, queue, received + sum, {"accumulate", piece.name});
      const TaskId updated = graph_.compute(queue, update * place_.parts(), {"update", piece.name});
      graph_.after(push.last, summing);
      graph_.after(summing, updated);
      if (begin_) {
        graph_.set_quorum(updated, place_.replicas() - settings_.backup);
        graph_.obsolete_after(summing, updated);
        graph_.obsolete_after(*begin_, updated);
      }
      return updated;
    }
    const TaskId updated = graph_.compute_for(workers_, queue, received + update, {"update", piece.name});
    graph_.after(push.last, updated);
    if (settings_.staleness) {
      // Who pulls for the step after next but `bound` needs everybody's update of this one.
      const TaskId bound =
          graph_.compute_for(servers_.group(piece.server), QueueId::none, Seconds(0), {"bound", piece.name});
      graph_.after(updated, bound);
      graph_.after(bound, pulled, next + *settings_.staleness);
    }
    return updated;
  }

  ParameterServer::Settings settings_;
  ParameterPlace place_;
  CyclicTaskGraph& graph_;
  GroupId workers_;
  ServerSide& servers_;
  WorkloadTrace updates_;  ///< on the servers
  std::vector<ParameterPiece> pieces_;
  std::vector<std::optional<std::size_t>> needed_;  ///< by layer: mark of the step's first pass
  std::vector<TaskId> made_;                        ///< by layer: after which the gradients of a piece are there
  std::vector<bool> is_first_;                      ///< by layer: of a piece
  std::vector<std::vector<TaskId>> pushes_;         ///< by layer: of what its gradients travel in
  std::string passed_;                              ///< layer before, of the first pass
  std::vector<TaskId> ends_;                        ///< of backward passes
  std::optional<TaskId> begin_, start_, updated_;
  Axis node_;  ///< along which devices sum first
  StoreId shared_versions_ = StoreId::none;
};

}  // namespace

EntryInfo ParameterServer::info() {
  EntryInfo info{
      "parameter_server",
      "workers push gradients to parameter servers and pull new parameters",
      {{"mode", "", "sync | async | stale | backup", "sync",
        "wait for the gradients of all workers; apply each as it comes; that within a bound; or wait for all but a "
        "few"},
       {"staleness", "steps", ">= 0, infinite", "1", "how far a worker may be ahead of the slowest (mode: stale)"},
       {"backup", "workers", "0 .. workers - 1", "1", "whose gradients, the last to come, are dropped (mode: backup)"},
       {"granularity", "", "tensor | layer | model", "layer",
        "what one message carries: a tensor, a layer, or all that a server holds"},
       {"overlap", "", "true | push | step | false", "true",
        "push during the backward pass and pull during the forward pass, as far as the granularity allows; with push, "
        "pulls begin when all updates of the worker's last step have ended; with step, a step begins when all its "
        "pulls have ended; without, when all updates have, and then pulls"},
       {"by_node", "", "true | false", "false",
        "the devices of a node sum their gradients first, then each pushes and pulls its share of them (mode: sync)"}}};
  for (ParameterInfo& shared : ServerOptions::parameters()) info.parameters.push_back(std::move(shared));
  return info;
}

ParameterServer::ParameterServer(const ConfigNode& options)
    : options_(options),
      settings_{.mode = choose(
                    options, "mode",
                    {{"sync", Mode::sync}, {"async", Mode::async}, {"stale", Mode::stale}, {"backup", Mode::backup}},
                    Mode::sync),
                .granularity = choose(options, "granularity",
                                      {{"tensor", MessageGranularity::tensor},
                                       {"layer", MessageGranularity::layer},
                                       {"model", MessageGranularity::model}},
                                      MessageGranularity::layer),
                .overlap = read_overlap(options),
                .by_node = options.get("by_node", false),
                .servers = ServerOptions(options)} {
  settings_.staleness = read_staleness(options, settings_.mode);
  settings_.backup = read_backup(options, settings_.mode);
  if (settings_.servers.replies() && settings_.granularity != MessageGranularity::model)
    throw options.at("requests").error("a request is all that a server holds; add granularity: model");
  if (!settings_.by_node) return;
  if (settings_.mode != Mode::sync)
    throw options.at("by_node").error("a node's sum has no version of its own to be late with; use mode: sync");
  if (settings_.servers.compression.any())
    throw options.at("by_node").error("nodes add up whole gradients; leave out compression, or by_node");
}

void ParameterServer::check(const ParameterPlace& place) const {
  if (settings_.by_node && place.parts() > 1)
    throw options_.at("by_node").error(
        "devices of a node have different parts of the parameters; leave out by_node, or use a mesh with a data axis "
        "only");
  if (settings_.by_node && !place.replicas_on_node())
    throw options_.at("by_node").error(
        "nodes have unequal numbers of workers, or not one after the other; take equally many of each node");
  if (settings_.mode != Mode::backup) return;
  const ConfigNode at = options_.has("backup") ? options_.at("backup") : options_;
  const int workers = place.replicas();
  if (settings_.backup >= workers)
    throw at.error(fmt::format("{} of {} workers are spare: none is left to wait for; set backup to at most {}",
                               settings_.backup, workers, workers - 1));
  if (!place.by_layer || static_cast<int>(place.stage.ranks().devices.size()) > workers)
    throw at.error(
        "a replica of several devices is not dropped as a whole; use mode: stale, or a mesh with a data axis only");
}

std::unique_ptr<PlaceSynchronisation> ParameterServer::at(const ParameterPlace& place) const {
  check(place);
  return std::make_unique<ServedPlace>(settings_, place);
}

}  // namespace epocast
