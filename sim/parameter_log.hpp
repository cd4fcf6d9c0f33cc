#pragma once
// Who reads, computes a gradient from, writes, averages or commits which piece of the parameters, and when.
//
// Scope: derived from a graph and what its execution tells, so that nothing of it can change a simulated time.
// What a task does to parameters follows from its label, its queue and its version effect; the words are those of
// docs/learning.md. A log of a periodic run continues by its period.
// Of a pipeline, pieces are stages and ranks a stage's devices: each reads a stage's weights when its first forward
// pass of a batch begins, or where the schedule takes them (2bw), and `gradient` is its first backward pass.
// Validation: tests/learning/parameter_log_test.cpp.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/parameter_event.hpp"
#include "sim/parameter_event_file.hpp"
#include "sim/task_graph.hpp"
#include "sim/timeline.hpp"

namespace epocast {

/// Parameters that travel together.
struct LoggedPiece {
  std::string name;
  double share = 1;  ///< of all parameters, 0..1
};

/// Events in the order of their dates; at one date, what ends before what begins, each by iteration, task and worker.
struct ParameterLog {
  std::vector<LoggedPiece> pieces;
  std::int32_t workers = 0;
  std::int32_t gradients_per_iteration = 1;  ///< of each worker
  std::int64_t iterations = 0;               ///< up to here events are known, or follow by the period
  std::vector<ParameterEvent> events;
  std::shared_ptr<const ParameterEventFile> later;  ///< of a long log: events behind these

  /// From `begin` on, the last events repeat for ever.
  struct Repetition {
    std::size_t begin = 0;
    std::int64_t length = 1;  ///< iterations
    double shift = 0;         ///< s
  };
  std::optional<Repetition> repetition;

  bool has(ParameterEvent::Kind kind) const;
};

/// Visits the events of a log, those that follow by its period included, in order.
class ParameterLogCursor {
 public:
  explicit ParameterLogCursor(const ParameterLog& log) : log_(&log) {}
  /// Absent at the end, which a log with a repetition has where `log.iterations` does. Events of later iterations are
  /// left out.
  std::optional<ParameterEvent> next();

 private:
  std::optional<ParameterEvent> known();

  const ParameterLog* log_;
  std::size_t at_ = 0;
  std::vector<ParameterEvent> read_;  ///< from the file, and how many before these
  std::size_t read_from_ = 0;
  std::int64_t rounds_ = 0;
  std::size_t left_out_ = 0;  ///< in a row
};

/// Makes a log of a graph's execution while it goes on, in memory that does not grow with it: events behind the first
/// `in_memory` are kept in a file. `steps`: of every worker in one iteration, TrainingStep::steps. Only the events of
/// the first `iterations` iterations are there. Of an execution whose ranks are folded nothing follows.
class ParameterLogWriter final : public IntervalSink {
 public:
  /// Throws GraphError if no task computes gradients.
  ParameterLogWriter(const CyclicTaskGraph& graph, std::int64_t steps, std::int64_t iterations,
                     std::size_t in_memory = 250'000);
  ~ParameterLogWriter() override;

  void begins(std::uint32_t task, double date) override;
  void ends(const Interval& interval) override;  ///< throws SimulationError if the file cannot be written
  /// When the execution has ended; once.
  ParameterLog finish();

 private:
  class Writer;
  std::unique_ptr<Writer> writer_;
};

/// Finds where the events begin to repeat with a period of `length` iterations, in what happened before any worker
/// began its last iteration, and lets the log go on until `iterations`. Returns false, and changes nothing, if they do
/// not repeat at least twice, or are too many for memory.
bool continue_by_period(ParameterLog& log, std::int64_t length, std::int64_t iterations);

}  // namespace epocast
