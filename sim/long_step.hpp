#pragma once
// Steps of many micro-batches, told by steps of fewer.
//
// A pipeline does the same with each micro-batch once it is full, until it runs empty. Then a step of M micro-batches
// is longer than one of M - q by what q micro-batches add in the middle, as is one of M + q than one of M, and so on,
// where q is after how many the schedule repeats. Whether it is so is seen in what two steps did: up to some date, the
// same at the same time, and from then on, in the longer one, the same by one shift later. If up to that date the
// longer one had repeated itself, three shifts in a row, the next longer one has the same state there, and goes on with
// a copy of the last. So times, bytes and work grow by equal amounts. How many q are is seen in the longer one.
//
// Of a folded step one is enough. Until the first of its tasks has been done for the last micro-batch, a longer one
// does the same, since schedules begin alike; what is added is what lies between two dates one shift apart, after which
// all devices had computed and communicated as long, and all links carried as much, as between the two dates before
// (sim/step_clock.hpp). What happens once in an iteration must not reach into these shifts.
//
// Where no step does the same again, the whole one is estimated if the busiest device works for all the time by which
// two steps differ: on its computations, and on collectives that these wait for. It has as much to do for each further
// micro-batch, so that longer steps cannot grow by less. (That steps are on a straight line with a third says nothing:
// a pipeline that waits for messages may grow so until, many micro-batches later, something else is slowest.)

#include <functional>
#include <optional>

#include "sim/cluster.hpp"
#include "sim/execution.hpp"
#include "sim/simgrid/engine.hpp"
#include "sim/step_ends.hpp"
#include "sim/strategy.hpp"
#include "sim/task_graph.hpp"

namespace epocast {

/// The result of a step that is longer than `longer` by `times` as much as `longer` is longer than `shorter`. Tasks
/// with the same operation and layer are those of the micro-batches, in order. Nothing where the two do not tell: they
/// have to start over with each iteration, do the same at first and, from a common date on, the same by one shift
/// later. `bound` and what is by task are of `longer`; there is no timeline.
std::optional<ExecutionResult> long_step(const SimulatedStep& shorter, const SimulatedStep& longer, double times,
                                         const SimEngine& engine);

/// How much longer an iteration of the longer step is than one of the shorter, but for what the device to which that
/// adds the most works longer by itself [s]; of runs with ExecutionOptions::record_own_work. Negative if that is more:
/// a pipeline that some device does not hold up yet.
double unexplained_growth(const ExecutionResult& shorter, const ExecutionResult& longer);

/// Tasks of the whole step, about.
double tasks_of(const TrainingStep& step);

/// Tells of the whole step of a phase by shortened ones.
class ShorterSteps {
 public:
  /// Starts work in another process. What it returns waits for the result; nothing if there is none. Dropping that
  /// ends the work.
  using Elsewhere = std::function<std::function<std::optional<ExecutionResult>()>(std::function<ExecutionResult()>)>;

  /// `of_size` makes a step of so many micro-batches, `how` is how the whole one is to be executed. `cluster` and
  /// `engine` outlive this. `elsewhere`: for what will probably be asked for while another step is executed here.
  ShorterSteps(std::function<TrainingStep(int micro_batches)> of_size, const Cluster& cluster, SimEngine& engine,
               ExecutionOptions how, Elsewhere elsewhere = {});

  /// Whether a step may tell of the whole one: one that repeats exactly, another if the whole one takes long.
  static bool may_tell(const TrainingStep& step);

  /// What a step tells of the whole one; `bound` is one, if not the largest. If it repeats itself, the exact result.
  /// Of a whole step that takes long, otherwise, an estimate by this step and a shorter one, with a remark. Nothing if
  /// they do not tell, or the step cannot be simulated, of which simulating the whole one will say why. What the result
  /// says of tasks is of `step`, which may then be another of those that `of_size` makes. REQUIRES: step.shortened.
  std::optional<ExecutionResult> tell(TrainingStep& step) const;

 private:
  std::optional<ExecutionResult> tell(TrainingStep& step, const ExecutionResult& seen,
                                      const ExecutionOptions& how) const;
  ExecutionResult simulate(const TrainingStep& step, ExecutionOptions how) const;
  static ExecutionResult completed(ExecutionResult told, const TrainingStep& longer);
  ExecutionResult one_window_less(const ShortenedStep& step, ExecutionOptions how) const;
  std::optional<ExecutionResult> estimate(const TrainingStep& step, const ExecutionResult& longer,
                                          const ExecutionResult& shorter) const;
  static void complete(ExecutionResult& told, const TrainingStep& longer);

  static constexpr double kManyTasks = 400'000;     ///< of all iterations that are simulated: more than a second
  static constexpr double kMostToRepeat = 400'000;  ///< tasks of a step for which an estimate is put off
  static constexpr double kMostDoubt = 3e-2;        ///< of an iteration

  std::function<TrainingStep(int)> of_size_;
  const Cluster& cluster_;
  SimEngine& engine_;
  ExecutionOptions how_;
  Elsewhere elsewhere_;
};

}  // namespace epocast
