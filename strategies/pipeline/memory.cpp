#include "strategies/pipeline/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace epocast {
namespace {

/// Versions of its weights that a stage holds, the current one included.
int weight_versions(PipelineSchedule schedule, int stages, int stage) {
  if (schedule == PipelineSchedule::pipedream) return in_flight_without_flush(stages, stage);
  return schedule == PipelineSchedule::two_bw ? 2 : 1;
}

/// As many forward passes, then as many backward passes, as a stage can have under way.
StageProgram busiest_moment(const PipelinePlan& plan, int stage) {
  const int window =
      plan.schedule == PipelineSchedule::threaded ? plan.in_flight : in_flight_without_flush(plan.stages(), stage);
  StageProgram program;
  for (int k = 0; k < window; ++k) program.push_back({PipelinePass::forward, stage, k});
  for (int k = 0; k < window; ++k) program.push_back({PipelinePass::backward, stage, k});
  return program;
}

/// By stage.
std::vector<StageProgram> programs_at_peak(const PipelinePlan& plan) {
  std::vector<StageProgram> programs = programs_of(plan);
  if (!flushes(plan.schedule))
    for (int s = 0; s < plan.stages(); ++s) programs[static_cast<std::size_t>(s)] = busiest_moment(plan, s);
  return programs;
}

bool splits_backward(const StageProgram& program) {
  return std::any_of(program.begin(), program.end(),
                     [](const PipelineWork& work) { return work.pass == PipelinePass::backward_weights; });
}

/// "stage 1 (conv3_1 to fc8)", or with several ranges of layers.
std::string name_of(const PipelinePlan& plan, int stage) {
  std::string layers;
  for (const Chunk& chunk : plan.chunks) {
    if (chunk.stage != stage) continue;
    const std::vector<LayerTrace>& all = plan.traces[static_cast<std::size_t>(stage)]->layers;
    layers += fmt::format("{}{} to {}", layers.empty() ? "" : ", ", all[chunk.first].name, all[chunk.last - 1].name);
  }
  return fmt::format("stage {} ({})", stage, layers);
}

/// Bytes of state per byte of parameters.
double optimizer_share(Optimizer optimizer, Precision precision) {
  return optimizer_bytes_per_value(optimizer, precision) / bytes_per_value(precision);
}

/// Calls at_peak(chunk, received, kept) after each step of the program: how often what a chunk receives, and what it
/// makes and keeps, is there. With `recompute` only what comes in is kept from the forward pass to the backward pass.
template <typename Visitor>
void follow(const StageProgram& program, bool recompute, Visitor&& at_peak) {
  const PipelinePass done = splits_backward(program) ? PipelinePass::backward_weights : PipelinePass::backward;
  struct Held {
    int received = 0, kept = 0;
  };
  std::map<int, Held> held;  // by chunk
  for (const PipelineWork& work : program) {
    Held& own = held[work.chunk];
    if (work.pass == PipelinePass::forward) {
      ++own.received;
      ++own.kept;  // A forward pass makes all its activations, if only to drop them.
      at_peak(work.chunk, held);
      if (recompute) --own.kept;
      continue;
    }
    if (recompute && work.pass != PipelinePass::backward_weights) ++own.kept;
    at_peak(work.chunk, held);
    if (work.pass != done) continue;
    --own.received;
    --own.kept;
  }
}

}  // namespace

ChunkNeed::ChunkNeed(int chunk, const StageProgram& program, int versions, bool recompute, double optimizer_share)
    : copies_(versions + 1 + optimizer_share) {
  follow(program, recompute, [&](int, const auto& held) {
    if (const auto own = held.find(chunk); own != held.end())
      peaks_[own->second.received] = std::max(peaks_[own->second.received], own->second.kept);
  });
}

Bytes ChunkNeed::operator()(Bytes parameters, Bytes received, Bytes kept) const {
  Bytes peak;
  for (const auto& [inputs, own] : peaks_) peak = std::max(peak, received * inputs + kept * own);
  return parameters * copies_ + peak;
}

std::vector<ChunkNeed> chunk_needs(const PipelinePlan& plan, Optimizer optimizer, Precision precision) {
  const std::vector<StageProgram> programs = programs_at_peak(plan);
  std::vector<ChunkNeed> needs;
  for (int c = 0; c < static_cast<int>(plan.chunks.size()); ++c) {
    const int s = c % plan.stages();
    needs.emplace_back(c, programs[static_cast<std::size_t>(s)], weight_versions(plan.schedule, plan.stages(), s),
                       plan.recompute, optimizer_share(optimizer, precision));
  }
  return needs;
}

std::vector<DeviceMemory> pipeline_memory(const PipelinePlan& plan, Optimizer optimizer, Precision precision) {
  std::vector<DeviceMemory> memory;
  const std::vector<StageProgram> programs = programs_at_peak(plan);
  for (int s = 0; s < plan.stages(); ++s) {
    const auto stage = static_cast<std::size_t>(s);
    Bytes parameters, peak;
    for (const Chunk& chunk : plan.chunks)
      if (chunk.stage == s) parameters += chunk.parameters;
    follow(programs[stage], plan.recompute, [&](int, const auto& held) {
      Bytes now;
      for (const auto& [c, own] : held) {
        const Chunk& chunk = plan.chunks[static_cast<std::size_t>(c)];
        now += chunk.received * own.received + (chunk.activations - chunk.received) * own.kept;
      }
      peak = std::max(peak, now);
    });
    memory.push_back({name_of(plan, s),
                      plan.devices[stage],
                      {.parameters = parameters * weight_versions(plan.schedule, plan.stages(), s),
                       .gradients = parameters,
                       .optimizer_state = parameters * optimizer_share(optimizer, precision),
                       .activations = peak}});
    if (plan.gradients != GradientPlace::one_processor || s + 1 < plan.stages()) continue;
    // The one that computes all gradients has a copy of all others' weights, and makes their gradients.
    MemoryUse& use = memory.back().use;
    for (int other = 0; other < s; ++other) {
      use.parameters += plan.chunks[static_cast<std::size_t>(other)].parameters;
      use.gradients += plan.chunks[static_cast<std::size_t>(other)].parameters;
      use.activations += plan.chunks[static_cast<std::size_t>(other)].activations;
    }
  }
  return memory;
}

}  // namespace epocast
