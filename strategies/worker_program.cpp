#include "strategies/worker_program.hpp"

#include <algorithm>
#include <utility>

#include "sim/error.hpp"

namespace epocast {

WorkerProgram::WorkerProgram(CyclicTaskGraph& graph, const StrategyContext& context, bool blocking)
    : graph_(graph), context_(context), blocking_(blocking) {
  workers_ = graph.add_group("workers", context.workers);
  main_ = graph.add_queue("compute", workers_, QueueRole::compute, Discipline::program_order);
  communication_ = graph.add_queue("communication", workers_, QueueRole::communication, Discipline::fifo);
}

std::optional<TaskId> WorkerProgram::compute(const DeviceTime& duration, Label label) {
  if (!duration.any()) return std::nullopt;
  const TaskId task = graph_.compute(main_, duration, std::move(label));
  for (const TaskId communication : waiting_for_) graph_.after(communication, task);
  waiting_for_.clear();
  computed_.push_back(task);
  return task;
}

std::optional<TaskId> WorkerProgram::post(CollectiveOp op, CollectiveAlgorithm algorithm, Bytes bytes, Label label) {
  if (context_.workers.size() == 1 || !(bytes.value > 0)) return std::nullopt;
  const TaskId task = graph_.collective(communication_,
                                        {.op = op,
                                         .algorithm = algorithm,
                                         .level = context_.collective.level,
                                         .group = workers_,
                                         .bytes = bytes,
                                         .gamma = context_.collective.gamma},
                                        std::move(label));
  if (computed_.empty())
    posted_first_.push_back(task);
  else
    graph_.after(computed_.back(), task);
  for (const TaskId communication : waiting_for_) graph_.after(communication, task);
  if (blocking_) waiting_for_.push_back(task);
  return task;
}

std::optional<TaskId> WorkerProgram::post_all_reduce(Bytes bytes, Label label) {
  return post(CollectiveOp::all_reduce, context_.collective.algorithm, bytes, std::move(label));
}

void WorkerProgram::wait(std::optional<TaskId> communication) {
  if (communication && std::ranges::find(waiting_for_, *communication) == waiting_for_.end())
    waiting_for_.push_back(*communication);
}

void WorkerProgram::wait_for_previous(std::size_t point, std::optional<TaskId> communication) {
  if (communication) from_previous_.emplace_back(point, *communication);
}

void WorkerProgram::close() {
  if (computed_.empty()) throw SimulationError("no layer of the network takes time");
  for (const auto& [point, communication] : from_previous_)
    if (point < computed_.size())
      graph_.after(communication, computed_[point], 1);
    else  // nothing more is computed in this iteration
      graph_.after(communication, computed_.front(), 2);
  for (const TaskId communication : waiting_for_) {
    graph_.after(communication, computed_.front(), 1);
    for (const TaskId first : posted_first_) graph_.after(communication, first, 1);
  }
  for (const TaskId first : posted_first_) graph_.after(computed_.back(), first, 1);
}

}  // namespace epocast
