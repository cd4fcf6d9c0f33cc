#include "strategies/pipeline/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "strategies/message.hpp"

namespace epocast {
namespace {

constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// One pass on all devices of a stage, lane by lane. Where stages have equally many replicas, these do the same as
/// their counterparts, and one task stands for all of them: a single lane. Otherwise each replica has tasks of its own,
/// as the next stage's replicas wait for different ones of them.
using Lanes = std::vector<TaskId>;

class Builder {
 public:
  explicit Builder(const PipelinePlan& plan) : plan_(plan), programs_(programs_of(plan)) {
    for (auto* passes : {&forward_, &entry_, &backward_, &gradient_})
      passes->assign(plan.chunks.size(), std::vector<Lanes>(at(plan.micro_batches)));
    update_.resize(plan.chunks.size());
    reduced_.resize(plan.chunks.size());
    last_.resize(plan.chunks.size());
  }

  CyclicTaskGraph build() {
    add_queues();
    add_computations();
    add_activations();
    add_updates();
    if (!flushes(plan_.schedule)) limit_in_flight();
    count_versions();
    return std::move(graph_);
  }

 private:
  struct Lane {
    GroupId devices;
    QueueId compute, activations, gradients;
    std::string suffix;  ///< of names
  };
  struct Stage {
    GroupId devices;
    QueueId reductions;
    std::vector<Lane> lanes;
  };

  Stage& stage(int s) { return stages_[at(s)]; }
  int chunks() const { return static_cast<int>(plan_.chunks.size()); }
  const Chunk& chunk(int c) const { return plan_.chunks[at(c)]; }
  int forward_stage(int c) const { return chunk(c).stage; }
  int backward_stage(int c) const {
    return plan_.gradients == GradientPlace::one_processor ? plan_.stages() - 1 : chunk(c).stage;
  }

  void add_queues() {
    Discipline discipline = Discipline::priority;
    if (flushes(plan_.schedule)) discipline = Discipline::program_order;
    for (int s = 0; s < plan_.stages(); ++s) {
      const std::string name = fmt::format("stage {}", s);
      const std::vector<DeviceId>& devices = plan_.devices[at(s)];
      Stage& made = stages_.emplace_back();
      made.devices = graph_.add_group(name, devices);
      for (std::size_t r = 0; r < (plan_.replicas_are_equal() ? 1 : devices.size()); ++r) {
        Lane& lane = made.lanes.emplace_back();
        if (!plan_.replicas_are_equal() && devices.size() > 1) lane.suffix = fmt::format(" replica {}", r);
        const std::string own = name + lane.suffix;
        lane.devices = lane.suffix.empty() ? made.devices : graph_.add_group(own, {devices[r]});
        lane.compute = graph_.add_queue(own, lane.devices, QueueRole::compute, discipline);
        lane.activations = communication(own + " activations", lane.devices);
        lane.gradients = communication(own + " gradients", lane.devices);
      }
      made.reductions = communication(name + " reductions", made.devices);
    }
  }

  QueueId communication(const std::string& name, GroupId devices) {
    return graph_.add_queue(name, devices, QueueRole::communication, Discipline::fifo);
  }

  void add_computations() {
    for (int s = 0; s < plan_.stages(); ++s)
      for (const PipelineWork& work : programs_[at(s)])
        if (work.pass == PipelinePass::forward || work.pass == PipelinePass::backward_data)
          continue;
        else
          last_[at(work.chunk)] = work;
    for (int s = 0; s < plan_.stages(); ++s)
      for (const PipelineWork& work : programs_[at(s)]) add_computation(s, work);
  }

  void add_computation(int s, const PipelineWork& work) {
    const auto c = at(work.chunk), k = at(work.micro_batch);
    const Chunk& own = plan_.chunks[c];
    switch (work.pass) {
      case PipelinePass::forward:
        forward_[c][k] = compute(s, own.forward, "forward", own.name, "", work, kForward);
        return;
      case PipelinePass::backward_data:
        entry_[c][k] = backward_[c][k] =
            compute(s, own.recompute + own.backward_data, "backward data", own.name, "", work, kBackward);
        return;
      case PipelinePass::backward:
        if (!starts_reductions(work)) {
          const DeviceTime time = own.recompute + own.backward_data + own.backward_weights;
          entry_[c][k] = backward_[c][k] = gradient_[c][k] =
              compute(s, time, "backward", own.name, "", work, kBackward);
        } else {
          entry_[c][k] = add_stretches(s, work);
          backward_[c][k] = gradient_[c][k];
        }
        return;
      case PipelinePass::backward_weights:
        if (!starts_reductions(work))
          gradient_[c][k] = compute(s, own.backward_weights, "backward weights", own.name, "", work, kBackward);
        else
          add_stretches(s, work);
        return;
    }
  }

  bool starts_reductions(const PipelineWork& work) const {
    return !plan_.reductions.empty() && !plan_.reductions[at(work.chunk)].empty() &&
           last_[at(work.chunk)].micro_batch == work.micro_batch;
  }

  /// Of a chunk's layer in a pass that makes gradients of weights. A segment that forgot its activations is computed
  /// again where backward reaches its last layer.
  DeviceTime pass_time(int s, const Chunk& own, std::size_t l, PipelinePass pass) const {
    const std::vector<LayerTrace>& layers = plan_.traces[at(s)]->layers;
    if (pass == PipelinePass::backward_weights) return layers[l].times.backward_weights;
    DeviceTime time = layers[l].times.backward_weights + layers[l].times.backward_data;
    if (l + 1 < own.last && layers[l + 1].segment == layers[l].segment) return time;
    for (std::size_t k = l + 1; k-- > own.first && layers[k].segment == layers[l].segment;)
      time += layers[k].times.recompute;
    return time;
  }

  /// The pass that makes a chunk's last gradients, cut where an all-reduce has all of its own. Returns the first task.
  Lanes add_stretches(int s, const PipelineWork& work) {
    const auto c = at(work.chunk), k = at(work.micro_batch);
    const char* name = work.pass == PipelinePass::backward_weights ? "backward weights" : "backward";
    std::size_t end = plan_.chunks[c].last;
    Lanes first;
    const auto stretch = [&](std::size_t begin, const std::string& layers) {
      DeviceTime time;
      for (std::size_t l = begin; l < end; ++l) time += pass_time(s, plan_.chunks[c], l, work.pass);
      end = begin;
      const Lanes tasks = compute(s, time, name, plan_.chunks[c].name, " " + layers, work, kBackward);
      if (!first.empty()) after(gradient_[c][k], tasks);
      if (first.empty()) first = tasks;
      gradient_[c][k] = tasks;
    };
    for (const Bucket& bucket : plan_.reductions[c]) {
      if (bucket.ready_after < end) stretch(bucket.ready_after, bucket.name);
      reduced_[c].push_back(reduce(work.chunk, bucket.bytes, plan_.chunks[c].name + " " + bucket.name));
      for (const TaskId gradient : gradient_[c][k]) graph_.after(gradient, reduced_[c].back());
    }
    const std::size_t begin = plan_.chunks[c].first;
    if (end > begin) stretch(begin, plan_.traces[at(s)]->layers[begin].name);
    return first;
  }

  TaskId reduce(int c, Bytes bytes, const std::string& name) {
    return graph_.collective(stage(chunk(c).stage).reductions,
                             {.op = CollectiveOp::all_reduce,
                              .algorithm = plan_.collective.algorithm,
                              .level = plan_.collective.level,
                              .group = stage(chunk(c).stage).devices,
                              .bytes = bytes,
                              .gamma = plan_.collective.gamma},
                             {"all-reduce", name});
  }

  /// Where there is no program, forward passes go first: as many as may be in flight are under way when a stage starts,
  /// and from then on each backward pass lets in one forward pass. So it alternates like PipeDream's 1F1B.
  enum Priority { kUpdate, kForward, kBackward };

  /// The threaded schedule does whatever it has of the oldest batch: ties go to the earlier iteration.
  void prefer(TaskId task, Priority priority) {
    if (plan_.schedule != PipelineSchedule::threaded) graph_.set_priority(task, priority);
  }

  Lanes compute(int s, const DeviceTime& time, const char* operation, const std::string& chunk,
                const std::string& layers, const PipelineWork& work, Priority priority) {
    const int shown = plan_.micro_batches > 1 ? work.micro_batch : -1;
    Lanes tasks;
    for (const Lane& lane : stage(s).lanes) {
      tasks.push_back(graph_.compute(lane.compute, time, {operation, chunk + lane.suffix + layers, shown}));
      prefer(tasks.back(), priority);
    }
    return tasks;
  }

  /// On one stage, or on two with one lane each.
  void after(const Lanes& before, const Lanes& after, int lag = 0) {
    for (std::size_t lane = 0; lane < before.size(); ++lane) graph_.after(before[lane], after[lane], lag);
  }

  /// Every lane after every lane.
  void after_all(const Lanes& before, const Lanes& after, int lag) {
    for (const TaskId one : before)
      for (const TaskId other : after) graph_.after(one, other, lag);
  }

  /// Messages from one stage to another, or only the order if they are one. Each replica has a share of the samples, in
  /// rank order: of m replicas, r has those from r/m to (r+1)/m. Where n others divide them anew, each gets what it
  /// lacks from whoever has it. `bytes` is what one of the senders has; `label`, up to the lane.
  void send(const Lanes& before, const Lanes& after, int from, int to, Bytes bytes, QueueId Lane::*queue,
            const Label& label) {
    if (from == to) {
      this->after(before, after);
      return;
    }
    const int senders = static_cast<int>(before.size()), receivers = static_cast<int>(after.size());
    for (int i = 0; i < senders; ++i)
      for (int j = 0; j < receivers; ++j) {
        // Both shares in units of 1 / (senders x receivers) of the samples.
        const int common = std::min((i + 1) * receivers, (j + 1) * senders) - std::max(i * receivers, j * senders);
        if (common <= 0) continue;
        const Lane &sender = stage(from).lanes[at(i)], &receiver = stage(to).lanes[at(j)];
        std::string name = label.layer + sender.suffix;
        if (common < receivers) name += " to" + receiver.suffix;
        const MessageTasks message =
            add_message(graph_, sender.*queue, sender.devices, receiver.devices, bytes * common / receivers, plan_.copy,
                        {label.operation, name, label.micro_batch});
        graph_.after(before[at(i)], message.first);
        graph_.after(message.last, after[at(j)]);
      }
  }

  void add_activations() {
    for (int c = 0; c < chunks(); ++c)
      for (int k = 0; k < plan_.micro_batches; ++k) {
        const int shown = plan_.micro_batches > 1 ? k : -1;
        const int here = forward_stage(c), there = backward_stage(c);
        if (c + 1 < chunks()) {
          send(forward_[at(c)][at(k)], forward_[at(c + 1)][at(k)], here, forward_stage(c + 1), chunk(c).sent,
               &Lane::activations, {"send activations", chunk(c).name, shown});
          const int from = backward_stage(c + 1);
          send(backward_[at(c + 1)][at(k)], entry_[at(c)][at(k)], from, there, chunk(c + 1).received, &Lane::gradients,
               {"send gradients", chunk(c + 1).name, shown});
        }
        // Computing it again needs what the chunk received.
        const Bytes kept = chunk(c).activations - (chunk(c).recompute.any() ? Bytes(0) : chunk(c).received);
        send(forward_[at(c)][at(k)], entry_[at(c)][at(k)], here, there, kept + chunk(c).parameters, &Lane::activations,
             {"send activations and weights", chunk(c).name, shown});
        if (splits_backward(plan_.schedule)) after(backward_[at(c)][at(k)], gradient_[at(c)][at(k)]);
      }
  }

  void add_updates() {
    // In the order in which the gradients are complete: from the network's end.
    for (int c = chunks(); c-- > 0;) {
      const Chunk& own = chunk(c);
      Lanes& update = update_[at(c)];
      for (const Lane& lane : stage(own.stage).lanes) {
        update.push_back(graph_.compute(lane.compute, own.update, {"update", own.name + lane.suffix}));
        prefer(update.back(), kUpdate);
        for (const TaskId reduced : reduced_[at(c)]) graph_.after(reduced, update.back());
      }
      // Replicas' gradients of earlier micro-batches are summed with the last one's.
      for (const Lanes& gradient : gradient_[at(c)])
        send(gradient, update, backward_stage(c), own.stage, own.parameters, &Lane::gradients,
             {"send weights' gradients", own.name});
    }
  }

  /// What a stage may not begin before something of an earlier micro-batch or batch has ended.
  void limit_in_flight() {
    for (int c = 0; c < chunks(); ++c) {
      if (plan_.schedule == PipelineSchedule::threaded) {
        // A thread goes through the whole network and back, updates included, before it takes its next batch.
        after_all(update_[at(c)], forward_[0][0], plan_.in_flight);
        continue;
      }
      const int window = in_flight_without_flush(plan_.stages(), chunk(c).stage);
      for (int k = 0; k < plan_.micro_batches; ++k) {
        const int later = k + window;
        after(backward_[at(c)][at(k)], forward_[at(c)][at(later % plan_.micro_batches)], later / plan_.micro_batches);
      }
      // Updates of replicas wait for their all-reduce; backward passes may get ahead of them by one batch only.
      if (plan_.schedule == PipelineSchedule::pipedream) after(update_[at(c)], forward_[at(c)][0], window + 1);
    }
  }

  void count_versions() {
    for (int c = 0; c < chunks(); ++c) {
      Lanes read = forward_[at(c)][0];
      const std::vector<Lane>& lanes = stage(chunk(c).stage).lanes;
      if (plan_.schedule == PipelineSchedule::two_bw) {
        // All of a batch is computed with the weights that two batches before it left, though newer ones may be there.
        read.clear();
        for (const Lane& lane : lanes)
          read.push_back(graph_.compute_for(lane.devices, QueueId::none, Seconds(0), {"weights", chunk(c).name}));
        after(update_[at(c)], read, 2);
        for (const Lanes& forward : forward_[at(c)]) after(read, forward);
      }
      for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
        const StoreId store = graph_.add_store(chunk(c).name + lanes[lane].suffix, true);
        graph_.set_version_effect(read[lane], {store, VersionEffect::read_at_start});
        graph_.set_version_effect(update_[at(c)][lane], {store, VersionEffect::write_at_end});
      }
    }
  }

  const PipelinePlan& plan_;
  std::vector<StageProgram> programs_;
  CyclicTaskGraph graph_;
  std::vector<Stage> stages_;
  /// By chunk and micro-batch; entry: where backward begins.
  std::vector<std::vector<Lanes>> forward_, entry_, backward_, gradient_;
  std::vector<std::vector<TaskId>> reduced_;  ///< by chunk
  std::vector<PipelineWork> last_;            ///< by chunk: work that makes its last gradient
  std::vector<Lanes> update_;                 ///< by chunk
};

}  // namespace

std::vector<StageProgram> programs_of(const PipelinePlan& plan) {
  const int stages = plan.stages();
  if (flushes(plan.schedule) && plan.gradients == GradientPlace::collocated)
    return stage_programs(plan.schedule, stages, static_cast<int>(plan.chunks.size()) / stages, plan.micro_batches);
  std::vector<StageProgram> programs(at(stages));
  for (int s = 0; s < stages; ++s) {
    for (int k = 0; k < plan.micro_batches; ++k) programs[at(s)].push_back({PipelinePass::forward, s, k});
    if (plan.gradients == GradientPlace::collocated)
      for (int k = 0; k < plan.micro_batches; ++k) programs[at(s)].push_back({PipelinePass::backward, s, k});
  }
  if (plan.gradients == GradientPlace::one_processor)
    for (int c = stages; c-- > 0;) programs.back().push_back({PipelinePass::backward, c, 0});
  return programs;
}

CyclicTaskGraph pipeline_graph(const PipelinePlan& plan) { return Builder(plan).build(); }

}  // namespace epocast
