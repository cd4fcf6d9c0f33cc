#pragma once
// A training process of two threads: the main thread computes in program order, posts communications and waits for
// them; the communication thread carries them out one at a time, first posted first served (Lee 2020, 3.3.4; Das et al.
// 2016). All workers run the same program.

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "sim/strategy.hpp"

namespace epocast {

/// Writes one iteration of the program into a graph, statement by statement. The last statement is followed by the
/// first one of the next iteration.
class WorkerProgram {
 public:
  /// `blocking`: every communication is waited for where it is posted, so that nothing overlaps.
  WorkerProgram(CyclicTaskGraph& graph, const StrategyContext& context, bool blocking);

  /// The main thread computes. No task is made for a duration of 0.
  std::optional<TaskId> compute(const DeviceTime& duration, Label label);

  /// The main thread posts a communication that starts no earlier than this point of the program. No task is made for
  /// no bytes, or if a single worker has nobody to communicate with.
  std::optional<TaskId> post(CollectiveOp op, CollectiveAlgorithm algorithm, Bytes bytes, Label label);
  /// The same for an all-reduce by the study's algorithm.
  std::optional<TaskId> post_all_reduce(Bytes bytes, Label label);

  /// The main thread's next computation waits for this one.
  void wait(std::optional<TaskId> communication);

  /// This point of the program: before the next computation.
  std::size_t here() const { return computed_.size(); }
  /// At an earlier point, the main thread waits for this communication of the previous iteration.
  void wait_for_previous(std::size_t point, std::optional<TaskId> communication);

  /// Closes the loop. Call it once, last. Throws SimulationError if nothing was computed.
  void close();

 private:
  CyclicTaskGraph& graph_;
  const StrategyContext& context_;
  bool blocking_;
  GroupId workers_{};
  QueueId main_{}, communication_{};
  std::vector<TaskId> computed_;
  std::vector<std::pair<std::size_t, TaskId>> from_previous_;  ///< awaited at these points
  std::vector<TaskId> waiting_for_;                            ///< before the next computation
  std::vector<TaskId> posted_first_;                           ///< before the first computation
};

}  // namespace epocast
