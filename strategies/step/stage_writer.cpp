#include "strategies/step/stage_writer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/error.hpp"

namespace epocast {

namespace {

/// Ranks of an axis have a communicator, and with it a stream, of their own (PyTorch, ProcessGroupNCCL): what they
/// exchange waits for nothing that goes along another.
const char* exchanges_along(Axis StageRanks::*axis) {
  return axis == &StageRanks::context  ? "context exchanges"
         : axis == &StageRanks::expert ? "expert exchanges"
                                       : "exchanges";
}

}  // namespace

StageWriter::StageWriter(CyclicTaskGraph& graph, std::string name, StageRanks ranks, bool lanes, Discipline discipline,
                         const CollectiveSettings& collective)
    : graph_(graph),
      name_(std::move(name)),
      ranks_(std::move(ranks)),
      collective_(collective),
      ordered_(discipline == Discipline::program_order) {
  group_ = graph.add_group(name_, ranks_.devices);
  for (std::size_t r = 0; r < (lanes ? ranks_.devices.size() : 1); ++r) {
    Lane& lane = lanes_.emplace_back();
    if (lanes && ranks_.devices.size() > 1) lane.suffix = fmt::format(" replica {}", r);
    const std::string own = name_ + lane.suffix;
    lane.devices = lane.suffix.empty() ? group_ : graph.add_group(own, {ranks_.devices[r]});
    lane.compute = graph.add_queue(own, lane.devices, QueueRole::compute, discipline);
  }
}

QueueId StageWriter::communication(const std::string& name, Discipline discipline) {
  const auto [known, is_new] = communication_.try_emplace(name);
  if (is_new) known->second = graph_.add_queue(name_ + " " + name, group_, QueueRole::communication, discipline);
  return known->second;
}

void StageWriter::begin(PassName pass) {
  pass_ = std::move(pass);
  first_ = last_ = {};
  cut_ = false;
  if (!ordered_) awaited_.clear();  // passes wait for each other by edges only
}

void StageWriter::compute(const DeviceTime& time, const std::string& layer, const char* operation) {
  if (!pass_.chunk.empty()) {
    pending_ += time;
    is_pending_ = true;
  } else if (time.any()) {
    last_ = write(time, {operation != nullptr ? Name(operation) : pass_.operation, layer, pass_.micro_batch}, "",
                  pass_.priority);
    if (first_.empty()) first_ = last_;
  }
}

/// On every lane, after all that is awaited.
Lanes StageWriter::write(const DeviceTime& time, const Label& label, const std::string& behind_suffix,
                         std::optional<int> priority) {
  Lanes tasks;
  for (const Lane& lane : lanes_) {
    const std::string suffix = lane.suffix + behind_suffix;
    tasks.push_back(graph_.compute(
        lane.compute, time,
        {label.operation, suffix.empty() ? label.layer : Name(label.layer + suffix), label.micro_batch}));
    if (priority) graph_.set_priority(tasks.back(), *priority);
    for (const auto& [before, lag] : awaited_) graph_.after(before, tasks.back(), lag);
  }
  awaited_.clear();
  comes(tasks);
  return tasks;
}

/// What the program goes on with.
void StageWriter::comes(const Lanes& tasks) {
  if (oldest_.empty()) oldest_ = tasks;
  newest_ = tasks;
  for (; unmet_ < marks_.size(); ++unmet_) marks_[unmet_] = {tasks, 0};
}

/// Writes what is pending, under the chunk's name and, of a pass in several pieces, its own.
void StageWriter::flush(const std::string& name) {
  if (!is_pending_) return;
  const Lanes before = std::exchange(last_, {});
  const bool follows = !before.empty() && awaited_.empty();
  last_ = write(pending_, {pass_.operation, pass_.chunk, pass_.micro_batch}, name.empty() ? "" : " " + name,
                pass_.priority);
  for (std::size_t lane = 0; follows && lane < last_.size(); ++lane) graph_.after(before[lane], last_[lane]);
  if (first_.empty()) first_ = last_;
  pending_ = DeviceTime();
  is_pending_ = false;
}

TaskId StageWriter::collective(CollectiveOp op, Axis axis, QueueId queue, Bytes bytes, const Label& label,
                               std::optional<CollectiveAlgorithm> algorithm) {
  const CollectiveAlgorithm studys =
      supports(collective_.algorithm, op) ? collective_.algorithm : default_algorithm(op);
  const bool reduces = op == CollectiveOp::all_reduce || op == CollectiveOp::reduce_scatter;
  return graph_.collective_along(axis, queue,
                                 {.op = op,
                                  .algorithm = algorithm.value_or(studys),
                                  .level = collective_.level,
                                  .group = group_,
                                  .bytes = bytes,
                                  .gamma = reduces ? collective_.gamma : 0},
                                 label);
}

TaskId StageWriter::post(CollectiveOp op, std::optional<CollectiveAlgorithm> algorithm, Axis axis, QueueId queue,
                         Bytes bytes, const Label& label, bool blocking) {
  cut_ |= is_pending_;
  flush("");
  const Lanes before = before_next();
  const TaskId task = collective(op, axis, queue, bytes, label, algorithm);
  for (const TaskId one : before) graph_.after(one, task);
  if (before.empty()) posted_first_.push_back(task);
  for (const auto& [one, lag] : awaited_) graph_.after(one, task, lag);
  if (blocking) awaited_.emplace_back(task, 0);
  return task;
}

/// What has been done when the next in the program begins: in the program's order, if there is one; else the pass's.
Lanes StageWriter::before_next() const { return ordered_ ? newest_ : last_; }

/// After these and all that is awaited. None if nothing is sent.
std::optional<TaskId> StageWriter::send(const Exchange& exchange, const std::string& layer, const Lanes& before) {
  const Axis axis = ranks_.*exchange.axis;
  if (axis.extent < 2 || !(exchange.bytes.value > 0)) return std::nullopt;
  const Name name = pass_.chunk.empty() ? layer : pass_.chunk + " " + layer;
  const TaskId task = collective(exchange.op, axis, communication(exchanges_along(exchange.axis)), exchange.bytes,
                                 {exchange.name, name, pass_.micro_batch});
  if (pass_.priority) graph_.set_priority(task, *pass_.priority);
  for (const TaskId one : before) graph_.after(one, task);
  for (const auto& [one, lag] : awaited_) graph_.after(one, task, lag);
  return task;
}

void StageWriter::exchange(const Exchange& exchange, const std::string& layer) {
  if ((ranks_.*exchange.axis).extent < 2 || !(exchange.bytes.value > 0)) return;
  flush(layer);
  cut_ = true;
  const TaskId task = *send(exchange, layer, before_next());
  awaited_ = {{task, 0}};
  last_ = {task};
  if (first_.empty()) first_ = last_;
  comes(last_);
}

std::vector<TaskId> StageWriter::start(const std::vector<Exchange>& exchanges, const std::string& layer) {
  if (exchanges.empty()) return {};
  flush(layer);
  cut_ = true;
  // What begins a pass waits for what the pass waits for, though the program goes on.
  if (first_.empty()) first_ = last_ = write({}, {pass_.operation, layer, pass_.micro_batch}, " input", pass_.priority);
  const Lanes before = before_next();
  std::vector<TaskId> sent;
  for (const Exchange& exchange : exchanges)
    if (const std::optional<TaskId> task = send(exchange, layer, before)) sent.push_back(*task);
  return sent;
}

void StageWriter::await(const std::vector<TaskId>& tasks, const std::string& layer) {
  if (tasks.empty()) return;
  flush(layer);
  if (!ordered_)
    for (const TaskId task : last_) awaited_.emplace_back(task, 0);
  for (const TaskId task : tasks) awaited_.emplace_back(task, 0);
}

void StageWriter::compute_during(const std::vector<Exchange>& exchanges, const DeviceTime& time,
                                 const std::string& layer, const char* operation) {
  if (exchanges.empty()) return compute(time, layer, operation);
  const std::vector<TaskId> sent = start(exchanges, layer);
  const double last_block = 1.0 / (ranks_.*exchanges.front().axis).extent;
  compute(time * (1 - last_block), layer, operation);
  await(sent, layer);
  compute(time * last_block, layer, operation);
}

Lanes StageWriter::cut(const std::string& name) {
  cut_ |= is_pending_;
  flush(name);
  return last_.empty() ? newest_ : last_;
}

std::size_t StageWriter::mark(const std::string& name) {
  cut_ |= is_pending_;
  flush(name);
  marks_.emplace_back();
  return marks_.size() - 1;
}

std::pair<Lanes, Lanes> StageWriter::end(const std::string& rest) {
  if (!pass_.chunk.empty() && first_.empty()) is_pending_ = true;  // takes no time, but its place in the order
  flush(cut_ ? rest : "");
  if (first_.empty() && pass_.operation == "forward")
    throw SimulationError("no layer of the network takes time in the forward pass");
  if (first_.empty()) first_ = last_ = write({}, {pass_.operation, rest, pass_.micro_batch}, "", pass_.priority);
  return {first_, last_};
}

Lanes StageWriter::task(const DeviceTime& time, const Label& label, std::optional<int> priority) {
  return write(time, label, "", priority);
}

Lanes StageWriter::task_behind(const std::string& name, const DeviceTime& time, const Label& label) {
  const Lanes before = cut(name), written = task(time, label);
  for (std::size_t lane = 0; !ordered_ && lane < before.size(); ++lane) graph_.after(before[lane], written[lane]);
  return written;
}

void StageWriter::wait(TaskId before, int lag) {
  if (const std::pair awaited(before, lag); std::ranges::find(awaited_, awaited) == awaited_.end())
    awaited_.push_back(awaited);
}

void StageWriter::close() {
  for (; unmet_ < marks_.size(); ++unmet_) marks_[unmet_] = {oldest_, 1};
  for (const auto& [before, lag] : awaited_)
    for (const Lanes* firsts : {&oldest_, &posted_first_})
      for (const TaskId first : *firsts) graph_.after(before, first, lag + 1);
  awaited_.clear();
  for (const TaskId first : posted_first_)
    for (const TaskId last : newest_) graph_.after(last, first, 1);
  // A program that begins with an exchange has no queue to keep the iterations apart.
  if (ordered_ && oldest_.size() == 1 && std::holds_alternative<Collective>(graph_.task(oldest_.front()).work))
    for (const TaskId last : newest_) graph_.after(last, oldest_.front(), 1);
}

}  // namespace epocast
