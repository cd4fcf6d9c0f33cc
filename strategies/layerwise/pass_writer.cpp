#include "strategies/layerwise/pass_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace epocast {

PassWriter::PassWriter(const StrategyContext& context, const LayerwisePlan& plan, TileTimes& times,
                       CyclicTaskGraph& graph)
    : context_(context), plan_(plan), times_(times), graph_(graph) {
  for (std::size_t d = 0; d < context_.workers.size(); ++d) {
    const std::string name = fmt::format("device {}", d);
    const GroupId group = graph_.add_group(name, {context_.workers[d]});
    const auto queue = [&](const char* what, QueueRole role, Discipline discipline) {
      return graph_.add_queue(name + what, group, role, discipline);
    };
    devices_.push_back({group, queue("", QueueRole::compute, Discipline::program_order),
                        queue(" activations", QueueRole::communication, Discipline::fifo),
                        queue(" gradients", QueueRole::communication, Discipline::fifo), std::nullopt, std::nullopt,
                        std::nullopt});
  }
  for (const Division& division : plan_.divisions)
    for (std::size_t p = 0; p < division.places(); ++p) times_.ask(division.number(), division.tile(p));
  const std::size_t operators = plan_.divisions.size();
  needs_.resize(operators);
  readers_.resize(operators);
  for (const OperatorEdge& edge : plan_.network->edges()) {
    needs_[edge.to].push_back({edge, pieces(plan_.divisions[edge.from], plan_.divisions[edge.to], edge.input)});
    in_rotation(needs_[edge.to].back().pieces, plan_.divisions[edge.from], plan_.divisions[edge.to]);
  }
  for (const std::vector<Need>& of : needs_)
    for (const Need& need : of) readers_[need.edge.from].push_back(&need);
  const MicroBatchTasks none{std::vector<ByPlace>(operators), std::vector<ByPlace>(operators),
                             std::vector<ByPlace>(operators)};
  passes_.assign(static_cast<std::size_t>(plan_.pipeline.micro_batches), none);
  for (const Division& division : plan_.divisions) summed_.emplace_back(division.places());
  backward_passes_.assign(operators, 0);
}

void PassWriter::write() {
  const LayerwisePipeline& pipeline = plan_.pipeline;
  const std::size_t stages = pipeline.stages.size();
  const std::vector<StageProgram> programs = pipeline.programs();
  std::vector<std::size_t> next(stages, 0);
  std::vector<std::vector<bool>> forward_there(stages, std::vector<bool>(passes_.size(), false));
  std::vector<std::vector<bool>> backward_there = forward_there;
  // A pass is written when those that it reads from have been: devices of a stage get theirs in the stage's order.
  const auto write_next = [&](std::size_t s) {
    const PipelineWork& work = programs[s][next[s]];
    micro_batch_ = static_cast<std::size_t>(work.micro_batch);
    const bool is_forward = work.pass == PipelinePass::forward;
    if (is_forward ? s > 0 && !forward_there[s - 1][micro_batch_]
                   : s + 1 < stages && !backward_there[s + 1][micro_batch_])
      return false;
    const std::size_t first = pipeline.stages[s].first_operator;
    const std::size_t end = s + 1 < stages ? pipeline.stages[s + 1].first_operator : plan_.divisions.size();
    if (is_forward)
      for (std::size_t op = first; op < end; ++op) forward(op);
    else
      for (std::size_t op = end; op-- > first;) backward(op);
    (is_forward ? forward_there : backward_there)[s][micro_batch_] = true;
    ++next[s];
    return true;
  };
  for (bool wrote = true; wrote;) {
    wrote = false;
    for (std::size_t s = 0; s < stages; ++s)
      while (next[s] < programs[s].size() && write_next(s)) wrote = true;
  }
}

std::string PassWriter::name_of(const Division& of, const std::string& layer, std::size_t place) const {
  return of.places() == 1 ? layer : fmt::format("{} part {}", layer, place);
}

/// Each sender begins with the receiver behind it, so that not all send to the same one at first.
void PassWriter::in_rotation(std::vector<Piece>& list, const Division& from, const Division& to) const {
  const int workers = static_cast<int>(devices_.size());
  std::ranges::stable_sort(list, {}, [&](const Piece& piece) {
    return std::pair((to.device(piece.to) - from.device(piece.from) + workers) % workers, piece.from);
  });
}

TaskId PassWriter::compute(LayerwiseDevice& on, const DeviceTime& time, const Label& label, bool must_queue) {
  return graph_.compute_for(on.group, time.any() || must_queue ? on.compute : QueueId::none, time, label);
}

TaskId PassWriter::send(QueueId queue, const LayerwiseDevice& from, const LayerwiseDevice& to, Bytes bytes,
                        const Label& label) {
  return graph_.transfer(from.group, queue, {from.group, to.group, bytes}, label);
}

/// Of the micro-batch that is being written, if there are several.
Label PassWriter::label(const char* operation, std::string name) const {
  return {operation, std::move(name), plan_.pipeline.micro_batches > 1 ? static_cast<int>(micro_batch_) : -1};
}

void PassWriter::forward(std::size_t op) {
  MicroBatchTasks& now = passes_[micro_batch_];
  const Division& own = plan_.divisions[op];
  const bool sums = own.degrees()[Dimension::k] > 1;
  ByPlace& first = now.forward[op];
  std::vector<DeviceTime> behind_sums;
  for (std::size_t p = 0; p < own.places(); ++p) {
    DeviceTime alone, rest;
    for (const std::size_t l : own.op().layers)
      (sums && l != own.op().layers.front() ? rest : alone) += trace(own, l, p).times.forward;
    first.push_back(
        compute(device(own, p), alone, label("forward", name_of(own, own.op().name, p)), own.op().inputs.empty()));
    behind_sums.push_back(rest);
  }
  for (const Need& need : needs_[op]) {
    const Division& from = plan_.divisions[need.edge.from];
    for (const Piece& piece : need.pieces) {
      const TaskId source = now.made[need.edge.from][piece.from];
      if (piece.local) {
        graph_.after(source, first[piece.to]);
        continue;
      }
      LayerwiseDevice& sender = device(from, piece.from);
      const TaskId message = send(
          sender.activations, sender, device(own, piece.to), plan_.bytes_of(piece),
          label("send activations", fmt::format("{} to {}", name_of(from, from.op().name, piece.from), own.op().name)));
      graph_.after(source, message);
      graph_.after(message, first[piece.to]);
    }
  }
  now.made[op] = sums ? forward_sums(own, first, behind_sums) : first;
}

/// Normalisation and activation wait for the sums, of which a place keeps its part. Returns their tasks.
PassWriter::ByPlace PassWriter::forward_sums(const Division& own, const ByPlace& parts,
                                             const std::vector<DeviceTime>& behind) {
  ByPlace made;
  const double share = 1.0 / own.degrees()[Dimension::k];
  for (std::size_t p = 0; p < own.places(); ++p)
    made.push_back(
        compute(device(own, p), behind[p] * share, label("forward sums", name_of(own, own.op().name, p)), true));
  for (const Piece& piece : sum_pieces(own)) {
    if (piece.local) {
      graph_.after(parts[piece.from], made[piece.to]);
      continue;
    }
    LayerwiseDevice& sender = device(own, piece.from);
    const TaskId message = send(sender.activations, sender, device(own, piece.to), plan_.bytes_of(piece),
                                label("send sums", name_of(own, own.op().name, piece.from)));
    graph_.after(parts[piece.from], message);
    graph_.after(message, made[piece.to]);
  }
  return made;
}

void PassWriter::backward(std::size_t op) {
  MicroBatchTasks& now = passes_[micro_batch_];
  const Division& own = plan_.divisions[op];
  const bool sums = own.degrees()[Dimension::k] > 1;
  const std::vector<ParameterShard> shards = own.shards();
  std::vector<GradientTasks> gradient_of(own.places());
  ByPlace first, before_sums, last;
  for (std::size_t p = 0; p < own.places(); ++p) {
    LayerwiseDevice& on = device(own, p);
    const std::string name = name_of(own, own.op().name, p);
    std::optional<TaskId> begin, end, summed;
    DeviceTime pending;
    bool any = false;
    const auto flush = [&](const char* what, bool must_queue) {
      const TaskId task = compute(on, pending, label(what, name), must_queue);
      if (end) graph_.after(*end, task);
      if (!begin) begin = task;
      end = task;
      pending = {};
      any = false;
      return task;
    };
    for (std::size_t i = own.op().layers.size(); i-- > 0;) {
      const std::size_t l = own.op().layers[i];
      const bool is_first = i == 0;
      if (sums && is_first) summed = flush("backward sums", true);
      const DeviceTime time = trace(own, l, p).times.backward();
      pending += sums && !is_first ? time * (1.0 / own.degrees()[Dimension::k]) : time;
      any = true;
      const bool has_gradient =
          std::ranges::any_of(shards, [&](const ParameterShard& shard) { return shard.layer == l; });
      if (has_gradient) gradient_of[p][l] = flush("backward", false);
      // What the sums' gradients have been gathered for comes after them.
      if (sums && is_first && any) flush("backward", false);
    }
    if (any || !begin) flush("backward", false);
    first.push_back(*begin);
    last.push_back(*end);
    if (sums) before_sums.push_back(*summed);
    on.last_backward = *end;
    graph_.after(now.made[op][p], *begin);
  }
  if (sums) gather_sums(own, before_sums, last, gradient_of);
  now.backward[op] = last;
  read_gradients(op, first);
  add_up(op, shards, gradient_of);
}

/// Gradients of an operator's output come from those that have read it.
void PassWriter::read_gradients(std::size_t op, const ByPlace& first) {
  const Division& own = plan_.divisions[op];
  for (const Need* need : readers_[op]) {
    const Division& to = plan_.divisions[need->edge.to];
    for (const Piece& piece : need->pieces) {
      const TaskId source = passes_[micro_batch_].backward[need->edge.to][piece.to];
      if (piece.local || !sends_back(*plan_.network, need->edge)) {
        if (piece.local) graph_.after(source, first[piece.from]);
        continue;
      }
      LayerwiseDevice& sender = device(to, piece.to);
      const TaskId message =
          send(sender.gradients, sender, device(own, piece.from), plan_.bytes_of(piece),
               label("send gradients", fmt::format("{} to {}", name_of(to, to.op().name, piece.to), own.op().name)));
      graph_.after(source, message);
      graph_.after(message, first[piece.from]);
    }
  }
}

/// Gradients of a tile that several places have made sums for: each gets the others' parts.
void PassWriter::gather_sums(const Division& own, const ByPlace& parts, const ByPlace& last,
                             const std::vector<GradientTasks>& gradient_of) {
  if (!own.op().needs_gradient) return;
  for (const Piece& piece : sum_pieces(own)) {
    // The part of `to` goes back to all who added to it.
    const auto known = gradient_of[piece.from].find(own.op().layers.front());
    const TaskId waits = known != gradient_of[piece.from].end() ? known->second : last[piece.from];
    if (piece.local) continue;
    LayerwiseDevice& sender = device(own, piece.to);
    const TaskId message = send(sender.gradients, sender, device(own, piece.from), plan_.bytes_of(piece),
                                label("send sums' gradients", name_of(own, own.op().name, piece.to)));
    graph_.after(parts[piece.to], message);
    graph_.after(message, waits);
  }
}

/// A micro-batch's gradients of parameters are added to those before it; after the last they are made.
void PassWriter::add_up(std::size_t op, const std::vector<ParameterShard>& shards,
                        const std::vector<GradientTasks>& gradient_of) {
  for (std::size_t p = 0; p < gradient_of.size(); ++p)
    for (const auto& [layer, task] : gradient_of[p]) {
      const auto [known, is_first] = summed_[op][p].try_emplace(layer, task);
      if (!is_first) graph_.after(known->second, task);
      known->second = task;
    }
  if (++backward_passes_[op] < passes_.size()) return;
  for (auto shard = shards.rbegin(); shard != shards.rend(); ++shard) {
    MadeGradients& made = gradients_.emplace_back(MadeGradients{*shard, op, {}});
    for (const std::size_t p : shard->places) made.after.push_back(summed_[op][p].at(shard->layer));
  }
}

}  // namespace epocast
