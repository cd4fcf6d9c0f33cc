#include "strategies/step/message_stops.hpp"

#include <cstddef>

namespace epocast {

MessageStops message_stops(PipelineSchedule schedule, const std::vector<StageProgram>& programs,
                           const PassesOf<PassTasks>& forward, const PassesOf<PassTasks>& backward) {
  const auto of = [](const PipelineWork& work, auto& forward_passes, auto& backward_passes) -> auto& {
    auto& passes = work.pass == PipelinePass::forward ? forward_passes : backward_passes;
    return passes[static_cast<std::size_t>(work.chunk)][static_cast<std::size_t>(work.micro_batch)];
  };
  MessageStops stops;
  for (auto* all : {&stops.forward, &stops.backward})
    for (const std::vector<PassTasks>& chunk : forward) all->emplace_back(chunk.size());
  for (const StageProgram& program : programs) {
    const auto leads_pair = [&](std::size_t i) {
      return schedule == PipelineSchedule::interleaved && i + 1 < program.size() &&
             program[i].pass == PipelinePass::forward && program[i + 1].pass != PipelinePass::forward;
    };
    int pairs = 0;
    for (std::size_t i = 0; i < program.size(); ++i) pairs += leads_pair(i) ? 1 : 0;
    for (std::size_t i = 0; i < program.size(); ++i) {
      const bool paired = pairs > 1 && leads_pair(i);  // a single one is where forward passes end
      MessageStop& stop = of(program[i], stops.forward, stops.backward);
      if (paired) stop.leaves = of(program[i + 1], forward, backward).last;
      if (const std::size_t next = i + (paired ? 2 : 1); next < program.size())
        stop.resumes = of(program[next], forward, backward).first;
    }
  }
  return stops;
}

}  // namespace epocast
