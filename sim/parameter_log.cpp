#include "sim/parameter_log.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace epocast {
namespace {

using EventKind = ParameterEvent::Kind;

/// An event that each execution of a task brings with it.
struct Rule {
  EventKind kind{};
  bool at_end = false;
  std::int32_t piece = ParameterEvent::kAll;
  bool for_all = false;   ///< of ranks
  int repeat = 1;         ///< local steps that are one task
  std::int32_t rank = 0;  ///< of the task's first one
};

/// What the tasks of a graph do to parameters.
class Rules {
 public:
  Rules(const CyclicTaskGraph& graph, std::int64_t steps);

  const std::vector<Rule>& of(std::uint32_t task) const { return rules_[task]; }
  const std::vector<LoggedPiece>& pieces() const { return pieces_; }
  std::int32_t gradients() const { return gradients_; }
  std::int32_t workers() const { return workers_; }
  /// The worker at the other end of a message between neighbours, and of what it sets off.
  std::int32_t partner(std::uint32_t task, std::int32_t rank) const;

 private:
  std::string_view operation(std::size_t t) const { return graph_.tasks()[t].label.operation.text(); }
  QueueRole role(std::size_t t) const;
  void find_pieces();
  std::int32_t piece_of(std::size_t t) const;
  void add(std::size_t t, Rule rule) { rules_[t].push_back(rule); }
  void add_server_rules();
  void add_version_rules();
  void add_stage_rules();
  /// A store of a stage's device is named after both.
  static std::pair<std::string, std::int32_t> stage_and_device(const std::string& store);
  void add_worker_rules(std::int64_t steps);
  void add_replica_rules();
  void add_neighbour_rules();

  const CyclicTaskGraph& graph_;
  std::vector<std::vector<Rule>> rules_;
  std::vector<LoggedPiece> pieces_;
  std::map<std::string, std::int32_t, std::less<>> piece_index_;
  std::map<std::size_t, std::vector<std::int32_t>> partners_;  ///< by task
  std::int32_t gradients_ = 0, workers_ = 1;
  bool has_pulls_ = false, has_rounds_ = false, is_pipeline_ = false;
};

Rules::Rules(const CyclicTaskGraph& graph, std::int64_t steps) : graph_(graph), rules_(graph.tasks().size()) {
  for (std::size_t t = 0; t < rules_.size(); ++t) {
    has_pulls_ |= operation(t) == "pull";
    has_rounds_ |= operation(t) == "accumulate";
    if (operation(t) == "backward") workers_ = std::max(workers_, graph.ranks_of(TaskId(t)));
  }
  is_pipeline_ = !has_pulls_ && std::ranges::any_of(graph.stores(), &Store::replicated);
  find_pieces();
  if (is_pipeline_) {
    add_stage_rules();
    return;
  }
  add_server_rules();
  if (!has_pulls_) add_version_rules();
  add_worker_rules(steps);
  add_replica_rules();
  add_neighbour_rules();
  if (gradients_ == 0) throw GraphError("no task of the graph computes gradients");
}

QueueRole Rules::role(std::size_t t) const {
  const QueueId queue = graph_.tasks()[t].queue;
  return queue == QueueId::none ? QueueRole::communication : graph_.queue(queue).role;
}

/// Pieces are what workers pull, by name; else what version counters count; else all as one.
void Rules::find_pieces() {
  double total = 0;
  const auto add_piece = [&](const std::string& name, double bytes) {
    if (!piece_index_.emplace(name, static_cast<std::int32_t>(pieces_.size())).second) return;
    pieces_.push_back({name, bytes});
    total += bytes;
  };
  for (std::size_t t = 0; t < rules_.size(); ++t) {
    if (operation(t) != "pull") continue;
    const auto* transfer = std::get_if<Transfer>(&graph_.tasks()[t].work);
    const bool travels = transfer != nullptr && transfer->bytes.value > 0;
    add_piece(graph_.tasks()[t].label.layer, travels ? transfer->bytes.value : 1);
  }
  if (pieces_.empty())
    for (const Store& store : graph_.stores())
      add_piece(is_pipeline_ ? stage_and_device(store.name).first : store.name, 1);
  if (pieces_.empty()) add_piece("", 1);
  for (LoggedPiece& piece : pieces_) piece.share /= total;
}

std::int32_t Rules::piece_of(std::size_t t) const {
  const auto found = piece_index_.find(graph_.tasks()[t].label.layer.text());
  return found == piece_index_.end() ? ParameterEvent::kAll : found->second;
}

/// Servers serve: contributions are applied as they come, or added up and applied at the end of a round.
void Rules::add_server_rules() {
  if (!has_pulls_) return;
  for (std::size_t t = 0; t < rules_.size(); ++t) {
    const std::string_view what = operation(t);
    const std::int32_t piece = piece_of(t);
    const bool on_server = role(t) == QueueRole::server;
    if (what == "pull") add(t, {.kind = EventKind::read, .piece = piece});
    if (what == "apply" || (what == "update" && on_server && !has_rounds_))
      add(t, {.kind = EventKind::commit, .at_end = true, .piece = piece});
    if (what == "accumulate") add(t, {.kind = EventKind::accumulate, .at_end = true, .piece = piece});
    if (on_server && has_rounds_ && (what == "update" || what == "average")) {
      add(t, {.kind = EventKind::close, .piece = piece, .for_all = true});
      add(t, {.kind = EventKind::write, .at_end = true, .piece = piece, .for_all = true});
    }
  }
}

/// Shared memory, and stages of pipelines that keep versions.
void Rules::add_version_rules() {
  for (std::size_t t = 0; t < rules_.size(); ++t) {
    const VersionEffect& effect = graph_.tasks()[t].version;
    if (effect.store == StoreId::none) continue;
    const auto piece = static_cast<std::int32_t>(effect.store);
    if (effect.kind == VersionEffect::read_at_start) add(t, {.kind = EventKind::read, .piece = piece});
    if (effect.kind == VersionEffect::write_at_end) add(t, {.kind = EventKind::commit, .at_end = true, .piece = piece});
  }
}

std::pair<std::string, std::int32_t> Rules::stage_and_device(const std::string& store) {
  constexpr std::string_view kDevice = " replica ";
  const std::size_t at = store.rfind(kDevice);
  if (at == std::string::npos) return {store, 0};
  return {store.substr(0, at), std::stoi(store.substr(at + kDevice.size()))};
}

/// Stages of a pipeline: each of their devices reads, computes and updates its copy.
void Rules::add_stage_rules() {
  gradients_ = 1;
  std::vector<std::optional<std::size_t>> backward(graph_.stores().size());
  for (std::size_t t = 0; t < rules_.size(); ++t) {
    if (!operation(t).starts_with("backward") || role(t) != QueueRole::compute) continue;
    for (std::size_t s = 0; s < backward.size(); ++s) {
      const std::string &store = graph_.stores()[s].name, &layer = graph_.tasks()[t].label.layer;
      if (!backward[s] && (layer == store || layer.starts_with(store + ' '))) backward[s] = t;
    }
  }
  for (std::size_t t = 0; t < rules_.size(); ++t) {
    const VersionEffect& effect = graph_.tasks()[t].version;
    if (effect.store == StoreId::none) continue;
    const auto store = static_cast<std::size_t>(effect.store);
    const auto [stage, device] = stage_and_device(graph_.stores()[store].name);
    const std::int32_t piece = piece_index_.find(stage)->second;
    workers_ = std::max(workers_, device + graph_.ranks_of(TaskId(t)));
    if (effect.kind == VersionEffect::read_at_start) {
      add(t, {.kind = EventKind::read, .piece = piece, .rank = device});
      if (backward[store]) add(*backward[store], {.kind = EventKind::gradient, .piece = piece, .rank = device});
    } else {
      add(t, {.kind = EventKind::commit, .at_end = true, .piece = piece, .rank = device});
    }
  }
}

/// A worker's program: runs of backward passes, each a gradient, and of updates, each a step.
void Rules::add_worker_rules(std::int64_t steps) {
  bool in_backward = false;
  std::optional<std::size_t> last_update;
  const auto end_updates = [&] {
    if (last_update) add(*last_update, {.kind = EventKind::step, .at_end = true});
    last_update.reset();
  };
  for (std::size_t t = 0; t < rules_.size(); ++t) {
    if (role(t) != QueueRole::compute) continue;
    const std::string_view what = operation(t);
    if (what == "backward") {
      if (!in_backward) {
        end_updates();
        add(t, {.kind = EventKind::gradient});
        ++gradients_;
      }
      in_backward = true;
    } else if (what == "forward") {
      in_backward = false;
    } else if (what == "update" || what == "local update") {
      in_backward = false;
      last_update = t;
    } else if (what == "local steps") {
      const int repeat = static_cast<int>(steps) - 1;
      add(t, {.kind = EventKind::gradient, .at_end = true, .repeat = repeat});
      gradients_ += repeat;
    } else if (what == "elastic" || what == "normalise") {
      add(t, {.kind = EventKind::prepare, .at_end = true});
    }
  }
  end_updates();
}

/// Workers that train by themselves and average now and then by a collective.
void Rules::add_replica_rules() {
  for (std::size_t t = 0; t < rules_.size(); ++t) {
    if (operation(t) != "all-reduce") continue;
    const bool of_parameters = std::ranges::any_of(graph_.edges(), [&](const Edge& edge) {
      return CyclicTaskGraph::index(edge.after) == t && edge.lag == 0 &&
             operation(CyclicTaskGraph::index(edge.before)) == "update";
    });
    if (!of_parameters) continue;
    add(t, {.kind = EventKind::reduce, .at_end = true, .for_all = true});
    for (const Edge& edge : graph_.edges())
      if (CyclicTaskGraph::index(edge.before) == t && edge.lag == 1)
        add(CyclicTaskGraph::index(edge.after), {.kind = EventKind::mix});
  }
}

/// Workers that average with a neighbour, who answers at once.
void Rules::add_neighbour_rules() {
  std::vector<std::int32_t> partners;
  for (std::size_t t = 0; t < rules_.size(); ++t) {
    const std::string_view what = operation(t);
    if (const auto* message = std::get_if<Transfer>(&graph_.tasks()[t].work); message != nullptr && what == "send") {
      const std::vector<DeviceId>&from = graph_.group(message->from).devices, &to = graph_.group(message->to).devices;
      partners.clear();
      for (const DeviceId device : to)
        partners.push_back(static_cast<std::int32_t>(std::ranges::find(from, device) - from.begin()));
      add(t, {.kind = EventKind::send});
    } else if (partners.empty()) {
      continue;
    } else if (what == "reply") {
      add(t, {.kind = EventKind::answer});
    } else if (what == "average at neighbour") {
      add(t, {.kind = EventKind::merge_sent, .at_end = true});
    } else if (what == "average") {
      add(t, {.kind = EventKind::merge, .at_end = true});
    } else {
      continue;
    }
    partners_[t] = partners;
  }
}

std::int32_t Rules::partner(std::uint32_t task, std::int32_t rank) const {
  const auto found = partners_.find(task);
  return found == partners_.end() ? ParameterEvent::kAll : found->second[static_cast<std::size_t>(rank)];
}

/// An event with what decides between events of one date.
struct Placed {
  ParameterEvent event;
  bool begins = false;
  std::uint32_t task = 0;
};

constexpr double kRounding = 1e-11;  // relative: dates that differ by less are one date

bool same_but_later(const ParameterEvent& a, const ParameterEvent& b, std::int64_t iterations) {
  return a.kind == b.kind && a.rank == b.rank && a.piece == b.piece && a.partner == b.partner &&
         a.iteration + iterations == b.iteration;
}

}  // namespace

const char* to_string(ParameterEvent::Kind kind) {
  constexpr const char* kNames[] = {"read",  "gradient", "step", "prepare", "commit", "accumulate", "close",
                                    "write", "reduce",   "mix",  "send",    "answer", "merge_sent", "merge"};
  return kNames[kind];
}

bool ParameterLog::has(ParameterEvent::Kind kind) const {
  return (later && later->has(kind)) ||
         std::ranges::any_of(events, [kind](const ParameterEvent& event) { return event.kind == kind; });
}

/// Holds events until none that is still to come can be before them.
class ParameterLogWriter::Writer {
 public:
  Writer(const CyclicTaskGraph& graph, std::int64_t steps, std::int64_t iterations, std::size_t in_memory)
      : rules_(graph, steps), in_memory_(in_memory) {
    log_.pieces = rules_.pieces();
    log_.workers = rules_.workers();
    log_.gradients_per_iteration = rules_.gradients();
    log_.iterations = iterations;
  }

  void begins(std::uint32_t task, double date) {
    if (!rules_.of(task).empty()) ++begun_[date];
  }

  void ends(const Interval& interval) {
    if (rules_.of(interval.task).empty()) return;
    const auto begun = begun_.find(interval.start);
    if (--begun->second == 0) begun_.erase(begun);
    if (interval.iteration < log_.iterations) hold(interval);
    if (held_.size() < enough_) return;
    release(std::min(interval.end, begun_.empty() ? interval.end : begun_.begin()->first));
    enough_ = std::max(kFewest, 2 * held_.size());
  }

  ParameterLog finish() {
    release(std::numeric_limits<double>::infinity());
    if (file_) file_->flush();
    log_.later = std::move(file_);
    return std::move(log_);
  }

 private:
  static constexpr std::size_t kFewest = 4096;  // events for which sorting is worth while

  void hold(const Interval& interval) {
    for (const Rule& rule : rules_.of(interval.task)) {
      const auto rank = rule.for_all ? ParameterEvent::kAll : static_cast<std::int32_t>(interval.rank) + rule.rank;
      // What takes no time begins when it ends: in the order of execution.
      const bool begins = !rule.at_end && interval.start < interval.end;
      ParameterEvent event{rule.at_end ? interval.end : interval.start, interval.iteration, rule.kind, rank, rule.piece,
                           rules_.partner(interval.task, rank)};
      for (int k = 0; k < rule.repeat; ++k) {
        held_.push_back({event, begins, interval.task});
        if (rule.kind != EventKind::gradient || !rule.at_end) continue;
        held_.push_back(held_.back());
        held_.back().event.kind = EventKind::step;
      }
    }
  }

  /// Takes out, by date, what nothing from `date` on can come before. At one date ends come first, then what begins;
  /// each by iteration, task and rank: a task's successors have later numbers or a later iteration.
  void release(double date) {
    std::ranges::stable_sort(held_, {}, [](const Placed& p) { return p.event.date; });
    const auto key = [](const Placed& p) { return std::tuple(p.begins, p.event.iteration, p.task, p.event.rank); };
    auto first = held_.begin();
    while (first != held_.end()) {
      const double latest = first->event.date * (1 + kRounding);
      if (!(latest < date)) break;
      const auto last = std::find_if(first, held_.end(), [&](const Placed& p) { return p.event.date > latest; });
      for (auto at = first; at != last; ++at) at->event.date = first->event.date;
      std::stable_sort(first, last, [&](const Placed& a, const Placed& b) { return key(a) < key(b); });
      for (; first != last; ++first) write(first->event);
    }
    held_.erase(held_.begin(), first);
  }

  void write(const ParameterEvent& event) {
    if (log_.events.size() < in_memory_) {
      log_.events.push_back(event);
      return;
    }
    if (!file_) file_ = std::make_shared<ParameterEventFile>();
    file_->add(event);
  }

  Rules rules_;
  std::size_t in_memory_;
  std::map<double, int> begun_;  ///< how many tasks began at a date and have not ended
  std::vector<Placed> held_;
  std::size_t enough_ = kFewest;
  ParameterLog log_;
  std::shared_ptr<ParameterEventFile> file_;
};

ParameterLogWriter::ParameterLogWriter(const CyclicTaskGraph& graph, std::int64_t steps, std::int64_t iterations,
                                       std::size_t in_memory)
    : writer_(std::make_unique<Writer>(graph, steps, iterations, in_memory)) {}
ParameterLogWriter::~ParameterLogWriter() = default;
void ParameterLogWriter::begins(std::uint32_t task, double date) { writer_->begins(task, date); }
void ParameterLogWriter::ends(const Interval& interval) { writer_->ends(interval); }
ParameterLog ParameterLogWriter::finish() { return writer_->finish(); }

bool continue_by_period(ParameterLog& log, std::int64_t length, std::int64_t iterations) {
  if (log.later) return false;
  std::int64_t last = 0;
  for (const ParameterEvent& event : log.events) last = std::max(last, event.iteration);
  // What happens before anybody begins the last iteration is not touched by there being no further one.
  std::size_t undisturbed = 0;
  while (undisturbed < log.events.size() && log.events[undisturbed].iteration < last) ++undisturbed;
  std::size_t in_first = 0;  // events of one iteration
  for (const ParameterEvent& event : log.events) in_first += event.iteration == last ? 1 : 0;
  const std::size_t block = in_first * static_cast<std::size_t>(length);
  if (block == 0 || undisturbed < 2 * block) return false;
  const std::size_t begin = undisturbed - block;
  for (std::size_t n = begin; n < undisturbed; ++n)
    if (!same_but_later(log.events[n - block], log.events[n], length)) return false;
  log.events.resize(undisturbed);
  log.repetition = {begin, length, log.events[begin].date - log.events[begin - block].date};
  log.iterations = iterations;
  return true;
}

/// The next one in memory or in the file.
std::optional<ParameterEvent> ParameterLogCursor::known() {
  if (at_ < log_->events.size()) return log_->events[at_++];
  if (!log_->later) return std::nullopt;
  const std::size_t n = at_ - log_->events.size();
  if (n == log_->later->size()) return std::nullopt;
  if (n == read_from_ + read_.size()) {
    read_from_ = n;
    read_.resize(std::min(ParameterEventFile::kTogether, log_->later->size() - n));
    log_->later->read(n, read_);
  }
  ++at_;
  return read_[n - read_from_];
}

std::optional<ParameterEvent> ParameterLogCursor::next() {
  while (true) {
    std::optional<ParameterEvent> found = known();
    if (!found) {
      if (!log_->repetition || left_out_ >= log_->events.size()) return std::nullopt;
      at_ = log_->repetition->begin;
      ++rounds_;
      found = known();
    }
    ParameterEvent event = *found;
    if (rounds_ > 0) {
      event.iteration += rounds_ * log_->repetition->length;
      event.date += static_cast<double>(rounds_) * log_->repetition->shift;
    }
    if (event.iteration < log_->iterations) {
      left_out_ = 0;
      return event;
    }
    ++left_out_;
  }
}

}  // namespace epocast
