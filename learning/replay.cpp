#include "learning/replay.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace epocast::learning {
namespace {

using Kind = ParameterEvent::Kind;

OptimizerSettings server_settings(const ReplaySettings& settings) {
  OptimizerSettings out = settings.optimizer;
  if (settings.scheme.adaptive_server) out.kind = OptimizerSettings::adam;
  if (settings.scheme.plain_server) out = {};
  return out;
}

/// A worker's own optimizer. Steps between commits of gradients are plain ones: what is committed is their sum.
OptimizerSettings worker_settings(const ReplaySettings& settings) {
  return settings.scheme.family == Scheme::server ? OptimizerSettings{} : settings.optimizer;
}

double distance(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

}  // namespace

Replay::Replay(Problem& problem, ReplaySettings settings)
    : problem_(problem),
      settings_(std::move(settings)),
      initial_(problem.initial()),
      centre_(initial_),
      server_(server_settings(settings_)) {}

bool Replay::shares_parameters() const {
  return settings_.scheme.family != Scheme::replicas && settings_.scheme.family != Scheme::neighbours;
}

Values Replay::parameters() const {
  if (shares_parameters() || workers_.empty()) return centre_;
  Values mean(centre_.size(), 0);
  for (const Worker& worker : workers_)
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += worker.own[i];
  for (double& value : mean) value /= static_cast<double>(workers_.size());
  return mean;
}

double Replay::epoch() const { return static_cast<double>(samples_) / static_cast<double>(problem_.samples()); }

double Replay::rate() const { return settings_.rate({epoch(), phase_.global_batch, centre_, saturations_}); }

std::pair<std::size_t, std::size_t> Replay::range(std::int32_t piece) const {
  if (piece == ParameterEvent::kAll) return {0, centre_.size()};
  double before = 0;
  for (std::int32_t p = 0; p < piece; ++p) before += phase_.log->pieces[static_cast<std::size_t>(p)].share;
  const auto place = [&](double share) {
    return std::min(centre_.size(),
                    static_cast<std::size_t>(std::llround(share * static_cast<double>(centre_.size()))));
  };
  const bool last = piece + 1 == static_cast<std::int32_t>(phase_.log->pieces.size());
  const double share = phase_.log->pieces[static_cast<std::size_t>(piece)].share;
  return {place(before), last ? centre_.size() : place(before + share)};
}

void Replay::start_phase(const ReplayPhase& phase) {
  centre_ = parameters();
  phase_ = phase;
  in_rounds_ = phase.log->has(Kind::accumulate);
  now_ += phase.delay;
  bytes_ += phase.delay_bytes;
  start_ = now_;
  start_bytes_ = bytes_;
  start_samples_ = samples_;
  // Who stays keeps its optimizer's memory, and what compression has kept back.
  const auto count = static_cast<std::size_t>(phase.log->workers);
  while (workers_.size() > count) workers_.pop_back();
  while (workers_.size() < count) workers_.emplace_back(ParameterOptimizer(worker_settings(settings_)));
  stages_.reset();
  if (settings_.scheme.family == Scheme::pipeline && phase.log->has(Kind::commit)) {  // else of a single stage
    std::vector<std::pair<std::size_t, std::size_t>> ranges;
    for (std::size_t p = 0; p < phase.log->pieces.size(); ++p) ranges.push_back(range(static_cast<std::int32_t>(p)));
    stages_.emplace(std::move(ranges), centre_, count);
    batches_.clear();
  }
  const bool own = !in_step() && !stages_;
  for (Worker& worker : workers_) {
    ParameterOptimizer optimizer = std::move(worker.optimizer);
    Values rest = std::move(worker.rest);
    worker = Worker(std::move(optimizer));
    worker.rest = std::move(rest);
    if (own) worker.own = centre_;
    if (settings_.scheme.family == Scheme::elastic) worker.centre = centre_;
  }
  rounds_.clear();
  stepped_ = -1;
  steppers_.clear();
  closed_.assign(phase.log->pieces.size(), -1);
  sum_.assign(centre_.size(), 0);
  summed_ = 0;
}

PhaseEnd Replay::run(const ReplayPhase& phase, const std::function<bool(const CurvePoint&)>& watch) {
  start_phase(phase);
  if (outcome_.curve.empty()) evaluate(now_, {});
  ParameterLogCursor cursor(*phase.log);
  const double per_gradient =
      phase.bytes_per_iteration / static_cast<double>(phase.log->workers * phase.log->gradients_per_iteration);
  PhaseEnd end = PhaseEnd::done;
  while (const std::optional<ParameterEvent> event = cursor.next()) {
    if (beyond_limits(*event)) {
      end = PhaseEnd::limit;
      break;
    }
    now_ = start_ + event->date;
    handle(*event);
    if (event->kind == Kind::gradient && !stages_) bytes_ += per_gradient;
    if (epoch() < next_evaluation_ * (1 - 1e-12) || !whole_) continue;
    end = evaluate(now_, watch);
    if (end != PhaseEnd::done) break;
  }
  if ((end == PhaseEnd::done || end == PhaseEnd::limit) && (evaluated_ < samples_ || changed_)) {
    // Where nothing has been drawn since the last point, that was on its way to this.
    if (evaluated_ == samples_ && outcome_.curve.size() > 1) outcome_.curve.pop_back();
    if (const PhaseEnd found = evaluate(now_, watch); found != PhaseEnd::done) end = found;
  }
  ++phases_;
  return end;
}

bool Replay::beyond_limits(const ParameterEvent& event) const {
  const StopRule& stop = settings_.stop;
  return (stop.time && start_ + event.date > *stop.time) ||
         (stop.samples && event.kind == Kind::gradient && samples_ >= *stop.samples);
}

/// Of several pieces the last counts: a curve has no use for a point between two of them.
void Replay::note_commit(Worker& worker, const ParameterEvent& event) {
  changed_ = true;
  whole_ = event.piece == ParameterEvent::kAll || ++worker.committed == phase_.log->pieces.size();
  if (whole_) worker.committed = 0;
}

void Replay::handle(const ParameterEvent& event) {
  whole_ = false;
  if (stages_) {
    const auto stage = static_cast<std::size_t>(event.piece), device = static_cast<std::size_t>(event.rank);
    if (event.kind == Kind::read) stages_->begin_forward(event.iteration, stage, device);
    if (event.kind == Kind::gradient && settings_.scheme.current_weights)
      stages_->begin_backward(event.iteration, stage, device);
    if (event.kind == Kind::commit && stages_->update(stage, device)) update_stage(event);
    return;
  }
  switch (event.kind) {
    case Kind::read: {
      Worker& worker = workers_[static_cast<std::size_t>(event.rank)];
      const auto [begin, end] = range(event.piece);
      Values& to = settings_.scheme.family == Scheme::elastic ? worker.centre : worker.own;
      if (to.empty()) break;
      std::copy(centre_.begin() + static_cast<std::ptrdiff_t>(begin),
                centre_.begin() + static_cast<std::ptrdiff_t>(end), to.begin() + static_cast<std::ptrdiff_t>(begin));
      break;
    }
    case Kind::gradient: compute_gradient(event); break;
    case Kind::step: local_step(event); break;
    case Kind::prepare: prepare(event); break;
    case Kind::commit: commit(event); break;
    case Kind::accumulate: accumulate(event); break;
    case Kind::close: closed_[static_cast<std::size_t>(std::max(event.piece, 0))] = event.iteration; break;
    case Kind::write: write(event); break;
    case Kind::reduce: break;  // what the mean is follows from what the workers had
    case Kind::mix: {
      Worker& worker = workers_[static_cast<std::size_t>(event.rank)];
      if (event.iteration > 0 && !worker.unmixed) worker.unmixed = event.iteration - 1;
      try_mix(static_cast<std::size_t>(event.rank));
      break;
    }
    case Kind::send:
    case Kind::answer:
    case Kind::merge_sent:
    case Kind::merge: talk_to_neighbour(event); break;
  }
}

void Replay::compute_gradient(const ParameterEvent& event) {
  const auto rank = static_cast<std::size_t>(event.rank);
  Worker& worker = workers_[rank];
  const auto n = static_cast<std::int64_t>(workers_.size());
  const std::vector<std::int64_t>& shares = phase_.shares;
  const std::int64_t batch = shares.empty() ? phase_.worker_batch : shares[rank];
  std::int64_t first = start_samples_ + (worker.drawn * n + event.rank) * batch;
  if (!shares.empty()) {
    first = start_samples_ + worker.drawn * phase_.global_batch + samples_before(rank) % phase_.global_batch;
  }
  ++worker.drawn;
  positions_.resize(static_cast<std::size_t>(batch));
  for (std::int64_t k = 0; k < batch; ++k) positions_[static_cast<std::size_t>(k)] = first + k;
  if (weight(rank) > 0) samples_ += batch;
  worker.gradient.resize(centre_.size());
  const bool shared = in_step();
  problem_.gradient(shared ? centre_ : worker.own, positions_, worker.gradient);
  if (settings_.compression.method != Compression::none) compress(worker);
  if (const double w = weight(rank); w != 1 && (shared || in_rounds_))  // else every worker steps by its own mean
    for (double& value : worker.gradient) value *= w;
  if (shared) {
    for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += worker.gradient[i];
    ++summed_;
  } else if (settings_.scheme.family == Scheme::server) {
    Contribution& sum = contribution(worker, event.iteration);
    for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += worker.gradient[i];
    ++sum.gradients;
  }
}

std::int64_t Replay::samples_before(std::size_t rank) const {
  return std::accumulate(phase_.shares.begin(), phase_.shares.begin() + static_cast<std::ptrdiff_t>(rank),
                         std::int64_t{0});
}

/// Of a worker's mean gradient in the mean of all: 1 where shares are equal.
double Replay::weight(std::size_t rank) const {
  if (phase_.shares.empty()) return 1;
  if (samples_before(rank) >= phase_.global_batch) return 0;  // a copy
  return static_cast<double>(phase_.shares[rank] * static_cast<std::int64_t>(workers_.size())) /
         static_cast<double>(phase_.global_batch);
}

void Replay::compress(Worker& worker) {
  worker.rest.resize(worker.gradient.size(), 0);
  for (std::int32_t piece = 0; piece < static_cast<std::int32_t>(phase_.log->pieces.size()); ++piece) {
    const auto [begin, end] = range(piece);
    settings_.compression.apply(std::span(worker.gradient).subspan(begin, end - begin),
                                std::span(worker.rest).subspan(begin, end - begin));
  }
}

void Replay::local_step(const ParameterEvent& event) {
  if (in_step()) {
    // The first worker to get here has done it for all; a fast one may have begun the next iteration by now.
    if (summed_ == 0 || event.iteration <= stepped_) return;
    stepped_ = event.iteration;
    for (double& value : sum_) value /= summed_;
    server_.step(centre_, 0, sum_, rate());
    std::ranges::fill(sum_, 0);
    summed_ = 0;
    changed_ = whole_ = true;
    return;
  }
  Worker& worker = workers_[static_cast<std::size_t>(event.rank)];
  if (worker.gradient.empty()) return;
  worker.optimizer.step(worker.own, 0, worker.gradient, rate());
  if (++worker.steps < phase_.log->gradients_per_iteration) return;
  worker.steps = 0;
  if (!shares_parameters()) {  // their mean is evaluated when all have ended the iteration
    changed_ = true;
    whole_ = ++steppers_[event.iteration] == workers_.size();
    if (whole_) steppers_.erase(event.iteration);
  }
  if (settings_.scheme.family == Scheme::replicas) {
    if (worker.unmixed) mix(worker, *worker.unmixed);
    contribution(worker, event.iteration).values = worker.own;
    drop_old(worker, event.iteration - 2);
  } else if (settings_.scheme.family == Scheme::elastic && in_rounds_) {
    contribution(worker, event.iteration).values = worker.own;
  }
}

/// Worker and centre, as it was pulled, attract each other (Zhang et al. 2015, eq. 3). Dividing by the number of
/// gradients is done where they are applied.
void Replay::prepare(const ParameterEvent& event) {
  if (settings_.scheme.family != Scheme::elastic) return;
  Worker& worker = workers_[static_cast<std::size_t>(event.rank)];
  const double pull = settings_.elasticity / static_cast<double>(workers_.size());
  const bool asynchronous = !in_rounds_;
  Values* committed = asynchronous ? &contribution(worker, event.iteration).values : nullptr;
  for (std::size_t i = 0; i < worker.own.size(); ++i) {
    const double difference = pull * (worker.own[i] - worker.centre[i]);
    worker.own[i] -= difference;
    if (committed != nullptr) (*committed)[i] = difference;
  }
}

Replay::Contribution& Replay::contribution(Worker& worker, std::int64_t iteration) {
  for (Contribution& known : worker.contributions)
    if (known.iteration == iteration) return known;
  // Nothing can come any more for what is older than the rounds that servers still wait for.
  if (!closed_.empty()) drop_old(worker, *std::ranges::min_element(closed_));
  worker.contributions.push_back({iteration, Values(centre_.size(), 0), 0});
  return worker.contributions.back();
}

void Replay::drop_old(Worker& worker, std::int64_t iteration) {
  while (!worker.contributions.empty() && worker.contributions.front().iteration <= iteration)
    worker.contributions.pop_front();
}

void Replay::commit(const ParameterEvent& event) {
  Worker& worker = workers_[static_cast<std::size_t>(event.rank)];
  note_commit(worker, event);
  const auto [begin, end] = range(event.piece);
  if (settings_.scheme.family == Scheme::averaging) {
    for (std::size_t i = begin; i < end; ++i) centre_[i] += settings_.mixing * (worker.own[i] - centre_[i]);
    return;
  }
  drop_old(worker, event.iteration - 1);  // a worker's commits come in order
  Contribution& what = contribution(worker, event.iteration);
  if (settings_.scheme.family == Scheme::elastic) {
    for (std::size_t i = begin; i < end; ++i) centre_[i] += what.values[i];
    return;
  }
  if (what.gradients == 0) return;
  const double scale = settings_.scheme.normalised ? 1.0 / what.gradients : 1;
  if (scale != 1) {
    scratch_.assign(what.values.begin() + static_cast<std::ptrdiff_t>(begin),
                    what.values.begin() + static_cast<std::ptrdiff_t>(end));
    for (double& value : scratch_) value *= scale;
    server_.step(centre_, begin, scratch_, rate());
  } else {
    server_.step(centre_, begin, std::span(what.values).subspan(begin, end - begin), rate());
  }
}

void Replay::accumulate(const ParameterEvent& event) {
  const auto piece = static_cast<std::size_t>(std::max(event.piece, 0));
  if (event.iteration <= closed_[piece]) return;  // too late: dropped
  Round& round = rounds_[event.iteration];
  if (round.sum.empty()) {
    round.sum.assign(centre_.size(), 0);
    round.counts.assign(phase_.log->pieces.size(), 0);
  }
  Worker& worker = workers_[static_cast<std::size_t>(event.rank)];
  const Values& what =
      settings_.scheme.family == Scheme::averaging ? worker.own : contribution(worker, event.iteration).values;
  const auto [begin, end] = range(event.piece);
  for (std::size_t i = begin; i < end; ++i) round.sum[i] += what[i];
  ++round.counts[piece];
}

void Replay::write(const ParameterEvent& event) {
  const auto found = rounds_.find(event.iteration);
  if (found == rounds_.end()) return;
  Round& round = found->second;
  const auto [begin, end] = range(event.piece);
  const int count = round.counts[static_cast<std::size_t>(std::max(event.piece, 0))];
  changed_ = true;
  if (count > 0) {
    const std::span<double> sum = std::span(round.sum).subspan(begin, end - begin);
    if (settings_.scheme.family == Scheme::elastic) {
      const double pull = settings_.elasticity / static_cast<double>(workers_.size());
      for (std::size_t i = begin; i < end; ++i) centre_[i] += pull * (round.sum[i] - count * centre_[i]);
    } else {
      for (double& value : sum) value /= count;
      if (settings_.scheme.family == Scheme::averaging)
        std::ranges::copy(sum, centre_.begin() + static_cast<std::ptrdiff_t>(begin));
      else
        server_.step(centre_, begin, sum, rate());
    }
  }
  whole_ = ++round.written == phase_.log->pieces.size() || event.piece == ParameterEvent::kAll;
  if (whole_) rounds_.erase(found);
}

bool Replay::try_mix(std::size_t rank) {
  Worker& worker = workers_[rank];
  if (!worker.unmixed) return false;
  const auto has = [&](const Worker& one) {
    return std::ranges::any_of(one.contributions,
                               [&](const Contribution& c) { return c.iteration == *worker.unmixed; });
  };
  if (!std::ranges::all_of(workers_, has)) return false;
  mix(worker, *worker.unmixed);
  return true;
}

/// Takes the mean of all workers' parameters at the end of an iteration, and keeps what it has done since.
void Replay::mix(Worker& worker, std::int64_t iteration) {
  worker.unmixed.reset();
  scratch_.assign(centre_.size(), 0);
  for (Worker& one : workers_) {
    const Values& had = contribution(one, iteration).values;
    for (std::size_t i = 0; i < scratch_.size(); ++i) scratch_[i] += had[i];
  }
  const Values& had = contribution(worker, iteration).values;
  for (std::size_t i = 0; i < scratch_.size(); ++i)
    worker.own[i] = scratch_[i] / static_cast<double>(workers_.size()) + (worker.own[i] - had[i]);
}

void Replay::talk_to_neighbour(const ParameterEvent& event) {
  Worker& worker = workers_[static_cast<std::size_t>(event.rank)];
  Worker& partner = workers_[static_cast<std::size_t>(event.partner)];
  const auto average = [](Values& own, const Values& other) {
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = (own[i] + other[i]) / 2;
  };
  if (event.kind == Kind::send) {
    worker.sent.push_back(worker.own);
  } else if (event.kind == Kind::answer) {
    worker.answer = partner.own;
  } else if (event.kind == Kind::merge && !worker.answer.empty()) {
    average(worker.own, worker.answer);
    changed_ = true;
  } else if (event.kind == Kind::merge_sent && !worker.sent.empty()) {
    average(partner.own, worker.sent.front());
    changed_ = true;
    worker.sent.pop_front();
  }
}

PhaseEnd Replay::evaluate(double date, const std::function<bool(const CurvePoint&)>& watch) {
  next_evaluation_ = std::isinf(settings_.evaluations)
                         ? 0
                         : (std::floor(epoch() * settings_.evaluations * (1 + 1e-12)) + 1) / settings_.evaluations;
  evaluated_ = samples_;
  changed_ = false;
  const Values at = parameters();
  const Evaluation value = problem_.evaluate(at);
  CurvePoint point{.time = date,
                   .epoch = epoch(),
                   .bytes = bytes_,
                   .loss = value.loss,
                   .accuracy = value.accuracy,
                   .rate = rate(),
                   .phase = phases_};
  const double first = outcome_.curve.empty() ? value.loss : outcome_.curve.front().loss;
  const double moved = distance(at, initial_);
  point.theta = moved > 0 ? (first - value.loss) / moved : 0;
  outcome_.curve.push_back(point);
  if (!std::isfinite(value.loss) || value.loss > settings_.divergence * std::max(std::abs(first), 1e-300)) {
    outcome_.diverged = point;
    return PhaseEnd::diverged;
  }
  const bool better =
      value.accuracy ? outcome_.best.accuracy.value_or(-1e300) < *value.accuracy : value.loss < outcome_.best.loss;
  if (outcome_.curve.size() == 1 || better) outcome_.best = point;
  const StopRule& stop = settings_.stop;
  const bool reached =
      (stop.loss && value.loss <= *stop.loss) || (stop.accuracy && value.accuracy && *value.accuracy >= *stop.accuracy);
  if (reached && !outcome_.reached) outcome_.reached = point;
  if (reached && stop.at_target) return PhaseEnd::target;
  if (stop.patience > 0 && value.accuracy) {
    if (!best_accuracy_ || *value.accuracy > *best_accuracy_ + stop.gain) {
      best_accuracy_ = value.accuracy;
      best_epoch_ = point.epoch;
    } else if (point.epoch - best_epoch_ >= stop.patience && saturations_ < stop.saturations) {
      ++saturations_;
      best_epoch_ = point.epoch;
    } else if (point.epoch - best_epoch_ >= stop.patience) {
      outcome_.no_gain = point;
      return PhaseEnd::no_gain;
    }
  }
  if (watch && !watch(point)) return PhaseEnd::target;
  return PhaseEnd::done;
}

}  // namespace epocast::learning
