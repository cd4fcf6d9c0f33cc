#include "strategies/step/stage_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>

#include "strategies/step/host_copies.hpp"

namespace epocast {

int weight_versions(PipelineSchedule schedule, int stages, int stage) {
  if (schedule == PipelineSchedule::pipedream) return in_flight_without_flush(stages, stage);
  return schedule == PipelineSchedule::two_bw ? 2 : 1;
}

namespace {

/// As many forward passes, then as many backward passes, as a stage can have under way.
StageProgram busiest_moment(const StepPlan& plan, int stage) {
  const int window =
      plan.schedule == PipelineSchedule::threaded ? plan.in_flight : in_flight_without_flush(plan.stages(), stage);
  StageProgram program;
  for (int k = 0; k < window; ++k) program.push_back({PipelinePass::forward, stage, k});
  for (int k = 0; k < window; ++k) program.push_back({PipelinePass::backward, stage, k});
  return program;
}

/// By stage.
std::vector<StageProgram> programs_at_peak(const StepPlan& plan) {
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
std::string name_of(const StepPlan& plan, int stage) {
  std::string layers;
  for (const Chunk& chunk : plan.chunks) {
    if (chunk.stage != stage) continue;
    const std::vector<LayerTrace>& all = plan.traces[static_cast<std::size_t>(stage)]->layers;
    layers += fmt::format("{}{} to {}", layers.empty() ? "" : ", ", all[chunk.first].name, all[chunk.last - 1].name);
  }
  return fmt::format("stage {} ({})", stage, layers);
}

/// Of one chunk on a device.
struct Held {
  int passes = 0;   ///< whose activations are kept for the backward pass
  int running = 0;  ///< of them, such as have in memory what is forgotten otherwise
};

/// Calls at_peak(held by chunk, running pass) at each step of the program.
template <typename Visitor>
void follow(const StageProgram& program, Visitor&& at_peak) {
  const PipelinePass done = splits_backward(program) ? PipelinePass::backward_weights : PipelinePass::backward;
  std::map<int, Held> held;
  for (const PipelineWork& work : program) {
    Held& own = held[work.chunk];
    if (work.pass == PipelinePass::forward) {
      ++own.passes;
      ++own.running;  // A forward pass makes all its activations, if only to drop them.
      at_peak(held, work);
      --own.running;
      continue;
    }
    if (work.pass != PipelinePass::backward_weights) ++own.running;
    at_peak(held, work);
    if (work.pass != done) continue;
    --own.running;
    if (own.passes > 0) --own.passes;  // else the forward pass was another device's
  }
}

}  // namespace

ChunkNeed::ChunkNeed(int chunk, const StageProgram& program, int versions, double state) : copies_(versions + state) {
  std::map<int, int, std::greater<>> running;  // at most, by passes, most first
  follow(program, [&](const auto& held, const PipelineWork&) {
    if (const auto own = held.find(chunk); own != held.end())
      running[own->second.passes] = std::max(running[own->second.passes], own->second.running);
  });
  // More passes with as many running need at least as much.
  for (const auto& [passes, most] : running)
    if (peaks_.empty() || most > peaks_.back().running) peaks_.push_back({passes, most});
}

Bytes ChunkNeed::operator()(Bytes parameters, Bytes gradients, Bytes kept, Bytes recomputed, Bytes on_top) const {
  Bytes peak;
  for (const auto& [passes, running] : peaks_) peak = std::max(peak, kept * passes + recomputed * running);
  return parameters * copies_ + gradients + peak + on_top;
}

std::vector<ChunkNeed> chunk_needs(const StepPlan& plan, Optimizer optimizer, const WorkloadTrace& trace) {
  const std::vector<StageProgram> programs = programs_at_peak(plan);
  std::vector<ChunkNeed> needs;
  for (int c = 0; c < static_cast<int>(plan.chunks.size()); ++c) {
    const int s = c % plan.stages();
    needs.emplace_back(c, programs[static_cast<std::size_t>(s)], weight_versions(plan.schedule, plan.stages(), s),
                       trace.state_on_host ? 0 : optimizer_share(optimizer, trace));
  }
  return needs;
}

std::vector<int> passes_under_way(const StepPlan& plan) {
  std::vector<int> most;
  for (const StageProgram& program : programs_at_peak(plan)) most.push_back(peak_in_flight(program));
  return most;
}

std::vector<DeviceMemory> pipeline_memory(const StepPlan& plan, Optimizer optimizer) {
  std::vector<DeviceMemory> memory;
  const std::vector<StageProgram> programs = programs_at_peak(plan);
  for (int s = 0; s < plan.stages(); ++s) {
    const auto stage = static_cast<std::size_t>(s);
    const WorkloadTrace& trace = plan.trace(s);
    const int under_way = peak_in_flight(programs[stage]);
    Bytes parameters, gradients, frozen, offloaded;
    MemoryUse peak;
    for (const Chunk& chunk : plan.chunks)
      if (chunk.stage == s) {
        parameters += chunk.parameters;
        gradients += chunk.gradients;
        frozen += chunk.frozen;
      }
    follow(programs[stage], [&](const auto& held, const PipelineWork& work) {
      const Chunk& runs = plan.chunks[static_cast<std::size_t>(work.chunk)];
      MemoryUse now = work.pass == PipelinePass::forward ? runs.peaks.forward : runs.peaks.backward;
      Bytes on_host;
      for (const auto& [c, own] : held) {
        const Chunk& chunk = plan.chunks[static_cast<std::size_t>(c)];
        const Bytes stays = stays_on_device(trace.host_link, chunk.offloaded, under_way);
        const Bytes on_top = std::max(Bytes(0), chunk.staging - stays);
        now.activations += (chunk.activations + stays) * own.passes + (chunk.recomputed + on_top) * own.running;
        on_host += chunk.offloaded * own.passes;
      }
      if (now.total() > peak.total()) peak = std::move(now);
      offloaded = std::max(offloaded, on_host);
    });
    const int versions = weight_versions(plan.schedule, plan.stages(), s);
    memory.push_back({name_of(plan, s),
                      plan.ranks[stage].devices,
                      {.parameters = parameters * versions + frozen,
                       .gradients = gradients,
                       .activations = peak.activations,
                       .activation_gradients = peak.activation_gradients,
                       .workspace = peak.workspace,
                       .on_host = offloaded,
                       .passing = offloaded + parameters * (versions - 1)}});
    memory.back().use.state_of(trace) += parameters * optimizer_share(optimizer, trace);
    if (plan.gradients != GradientPlace::one_processor || s + 1 < plan.stages()) continue;
    // The one that computes all gradients has a copy of all others' weights, and makes their gradients.
    MemoryUse& use = memory.back().use;
    Bytes most_on_top = plan.chunks[stage].peaks.backward.total();
    for (int other = 0; other < s; ++other) {
      const Bytes copy =
          plan.chunks[static_cast<std::size_t>(other)].parameters + plan.chunks[static_cast<std::size_t>(other)].frozen;
      use.parameters += copy;
      use.passing += copy;
      use.gradients += plan.chunks[static_cast<std::size_t>(other)].gradients;
      use.activations += plan.chunks[static_cast<std::size_t>(other)].activations;
      const Bytes on_top = plan.chunks[static_cast<std::size_t>(other)].peaks.backward.total();
      use.activation_gradients += std::max(Bytes(0), on_top - most_on_top);
      most_on_top = std::max(most_on_top, on_top);
    }
  }
  return memory;
}

void add_memory(std::vector<DeviceMemory>& memory, const DeviceMemory& more) {
  const DeviceId device = more.devices.front();
  const auto holder = std::ranges::find_if(
      memory, [&](const DeviceMemory& one) { return std::ranges::find(one.devices, device) != one.devices.end(); });
  DeviceMemory own = more;
  if (holder != memory.end()) {
    own = {holder->holder, {device}, holder->use, holder->layers};
    for (const auto& [layer, held] : more.layers) own.layers[layer].lasting += held.lasting;
    if (!own.holder.ends_with(more.holder)) own.holder += " and " + more.holder;
    own.use.parameters += more.use.parameters;
    own.use.gradients += more.use.gradients;
    own.use.optimizer_state += more.use.optimizer_state;
    own.use.on_host += more.use.on_host;
    own.use.passing += more.use.passing;
    std::erase(holder->devices, device);
    if (holder->devices.empty()) memory.erase(holder);
  }
  memory.push_back(std::move(own));
}

}  // namespace epocast
