#pragma once
// Who reads, computes a gradient from, writes, averages or commits which piece of the parameters, and when.
//
// Scope: derived from a graph and the timeline of its execution, so that nothing of it can change a simulated time.
// What a task does to parameters follows from its label, its queue and its version effect; the words are those of
// docs/learning.md. A log of a periodic run continues by its period.
// Of a pipeline, pieces are stages and ranks a stage's devices: each reads a stage's weights when its first forward
// pass of a batch begins, or where the schedule takes them (2bw), and `gradient` is its first backward pass.
// Validation: tests/unit/parameter_log_test.cpp.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/task_graph.hpp"
#include "sim/timeline.hpp"

namespace epocast {

struct ParameterEvent {
  enum Kind : std::uint8_t {
    read,        ///< a worker begins to get the piece as the server, or the shared memory, has it
    gradient,    ///< a worker computes a gradient from what it has read: its first backward pass begins, or a stage's
    step,        ///< a worker has updated its own parameters, or all have the same new ones
    prepare,     ///< a worker has made what it commits out of its parameters or gradients
    commit,      ///< a server has applied a worker's contribution
    accumulate,  ///< a server has added a worker's contribution to those of its round
    close,       ///< a server begins to end the round: nothing more is added to it
    write,       ///< a server has ended the round
    reduce,      ///< all workers have the mean of what they had
    mix,         ///< a worker takes the mean for its own
    send,        ///< a worker begins to send its parameters to a neighbour
    answer,      ///< the neighbour begins to send its own back
    merge_sent,  ///< the neighbour has averaged its own with what came
    merge,       ///< the worker has averaged its own with the answer
  };
  static constexpr std::int32_t kAll = -1;

  double date = 0;             ///< s from the start of the phase
  std::int64_t iteration = 0;  ///< of the graph
  Kind kind = read;
  std::int32_t rank = kAll;     ///< worker
  std::int32_t piece = kAll;    ///< index into ParameterLog::pieces
  std::int32_t partner = kAll;  ///< worker at the other end of send, answer, merge_sent and merge
};

const char* to_string(ParameterEvent::Kind kind);

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
  const ParameterLog* log_;
  std::size_t at_ = 0;
  std::int64_t rounds_ = 0;
  std::size_t left_out_ = 0;  ///< in a row
};

/// What the events of a graph's execution are. `steps`: of every worker in one iteration, TrainingStep::steps. Only the
/// events of the first `iterations` iterations are there. Of a timeline whose ranks are folded nothing follows.
/// Throws GraphError if no task computes gradients.
ParameterLog make_parameter_log(const CyclicTaskGraph& graph, std::int64_t steps, const Timeline& timeline,
                                std::int64_t iterations);

/// Finds where the events begin to repeat with a period of `length` iterations, in what happened before any worker
/// began its last iteration, and lets the log go on until `iterations`. Returns false, and changes nothing, if they do
/// not repeat at least twice.
bool continue_by_period(ParameterLog& log, std::int64_t length, std::int64_t iterations);

}  // namespace epocast
