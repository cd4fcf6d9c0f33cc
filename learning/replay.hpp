#pragma once
// Training with real arithmetic, in the order that a simulated run dictates.
//
// Scope: the log of each phase says which worker reads, computes, commits and averages when; the scheme says what that
// does to parameters; the problem gives gradients. One log serves many seeds and rates, and nothing here can change a
// simulated time.
// Limits: pieces of the simulated model stand for equal shares of the problem's parameters, in their order. Workers
// draw from one common shuffled data set: the k-th gradient of worker r takes the samples that it would in the k-th
// global batch, whoever computes first. Validation: tests/learning/replay_test.cpp,
// tests/learning/theory_test.cpp.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "learning/compression.hpp"
#include "learning/optimizer.hpp"
#include "learning/problem.hpp"
#include "learning/scheme.hpp"
#include "learning/stage_versions.hpp"
#include "sim/parameter_log.hpp"

namespace epocast::learning {

struct CurvePoint {
  double time = 0;   ///< s
  double epoch = 0;  ///< samples that gradients were computed from, over those of an epoch
  double bytes = 0;  ///< sent so far
  double loss = 0;
  std::optional<double> accuracy = {};
  double theta = 0;  ///< loss reduction over the distance from the beginning (Lee 2020, eq. 5.4)
  double rate = 0;   ///< learning rate
  int phase = 0;
};

/// When training has had enough.
struct StopRule {
  std::optional<double> loss, accuracy;  ///< targets
  bool at_target = false;                ///< end there; otherwise they are only noted
  double gain = 0;                       ///< of accuracy that counts as one, for `patience`
  double patience = 0;                   ///< epochs without such a gain after which training ends; 0: never
  int saturations = 0;                   ///< so often it does not end then, but goes on, which RateFunction is told
  std::optional<double> time;            ///< s after which nothing is done any more
  std::optional<std::int64_t> samples;   ///< after so many no gradient is begun any more
};

/// Where training is when it needs a rate.
struct TrainingState {
  double epoch = 0;
  std::int64_t batch = 0;  ///< global
  std::span<const double> parameters = {};
  int saturations = 0;  ///< how often accuracy had stopped to gain, and training went on
};

using RateFunction = std::function<double(const TrainingState&)>;

struct ReplaySettings {
  Scheme scheme = {};
  OptimizerSettings optimizer = {};
  Compression compression = {};  ///< of each worker's gradients, piece by piece
  RateFunction rate = {};
  double elasticity = 0.9;  ///< beta of elastic averaging: each worker is moved by beta / workers (Zhang et al. 2015)
  double mixing = 0.5;      ///< weight of a worker's parameters where a server mixes them into its own
  double evaluations = 1;   ///< in an epoch
  StopRule stop = {};
  double divergence = 1e6;  ///< times the first loss: training has diverged
};

/// One phase of training.
struct ReplayPhase {
  const ParameterLog* log = nullptr;
  std::int64_t worker_batch = 1;  ///< samples of one gradient
  std::int64_t global_batch = 1;  ///< samples of a step of all workers, for the rate
  double bytes_per_iteration = 0;
  /// Samples of each worker's gradient, if they differ. They add up to the global batch; who comes later has copies of
  /// the samples of those before, which are left out of sums.
  std::vector<std::int64_t> shares = {};
  double delay = 0, delay_bytes = 0;  ///< s and bytes before it begins: workers that join are sent parameters
};

enum class PhaseEnd { done, target, no_gain, diverged, limit };

struct LearningOutcome {
  std::vector<CurvePoint> curve;
  std::optional<CurvePoint> reached;   ///< the first point at the target
  std::optional<CurvePoint> diverged;  ///< where the loss was no number or had exploded
  std::optional<CurvePoint> no_gain;   ///< where patience ended
  CurvePoint best;                     ///< of accuracy if there is one, else of loss
};

/// Trains phase after phase. REQUIRES: the problem outlives it.
class Replay {
 public:
  Replay(Problem& problem, ReplaySettings settings);

  /// Trains through the log. A worker that joins begins with the parameters that the others have. Calls `watch`, if
  /// given, at each evaluation; false ends the phase.
  PhaseEnd run(const ReplayPhase& phase, const std::function<bool(const CurvePoint&)>& watch = {});

  const LearningOutcome& outcome() const { return outcome_; }
  /// The parameters that are evaluated: the common ones, or the mean of the workers'.
  Values parameters() const;
  /// A worker's own. REQUIRES: a scheme in which it has its own.
  const Values& worker(std::size_t rank) const { return workers_[rank].own; }
  double epoch() const;

 private:
  struct Contribution {
    std::int64_t iteration = 0;
    Values values;
    int gradients = 0;  ///< in it
  };
  struct Worker {
    explicit Worker(ParameterOptimizer memory) : optimizer(std::move(memory)) {}
    Values own;                              ///< parameters that it computes with
    Values gradient;                         ///< its last one
    Values rest;                             ///< of gradients, that compression has kept back
    Values centre;                           ///< as it has pulled it, for elastic averaging
    std::deque<Contribution> contributions;  ///< not applied yet, or not everywhere
    std::deque<Values> sent;                 ///< to neighbours, who have not averaged them yet
    Values answer;                           ///< of its neighbour
    ParameterOptimizer optimizer;
    std::int64_t drawn = 0;                    ///< gradients of the phase
    int steps = 0;                             ///< of its own, in this iteration
    std::size_t committed = 0;                 ///< pieces, of a commit that goes on
    std::optional<std::int64_t> unmixed = {};  ///< the iteration whose mean it has still to take
  };
  struct Round {
    Values sum;
    std::vector<int> counts;  ///< by piece
    std::size_t written = 0;  ///< pieces
  };

  void start_phase(const ReplayPhase& phase);
  void handle(const ParameterEvent& event);
  void compute_gradient(const ParameterEvent& event);
  void compress(Worker& worker);
  void local_step(const ParameterEvent& event);
  void prepare(const ParameterEvent& event);
  void commit(const ParameterEvent& event);
  void accumulate(const ParameterEvent& event);
  void write(const ParameterEvent& event);
  void mix(Worker& worker, std::int64_t iteration);
  bool try_mix(std::size_t rank);
  void talk_to_neighbour(const ParameterEvent& event);
  void update_stage(const ParameterEvent& event);
  void compute_batch(std::int64_t iteration);
  double weight(std::size_t rank) const;
  std::int64_t samples_before(std::size_t rank) const;  ///< of one batch, where shares differ
  Contribution& contribution(Worker& worker, std::int64_t iteration);
  void drop_old(Worker& worker, std::int64_t iteration);
  bool beyond_limits(const ParameterEvent& event) const;
  void note_commit(Worker& worker, const ParameterEvent& event);
  PhaseEnd evaluate(double date, const std::function<bool(const CurvePoint&)>& watch);
  double rate() const;
  bool shares_parameters() const;
  /// One set of parameters, which all workers step together.
  bool in_step() const {
    return settings_.scheme.family == Scheme::synchronous || (settings_.scheme.family == Scheme::pipeline && !stages_);
  }
  std::pair<std::size_t, std::size_t> range(std::int32_t piece) const;

  Problem& problem_;
  ReplaySettings settings_;
  Values initial_, centre_;
  ParameterOptimizer server_;
  std::vector<Worker> workers_;
  std::map<std::int64_t, Round> rounds_;
  std::vector<std::int64_t> closed_;  ///< by piece: the last round that takes no more
  Values sum_, scratch_;              ///< synchronous gradients; a mean
  int summed_ = 0;
  std::vector<std::int64_t> positions_;
  std::optional<StageVersions> stages_;                             ///< of a pipeline
  std::map<std::int64_t, std::pair<Values, std::size_t>> batches_;  ///< of it: gradient, and stages updated by it
  bool whole_ = false;                            ///< the last event ended a change of all common parameters
  bool changed_ = false;                          ///< parameters, since the last evaluation
  std::int64_t stepped_ = -1;                     ///< the last iteration whose common step has been taken
  std::map<std::int64_t, std::size_t> steppers_;  ///< workers that have ended an iteration with parameters of their own
  LearningOutcome outcome_;
  ReplayPhase phase_;
  bool in_rounds_ = false;  ///< servers wait for all workers
  int phases_ = 0;
  double start_ = 0, start_bytes_ = 0;  ///< of the phase
  double now_ = 0, bytes_ = 0;
  std::int64_t start_samples_ = 0, samples_ = 0;
  double next_evaluation_ = 0;  ///< epoch
  std::int64_t evaluated_ = 0;  ///< samples until then
  double best_epoch_ = 0;       ///< of the last gain
  int saturations_ = 0;
  std::optional<double> best_accuracy_;
};

}  // namespace epocast::learning
