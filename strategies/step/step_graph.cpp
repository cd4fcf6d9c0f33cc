#include "strategies/step/step_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "strategies/step/message.hpp"
#include "strategies/step/message_stops.hpp"
#include "strategies/step/parameter_part.hpp"
#include "strategies/step/stage_memory.hpp"
#include "strategies/step/stage_writer.hpp"
#include "strategies/step/table_sum.hpp"

namespace epocast {
namespace {

constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }

class StepBuilder {
 public:
  StepBuilder(const StepPlan& plan, const StrategyContext& context, const Synchronisation& synchronisation)
      : plan_(plan),
        context_(context),
        round_(synchronisation.round(static_cast<int>(plan.ranks.front().replicas.extent))),
        written_as_one_(plan.by_layer && plan.exchanges.empty() && round_.quiet ? round_.steps - 1 : 0),
        programs_(programs_of(plan)) {
    for (auto* passes : {&forward_, &backward_})
      passes->assign(plan.chunks.size(), std::vector<PassTasks>(at(plan.micro_batches)));
    gradient_.assign(plan.chunks.size(), std::vector<Lanes>(at(plan.micro_batches)));
    update_.resize(plan.chunks.size());
    last_.resize(plan.chunks.size());
  }

  CyclicTaskGraph build(const Synchronisation& synchronisation, std::vector<DeviceMemory>& memory) {
    add_stages();
    for (const Chunk& chunk : plan_.chunks) add_places(chunk, synchronisation, memory[at(chunk.stage)].use);
    for (int s = 0; s < plan_.stages(); ++s) note_layers(s, memory[at(s)]);
    if (written_as_one_ > 0) add_local_steps();
    for (step_ = written_as_one_; step_ < round_.steps; ++step_) {
      graph_.begin_step(step_);
      add_computations();
      add_activations();
      add_updates();
      tables_.note(gradient_, update_);
    }
    for (StageWriter& stage : stages_) stage.close();
    for (Places& places : places_)
      for (const auto& place : places) place->tie();
    tables_.write(stages_, places_);
    if (!flushes(plan_.schedule)) limit_in_flight();
    for (const Places& places : places_)
      for (const auto& place : places)
        for (const DeviceMemory& more : place->elsewhere()) add_memory(memory, more);
    const bool counted = round_.one_version || (round_.own_versions && flushes(plan_.schedule));
    if (!plan_.by_layer && !counted) count_versions();
    return std::move(graph_);
  }

 private:
  /// Of a chunk: its parameters in parts that have replicas along different axes.
  using Places = std::vector<std::unique_ptr<PlaceSynchronisation>>;
  using Lane = StageWriter::Lane;

  StageWriter& stage(int s) { return stages_[at(s)]; }
  int chunks() const { return static_cast<int>(plan_.chunks.size()); }
  const Chunk& chunk(int c) const { return plan_.chunk(c); }
  int forward_stage(int c) const { return chunk(c).stage; }
  int backward_stage(int c) const {
    return plan_.gradients == GradientPlace::one_processor ? plan_.stages() - 1 : chunk(c).stage;
  }

  void add_stages() {
    const Discipline discipline = flushes(plan_.schedule) ? Discipline::program_order : Discipline::priority;
    for (int s = 0; s < plan_.stages(); ++s) {
      const StageRanks& ranks = plan_.ranks[at(s)];
      stages_.emplace_back(graph_, plan_.by_layer ? "workers" : fmt::format("stage {}", s), ranks,
                           !plan_.replicas_are_equal(), discipline, context_.collective);
      for (const Lane& lane : stages_.back().lanes()) {
        if (plan_.stages() == 1) break;  // nobody to send to
        const std::string own = fmt::format("stage {}{}", s, lane.suffix);
        activations_[lane.devices] = communication(own + " activations", lane.devices);
        gradients_[lane.devices] = communication(own + " gradients", lane.devices);
      }
    }
  }

  void add_places(const Chunk& chunk, const Synchronisation& synchronisation, MemoryUse& use) {
    const WorkloadTrace& trace = *plan_.traces[at(chunk.stage)];
    Places& places = places_.emplace_back();
    const int versions = weight_versions(plan_.schedule, plan_.stages(), chunk.stage);
    const int behind = plan_.schedule == PipelineSchedule::threaded ? plan_.in_flight : versions;
    const auto add = [&](const Chunk& own, const WorkloadTrace& own_trace, Axis along) {
      places.push_back(synchronisation.at({stage(chunk.stage), along, own, own_trace, context_, plan_.by_layer,
                                           plan_.micro_batches, versions, behind}));
      places.back()->change(use);
    };
    const StageRanks& ranks = plan_.ranks[at(chunk.stage)];
    const bool all_alike = std::none_of(plan_.experts.begin(), plan_.experts.end(), [](bool is) { return is; });
    if (all_alike || !(chunk.parameters.value > 0)) return add(chunk, trace, ranks.replicas);
    for (const bool experts : {false, true}) {
      const ParameterPart& part = parts_.emplace_back(part_of(chunk, trace, plan_.experts, experts));
      if (part.chunk.parameters.value > 0)
        add(part.chunk, part.trace, experts ? ranks.expert_replicas : ranks.replicas);
    }
  }

  /// Of a stage's parameters and optimizer state, what its layers have: each as large a share of what there is.
  void note_layers(int s, DeviceMemory& memory) const {
    Bytes trained, all;
    for (const Chunk& chunk : plan_.chunks)
      if (chunk.stage == s) trained += chunk.parameters, all += chunk.parameters + chunk.frozen;
    if (!(all.value > 0)) return;
    const Bytes lasting = memory.use.lasting(), parameters = std::min(lasting, all);
    const double kept = parameters / all, state = trained.value > 0 ? (lasting - parameters) / trained : 0;
    for (int c = 0; c < chunks(); ++c) {
      if (chunk(c).stage != s) continue;
      const bool read = std::ranges::all_of(places_[at(c)], [](const auto& place) { return place->reads_first(); });
      for (std::size_t l = chunk(c).first; l < chunk(c).last; ++l) {
        const Bytes own = layers(s)[l].parameters * (kept + state), frozen = layers(s)[l].frozen * kept;
        if (own.value > 0 || frozen.value > 0) memory.layers[l] = {own + frozen, read ? own : Bytes(0)};
      }
    }
  }

  /// Tells all places of a chunk.
  template <class Member, class... Arguments>
  void tell(int c, Member member, const Arguments&... arguments) {
    for (const auto& place : places_[at(c)]) (*place.*member)(arguments...);
  }

  QueueId communication(const std::string& name, GroupId devices) {
    return graph_.add_queue(name, devices, QueueRole::communication, Discipline::fifo);
  }

  /// Steps during which nobody talks, as one computation, which varies as those of all their layers would. Of n alike
  /// the mean varies as 1/n of their variance; of others, as n = (sum of times)^2 / (sum of squares) that are alike.
  void add_local_steps() {
    DeviceTime step;
    double squares = 0;
    const auto add = [&](const DeviceTime& time, int times) {
      step += time * times;
      squares += times * time.longest().value * time.longest().value;
    };
    for (const LayerTrace& layer : layers(0)) {
      add(layer.times.forward, plan_.micro_batches);
      if (computes_again(0, chunk(0), layer.segment)) add(layer.times.recompute, plan_.micro_batches);
      add(layer.times.backward_data + layer.times.backward_weights, plan_.micro_batches);
      add(layer.times.update, 1);
    }
    const double alike = squares > 0 ? step.longest().value * step.longest().value / squares : 1;
    for (const TaskId task : stage(0).task(step * written_as_one_, {"local steps", ""}))
      graph_.set_parts(task, std::max(1.0, alike * written_as_one_), written_as_one_);
  }

  void add_computations() {
    for (const StageProgram& program : programs_)
      for (const PipelineWork& work : program)
        if (work.pass == PipelinePass::backward || work.pass == PipelinePass::backward_weights)
          last_[at(work.chunk)] = work.micro_batch;
    for (int s = 0; s < plan_.stages(); ++s) {
      for (const PipelineWork& work : programs_[at(s)])
        if (work.pass == PipelinePass::forward)
          add_forward(s, work);
        else
          add_backward(s, work);
      if (s == 0) expect_as_much_of_all();
    }
  }

  /// After the first stage: the others have about as many tasks, and messages. A graph of millions is not moved, then.
  void expect_as_much_of_all() {
    const auto messages = static_cast<std::size_t>(4 * plan_.micro_batches);
    graph_.reserve((graph_.tasks().size() + messages) * static_cast<std::size_t>(plan_.stages()),
                   (graph_.edges().size() + messages) * static_cast<std::size_t>(plan_.stages()));
  }

  /// Where there is no program, forward passes go first: as many as may be in flight are under way when a stage starts,
  /// and from then on each backward pass lets in one forward pass. So it alternates like PipeDream's 1F1B. The threaded
  /// schedule does whatever it has of the oldest batch: ties go to the earlier iteration.
  enum Priority { kUpdate, kForward, kBackward };
  std::optional<int> priority(Priority of) const {
    return plan_.schedule == PipelineSchedule::threaded ? std::nullopt : std::optional<int>(of);
  }

  PassName name_of(const char* operation, const PipelineWork& work, Priority served) const {
    return {operation, plan_.by_layer ? "" : chunk(work.chunk).name, shown(work.micro_batch), priority(served)};
  }
  /// Micro-batches are numbered through the steps that are written one by one.
  int shown(int micro_batch) const {
    const int first = (step_ - written_as_one_) * plan_.micro_batches;
    const int left_out = 2 * micro_batch >= plan_.micro_batches ? plan_.left_out : 0;
    return plan_.micro_batches * (round_.steps - written_as_one_) > 1 ? first + micro_batch + left_out : -1;
  }

  const std::vector<LayerTrace>& layers(int s) const { return plan_.traces[at(s)]->layers; }

  template <std::vector<Exchange> LayerExchanges::*When>
  void exchange(int s, std::size_t l) {
    if (plan_.exchanges.empty()) return;
    for (const Exchange& one : plan_.exchanges[l].*When) stage(s).exchange(one, layers(s)[l].name);
  }

  template <std::vector<Exchange> LayerExchanges::*When>
  std::vector<Exchange> exchanges_of(std::size_t l) const {
    return plan_.exchanges.empty() ? std::vector<Exchange>{} : plan_.exchanges[l].*When;
  }

  void gather(int s, int c, std::optional<Exchange> ChunkGathers::*when) {
    if (plan_.gathers.empty() || !(plan_.gathers[at(c)].*when)) return;
    stage(s).exchange(*(plan_.gathers[at(c)].*when), "received");
  }

  void add_forward(int s, const PipelineWork& work) {
    const Chunk& own = chunk(work.chunk);
    const Turn turn{.step = step_, .micro_batch = work.micro_batch, .first = work.micro_batch == 0};
    stage(s).begin(name_of("forward", work, kForward));
    gather(s, work.chunk, &ChunkGathers::forward);
    for (std::size_t l = own.first; l < own.last; ++l) {
      tell(work.chunk, &PlaceSynchronisation::before_forward, l, turn);
      exchange<&LayerExchanges::before_forward>(s, l);
      stage(s).compute_during(exchanges_of<&LayerExchanges::during_forward>(l), layers(s)[l].times.forward,
                              layers(s)[l].name);
      exchange<&LayerExchanges::after_forward>(s, l);
    }
    const auto [first, last] = stage(s).end(layers(s)[own.last - 1].name);
    forward_[at(work.chunk)][at(work.micro_batch)] = {first, last};
    tell(work.chunk, &PlaceSynchronisation::after_forward_pass, turn);
  }

  void add_backward(int s, const PipelineWork& work) {
    const Chunk& own = chunk(work.chunk);
    const auto c = at(work.chunk), k = at(work.micro_batch);
    const bool data = work.pass != PipelinePass::backward_weights, weights = work.pass != PipelinePass::backward_data;
    const Turn turn{.step = step_, .micro_batch = work.micro_batch, .last = weights && last_[c] == work.micro_batch};
    stage(s).begin(name_of(data && weights ? "backward"
                           : data          ? "backward data"
                                           : "backward weights",
                           work, kBackward));
    if (data && returns_gradients(work.chunk)) gather(s, work.chunk, &ChunkGathers::backward);
    for (std::size_t l = own.last; l-- > own.first;) {
      if (data) {
        tell(work.chunk, &PlaceSynchronisation::before_backward, l, turn);
        const int segment = layers(s)[l].segment;
        if (l + 1 == own.last || layers(s)[l + 1].segment != segment) add_recompute(s, own, segment);
        exchange<&LayerExchanges::before_backward>(s, l);
      }
      compute_gradients(work.chunk, s, l, data, weights);
      if (data) exchange<&LayerExchanges::after_backward>(s, l);
      if (weights) tell(work.chunk, &PlaceSynchronisation::after_backward, l, turn);
    }
    const auto [first, last] = stage(s).end(layers(s)[own.first].name);
    if (data) {
      backward_[c][k] = {first, last};
      tell(work.chunk, &PlaceSynchronisation::after_backward_data_pass, turn);
    }
    if (weights) {
      gradient_[c][k] = last;
      tell(work.chunk, &PlaceSynchronisation::after_backward_pass, turn);
    }
  }

  /// Of a layer's input, its weights, or both. Where both are, exchanges go on beside them, but for those at the end of
  /// the pass, which nothing comes after.
  void compute_gradients(int c, int s, std::size_t l, bool data, bool weights) {
    const LayerTrace& layer = layers(s)[l];
    const bool ends_pass = l == chunk(c).first;
    const bool made_here =
        std::ranges::all_of(places_[at(c)], [&](const auto& one) { return one->makes_gradients(l); });
    const DeviceTime of_weights = made_here ? layer.times.backward_weights : DeviceTime();
    const std::vector<Exchange> read = exchanges_of<&LayerExchanges::beside_backward_data>(l),
                                made = exchanges_of<&LayerExchanges::beside_backward_weights>(l);
    const bool beside = data && weights && !ends_pass && !(read.empty() && made.empty());
    if (beside) {
      const std::vector<TaskId> reading = stage(s).start(read, layer.name);
      stage(s).compute(layer.times.backward_data, layer.name);
      stage(s).await(reading, layer.name);
      const std::vector<TaskId> making = stage(s).start(made, layer.name);
      stage(s).compute(of_weights, layer.name);
      stage(s).await(making, layer.name);
      return;
    }
    if (weights) exchange<&LayerExchanges::beside_backward_data>(s, l);
    DeviceTime time = data ? layer.times.backward_data : of_weights;
    if (data && weights) time += of_weights;
    stage(s).compute_during(data ? exchanges_of<&LayerExchanges::during_backward>(l) : std::vector<Exchange>{}, time,
                            layer.name);
    if (data) exchange<&LayerExchanges::beside_backward_weights>(s, l);
  }

  /// Whether a backward pass needs what a segment's layers in a chunk forgot: something at or before them is trained.
  bool computes_again(int s, const Chunk& own, int segment) const {
    for (std::size_t l = own.first; segment >= 0 && l < own.last; ++l)
      if (layers(s)[l].segment == segment && layers(s)[l].needs_gradient) return true;
    return false;
  }

  /// A segment's layers that forgot their activations are computed again where backward reaches the last of them.
  void add_recompute(int s, const Chunk& own, int segment) {
    if (!computes_again(s, own, segment)) return;
    for (std::size_t l = own.first; l < own.last; ++l) {
      if (layers(s)[l].segment != segment) continue;
      exchange<&LayerExchanges::before_forward>(s, l);
      stage(s).compute_during(exchanges_of<&LayerExchanges::during_forward>(l), layers(s)[l].times.recompute,
                              layers(s)[l].name, "recompute");
      exchange<&LayerExchanges::after_forward>(s, l);
    }
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
  void send(const Lanes& before, const Lanes& after, int from, int to, Bytes bytes, std::map<GroupId, QueueId>& queues,
            const Label& label, const MessageStop& stop = {}) {
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
        const Lane &sender = stage(from).lanes()[at(i)], &receiver = stage(to).lanes()[at(j)];
        std::string name = label.layer + sender.suffix;
        if (common < receivers) name += " to" + receiver.suffix;
        const MessageTasks message =
            add_message(graph_, queues.at(sender.devices), sender.devices, receiver.devices, bytes * common / receivers,
                        plan_.copy, {label.operation, name, label.micro_batch});
        graph_.after(before[at(i)], message.first);
        graph_.after(message.last, after[at(j)]);
        if (!stop.leaves.empty()) graph_.after(stop.leaves[at(i)], message.first);
        if (!stop.resumes.empty()) graph_.after(message.last, stop.resumes[at(i)]);
      }
  }

  /// Whether something up to the end of a chunk is trained.
  bool returns_gradients(int c) const {
    const std::vector<LayerTrace>& all = layers(chunk(c).stage);
    return std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(chunk(c).last),
                       [](const LayerTrace& layer) { return layer.needs_gradient; });
  }

  void add_activations() {
    const MessageStops stops =
        plan_.blocking ? message_stops(plan_.schedule, programs_, forward_, backward_) : MessageStops();
    const auto stop = [&](const PassesOf<MessageStop>& of, int c, int k) {
      return plan_.blocking ? of[at(c)][at(k)] : MessageStop();
    };
    for (int c = 0; c < chunks(); ++c)
      for (int k = 0; k < plan_.micro_batches; ++k) {
        const int here = forward_stage(c), there = backward_stage(c);
        const PassTasks &forward = forward_[at(c)][at(k)], &backward = backward_[at(c)][at(k)];
        if (c + 1 < chunks()) {
          send(forward.last, forward_[at(c + 1)][at(k)].first, here, forward_stage(c + 1), chunk(c).sent, activations_,
               {"send activations", chunk(c).name, shown(k)}, stop(stops.forward, c, k));
          const int from = backward_stage(c + 1);
          if (returns_gradients(c))
            send(backward_[at(c + 1)][at(k)].last, backward.first, from, there, chunk(c + 1).received, gradients_,
                 {"send gradients", chunk(c + 1).name, shown(k)}, stop(stops.backward, c + 1, k));
        }
        // Computing it again needs what the chunk received.
        const Bytes kept = chunk(c).activations - (chunk(c).recompute.any() ? Bytes(0) : chunk(c).received);
        send(forward.last, backward.first, here, there, kept + chunk(c).parameters, activations_,
             {"send activations and weights", chunk(c).name, shown(k)});
        if (splits_backward(plan_.schedule)) after(backward.last, gradient_[at(c)][at(k)]);
      }
  }

  void add_updates() {
    // In the order in which the gradients are complete: from the network's end.
    for (int c = chunks(); c-- > 0;) {
      const Chunk& own = chunk(c);
      update_[at(c)].clear();
      for (const auto& place : places_[at(c)]) {
        update_[at(c)].push_back(place->update(step_));
        if (plan_.by_layer) continue;  // all on one queue, in program order
        const Lanes& update = update_[at(c)].back();
        for (const TaskId task : update)
          if (const auto served = priority(kUpdate)) graph_.set_priority(task, *served);
        // Replicas' gradients of earlier micro-batches are summed with the last one's.
        for (const Lanes& gradient : gradient_[at(c)])
          send(gradient, update, backward_stage(c), own.stage, own.parameters, gradients_,
               {"send weights' gradients", own.name});
      }
    }
  }

  /// A moment of every rank of a stage.
  TaskId instant(const std::string& name, int s) {
    return graph_.compute_for(stage(s).group(), QueueId::none, Seconds(0), {"wait", name});
  }

  /// What a stage may not begin before something of an earlier micro-batch or batch has ended.
  void limit_in_flight() {
    for (int c = 0; c < chunks(); ++c) {
      if (plan_.schedule == PipelineSchedule::threaded) {
        // A thread goes through the whole network and back, updates included, before it takes its next batch.
        for (const Lanes& update : update_[at(c)]) after_all(update, forward_[0][0].first, plan_.in_flight);
        continue;
      }
      const int window = in_flight_without_flush(plan_.stages(), chunk(c).stage);
      for (int k = 0; k < plan_.micro_batches; ++k) {
        const int later = k + window;
        after(backward_[at(c)][at(k)].last, forward_[at(c)][at(later % plan_.micro_batches)].first,
              later / plan_.micro_batches);
      }
      // Updates of replicas wait for their all-reduce; backward passes may get ahead of them by one batch only.
      if (plan_.schedule == PipelineSchedule::pipedream)
        for (const Lanes& update : update_[at(c)]) after(update, forward_[at(c)][0].first, window + 1);
    }
  }

  void count_versions() {
    for (int c = 0; c < chunks(); ++c) {
      Lanes read = forward_[at(c)][0].first;
      const std::vector<Lane>& lanes = stage(chunk(c).stage).lanes();
      if (std::holds_alternative<Collective>(graph_.task(read.front()).work)) {
        // Of a team; but it is each rank that reads.
        read = {instant("weights of " + chunk(c).name, chunk(c).stage)};
        for (const Lanes& update : update_[at(c)]) after(update, read, 1);
        after(read, forward_[at(c)][0].first);
      }
      if (plan_.schedule == PipelineSchedule::two_bw) {
        // All of a batch is computed with the weights that two batches before it left, though newer ones may be there.
        read.clear();
        for (const Lane& lane : lanes)
          read.push_back(graph_.compute_for(lane.devices, QueueId::none, Seconds(0), {"weights", chunk(c).name}));
        for (const Lanes& update : update_[at(c)]) after(update, read, 2);
        for (const PassTasks& forward : forward_[at(c)]) after(read, forward.first);
      }
      for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
        const StoreId store =
            graph_.add_store(chunk(c).name + lanes[lane].suffix, true, places_[at(c)].front()->shared_versions());
        graph_.set_version_effect(read[lane], {store, VersionEffect::read_at_start});
        graph_.set_version_effect(update_[at(c)].front()[lane], {store, VersionEffect::write_at_end});
      }
    }
  }

  const StepPlan& plan_;
  const StrategyContext& context_;
  TrainingRound round_;
  int written_as_one_;  ///< steps at the round's beginning
  int step_ = 0;        ///< of the round, that is being written
  std::vector<StageProgram> programs_;
  CyclicTaskGraph graph_;
  std::deque<StageWriter> stages_;
  std::map<GroupId, QueueId> activations_, gradients_;  ///< queues of messages, by lane
  TableSums tables_{plan_, context_, graph_};
  std::deque<ParameterPart> parts_;         ///< what places refer to
  std::vector<Places> places_;              ///< by chunk
  PassesOf<PassTasks> forward_, backward_;  ///< backward: of data
  PassesOf<Lanes> gradient_;                ///< of weights is complete
  std::vector<int> last_;                   ///< by chunk: micro-batch that makes its last gradient
  std::vector<std::vector<Lanes>> update_;  ///< by chunk and place
};

}  // namespace

std::vector<StageProgram> programs_of(const StepPlan& plan) {
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

CyclicTaskGraph step_graph(const StepPlan& plan, const StrategyContext& context, const Synchronisation& synchronisation,
                           std::vector<DeviceMemory>& memory) {
  return StepBuilder(plan, context, synchronisation).build(synchronisation, memory);
}

}  // namespace epocast
