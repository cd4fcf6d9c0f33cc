#include "strategies/synchronisation/commit.hpp"

#include <array>
#include <optional>

#include "strategies/synchronisation/server_side.hpp"

namespace epocast {
namespace {

using enum CommitRule::Exchange;
constexpr int kOptimizer = CommitRule::kOptimizer;
constexpr double kStateValue = 4;  // bytes

constexpr std::array kRules{
    CommitRule{"downpour",
               "asynchronous: workers commit the sum of their gradients, the server applies it (Dean et al. 2012)",
               push_then_pull, false, true, 0, kOptimizer, 0, kOptimizer},
    // Normalising reads and writes the sum once.
    CommitRule{"agn", "DOWNPOUR with accumulated gradients divided by the period (Hermans 2017, chapter 4)",
               push_then_pull, false, true, 2, kOptimizer, 0, kOptimizer},
    // Hermans' chapter 5 has only headings: an adaptive step is taken to be one that keeps Adam's state.
    CommitRule{"adag",
               "DOWNPOUR with normalised gradients and an adaptive step at the server (Hermans 2017, chapter 5)",
               push_then_pull, false, true, 2, 7, 0, 2},
    // Read and write the parameters, read the gradient.
    CommitRule{"async_momentum",
               "DOWNPOUR with plain steps at the server: asynchrony itself acts as momentum (Mitliagkas et al. 2016)",
               push_then_pull, false, true, 0, 3, 0, 0},
    CommitRule{"async_local_sgd",
               "asynchronous: workers commit their parameters, the server mixes them into its own (Xie et al. 2019)",
               push_then_pull, false, false, 0, 3, 0, 0},
    // The server adds each worker's parameters to a sum, then divides it: read and write.
    CommitRule{"model_averaging",
               "synchronous: the server averages the parameters of all workers (McDonald et al. 2010)", push_then_pull,
               true, false, 0, 3, 2, 0},
    // A worker reads its parameters and the centre and writes the former; so does the server with the mean.
    CommitRule{"easgd", "synchronous elastic averaging: workers and centre attract each other (Zhang et al. 2015)",
               swap, true, false, 3, 3, 3, 0},
    // As above, and the worker writes the difference as well.
    CommitRule{"aeasgd", "asynchronous elastic averaging: workers commit their difference (Zhang et al. 2015)",
               pull_then_push, false, false, 4, 3, 0, 0},
};

Encoding encoding(const CommitRule& rule, const ServerOptions& options, const WorkloadTrace& trace) {
  return rule.sends_gradients ? options.compression.of_gradients(trace) : options.compression.of(trace.precision);
}

/// Parameters of one chunk of layers.
class CommittedPlace final : public PlaceSynchronisation {
 public:
  CommittedPlace(const CommitRule& rule, int period, const ServerOptions& options, const ParameterPlace& place)
      : rule_(rule),
        period_(period),
        place_(place),
        graph_(place.stage.graph()),
        servers_(ServerSide::of(place, options, encoding(rule, options, place.trace))),
        updates_(servers_.trace(place.trace)),
        pieces_(place_parameters(place.own_trace(), servers_.count(), options.placement, MessageGranularity::model)) {
    if (!rule.sends_gradients)
      for (ParameterPiece& piece : pieces_) piece.gradients = piece.bytes;  // what is pushed
  }

  void before_forward(std::size_t layer, const Turn& turn) override {
    if (turn.step == 0 && turn.first && layer == place_.chunk.first) start_ = place_.stage.mark("");
  }

  void after_backward_pass(const Turn& turn) override {
    if (turn.last) last_ = place_.stage.cut("").front();
  }

  Lanes update(int step) override {
    const int number = period_ > 1 ? step : -1;
    std::optional<TaskId> written;
    const auto compute = [&](const DeviceTime& time, const char* operation, const std::string& layer, int shown) {
      written = last_ = place_.stage.task(time, {operation, layer, shown}).front();
    };
    const std::string whole = place_.by_layer ? "" : place_.chunk.name;
    // The first gradient is the sum so far. After the last step, gradients are all that is wanted: the pull replaces
    // what an update would make.
    const bool ends = step + 1 == period_;
    if (rule_.sends_gradients && step > 0) compute(own_time(3), "sum gradients", whole, number);
    if (!rule_.sends_gradients || !ends) {
      if (!place_.by_layer) compute(place_.chunk.update, "local update", whole, number);
      for (const LayerTrace& layer : place_.trace.layers)
        if (place_.by_layer && layer.times.update.any())
          compute(layer.times.update, "local update", layer.name, number);
    }
    made_ = last_;
    if (ends && rule_.exchange == swap) encode();
    if (ends && rule_.prepare_accesses > 0)
      compute(own_time(rule_.prepare_accesses), rule_.sends_gradients ? "normalise" : "elastic", whole, -1);
    prepared_ = last_;
    if (ends && rule_.exchange != swap) encode();
    if (place_.by_layer) return {};
    return {written ? *written : place_.stage.moment({"gradients", whole})};
  }

  void tie() override {
    for (const ParameterPiece& piece : pieces_) exchange(piece);
  }

  StageSum stage_sum(std::size_t /*layer*/) const override { return {.after = {}, .before = pushes_}; }

  void change(MemoryUse& use) const override {
    const Bytes own = place_.chunk.parameters;
    use.gradients += servers_.rest(pieces_);
    const bool updates_locally = !rule_.sends_gradients || period_ > 1;
    if (!updates_locally) use.state_of(place_.trace) -= place_.optimizer_state();
    if (rule_.sends_gradients && period_ > 1) use.gradients += own;  // their sum
    if (rule_.exchange == push_then_pull) return;
    for (Bytes* bytes : {&use.parameters, &use.passing}) *bytes += own;  // the centre
  }

  bool reads_first() const override { return rule_.exchange == push_then_pull; }

  std::vector<DeviceMemory> elsewhere() const override {
    const Precision precision = place_.trace.precision;
    const double bytes = rule_.server_state_values == kOptimizer
                             ? optimizer_bytes_per_value(place_.context.optimizer, precision)
                             : kStateValue * rule_.server_state_values + master_bytes_per_value(precision);
    return servers_.memory(pieces_, place_.trace, place_.parts(), bytes / bytes_per_value(precision));
  }

 private:
  /// A server's copy of parameters, in fp32.
  Bytes held(const ParameterPiece& piece) const {
    return piece.bytes * (kStateValue / bytes_per_value(place_.trace.precision));
  }

  /// In which a server applies a commit. Gradients are applied by an update, which takes in proportion to its accesses
  /// what one of the study's optimizer takes.
  Seconds commit_time(const ParameterPiece& piece) const {
    if (!rule_.sends_gradients) return servers_.memory_time(piece.server, held(piece), rule_.commit_accesses);
    const int studys = optimizer_accesses(place_.context.optimizer);
    const int own = rule_.commit_accesses == kOptimizer ? studys : rule_.commit_accesses;
    return servers_.update_time(piece, updates_) * (static_cast<double>(own) / studys);
  }

  /// In which a worker reads and writes its parameters so many times.
  DeviceTime own_time(int accesses) const {
    return place_.context.on_each_worker(
        [&](const Device& device) { return place_.chunk.parameters * accesses / device.memory_bandwidth; });
  }

  /// What is committed.
  void encode() {
    sent_ = last_;
    for (const ParameterPiece& piece : pieces_)
      if (servers_.encodes())
        sent_ = last_ = place_.stage.task(servers_.encode_time(piece), {"encode", place_.name() + piece.name}).front();
  }

  void exchange(ParameterPiece piece) {
    piece.name = place_.name() + piece.name;
    const QueueId queue = servers_.queue(piece.server);
    const TaskChain pull = servers_.pull(piece), push = servers_.push(piece);
    const Seconds work = commit_time(piece);
    TaskId applied = graph_.compute_for(place_.stage.group(), queue, servers_.receive_time(piece) + work,
                                        {rule_.waits_for_all ? "accumulate" : "apply", piece.name});
    graph_.after(push.last, applied);
    pushes_.push_back(push.first);
    if (rule_.waits_for_all) {
      const Bytes all = held(piece) * place_.parts();
      const TaskId round =
          graph_.compute(queue, servers_.memory_time(piece.server, all, rule_.round_accesses), {"average", piece.name});
      graph_.after(applied, round);
      applied = round;
    }
    graph_.after(applied, pull.first, 1);
    switch (rule_.exchange) {
      case push_then_pull: {
        const auto& [begins, lag] = place_.stage.at(*start_);
        graph_.after(pull.last, begins.front(), lag);
        graph_.after(sent_, push.first);
        break;
      }
      case swap:
        graph_.after(sent_, push.first);
        graph_.after(made_, pull.first);
        graph_.after(pull.last, prepared_);
        break;
      case pull_then_push:
        graph_.after(made_, pull.first);
        graph_.after(pull.last, prepared_);
        graph_.after(sent_, push.first);
        break;
    }
    // Of parts, none is a version of the whole.
    if (place_.parts() > 1 || !servers_.counts_versions(piece.server)) return;
    graph_.set_version_effect(pull.first, {servers_.store(piece.server), VersionEffect::read_at_start});
    graph_.set_version_effect(applied, {servers_.store(piece.server), VersionEffect::write_at_end});
  }

  const CommitRule& rule_;
  int period_;
  ParameterPlace place_;
  CyclicTaskGraph& graph_;
  ServerSide& servers_;
  WorkloadTrace updates_;  ///< on the servers
  std::vector<ParameterPiece> pieces_;
  std::optional<std::size_t> start_;  ///< mark of the round's first pass
  TaskId prepared_{};                 ///< last task of a round's steps and of the preparation of the exchange
  TaskId made_{};                     ///< last task before an exchange is prepared
  TaskId last_{};                     ///< of a step
  TaskId sent_{};                     ///< after which a commit may be sent
  std::vector<TaskId> pushes_;        ///< by piece
};

}  // namespace

std::span<const CommitRule> commit_rules() { return kRules; }

EntryInfo Commit::info(const CommitRule& rule) {
  EntryInfo info{rule.name,
                 rule.description,
                 {{"period", "steps", "1 .. 1000", "1", "local steps of a worker from one exchange to the next"}}};
  for (ParameterInfo& shared : ServerOptions::parameters()) info.parameters.push_back(std::move(shared));
  return info;
}

Commit::Commit(const CommitRule& rule, const ConfigNode& options)
    : rule_(rule), period_(static_cast<int>(options.get("period", 1, Range{1, 1000}))), servers_(options) {}

std::unique_ptr<PlaceSynchronisation> Commit::at(const ParameterPlace& place) const {
  return std::make_unique<CommittedPlace>(rule_, period_, servers_, place);
}

}  // namespace epocast
