#include "strategies/schedules/schedule.hpp"

#include <algorithm>

namespace epocast {
namespace {

/// Forward passes of stage s before its first backward pass, and by how many micro-batches it delays weights'
/// gradients.
struct ScheduleShape {
  int warm_up = 0;
  int delay = 0;
};

ScheduleShape shape_of(PipelineSchedule schedule, int stages, int stage, int micro_batches) {
  switch (schedule) {
    case PipelineSchedule::naive:
    case PipelineSchedule::gpipe: return {micro_batches, 0};
    case PipelineSchedule::zb_h1: return {stages - stage, stage};
    case PipelineSchedule::zb_h2: return {2 * stages - 1 - 2 * stage, 2 * stage};
    default: return {stages - stage, 0};
  }
}

StageProgram plain_program(PipelineSchedule schedule, int stages, int stage, int micro_batches) {
  const auto [warm_up, delay] = shape_of(schedule, stages, stage, micro_batches);
  const bool split = splits_backward(schedule);
  StageProgram program;
  int forward = 0, weights = 0;
  while (forward < std::min(warm_up, micro_batches)) program.push_back({PipelinePass::forward, stage, forward++});
  // GPipe's backward passes come in the reverse order: the last micro-batch's activations are there first.
  const bool reverse = schedule == PipelineSchedule::gpipe;
  for (int backward = 0; backward < micro_batches; ++backward) {
    program.push_back({split ? PipelinePass::backward_data : PipelinePass::backward, stage,
                       reverse ? micro_batches - 1 - backward : backward});
    if (split && backward - weights >= delay) program.push_back({PipelinePass::backward_weights, stage, weights++});
    if (forward < micro_batches) program.push_back({PipelinePass::forward, stage, forward++});
  }
  while (split && weights < micro_batches) program.push_back({PipelinePass::backward_weights, stage, weights++});
  return program;
}

/// Micro-batches go through a stage's chunks in groups of p: p of them through the first chunk, the same p through the
/// second, and so on (Narayanan et al. 2021, Megatron-LM, section 2.2).
StageProgram interleaved_program(int stages, int stage, int chunks, int micro_batches) {
  const int total = chunks * micro_batches;
  const auto work = [&](PipelinePass pass, int k) {
    const int turn = k / stages % chunks;
    return PipelineWork{pass, (pass == PipelinePass::forward ? turn : chunks - 1 - turn) * stages + stage,
                        k / (stages * chunks) * stages + k % stages};
  };
  // With as many micro-batches as stages nothing can alternate.
  const int warm_up = micro_batches == stages ? total : 2 * (stages - 1 - stage) + (chunks - 1) * stages;
  StageProgram program;
  int forward = 0;
  while (forward < std::min(warm_up, total)) program.push_back(work(PipelinePass::forward, forward++));
  for (int backward = 0; backward < total; ++backward) {
    if (forward < total) program.push_back(work(PipelinePass::forward, forward++));
    program.push_back(work(PipelinePass::backward, backward));
  }
  return program;
}

}  // namespace

bool flushes(PipelineSchedule schedule) {
  return schedule != PipelineSchedule::pipedream && schedule != PipelineSchedule::two_bw &&
         schedule != PipelineSchedule::threaded;
}

bool takes_whole_batches(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::naive || schedule == PipelineSchedule::pipedream ||
         schedule == PipelineSchedule::threaded;
}

bool splits_backward(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::zb_h1 || schedule == PipelineSchedule::zb_h2;
}

std::vector<StageProgram> stage_programs(PipelineSchedule schedule, int stages, int chunks_per_stage,
                                         int micro_batches) {
  std::vector<StageProgram> programs;
  for (int stage = 0; stage < stages; ++stage)
    programs.push_back(schedule == PipelineSchedule::interleaved
                           ? interleaved_program(stages, stage, chunks_per_stage, micro_batches)
                           : plain_program(schedule, stages, stage, micro_batches));
  return programs;
}

int peak_in_flight(const StageProgram& program) {
  const bool split = std::any_of(program.begin(), program.end(),
                                 [](const PipelineWork& work) { return work.pass == PipelinePass::backward_weights; });
  int now = 0, peak = 0;
  for (const PipelineWork& work : program) {
    if (work.pass == PipelinePass::forward) peak = std::max(peak, ++now);
    if (work.pass == (split ? PipelinePass::backward_weights : PipelinePass::backward)) --now;
  }
  return peak;
}

Repetition repetition(PipelineSchedule schedule, int stages, int patience) {
  constexpr int kFew = 8;   // micro-batches: messages on their way, and what is left of how it began, take some
  constexpr int kSeen = 3;  // repetitions in a row, when nothing is left of it
  const auto with = [&](int repeat, int fills_and_empties) {
    const int multiple = patience == 1 ? repeat : std::max(repeat, stages / 2);
    return Repetition{repeat, patience / 2 * kSeen * multiple + fills_and_empties, multiple};
  };
  switch (schedule) {
    case PipelineSchedule::one_f_one_b: return with(1, stages + kFew);
    case PipelineSchedule::zb_h1: {
      Repetition late = with(1, patience == 1 ? 3 * (stages + kFew) / 2 : 2 * stages + kFew);
      late.estimable = std::max(stages + kFew, stages + stages / 6 + 2);  // less an eighth, the pipeline is full, too
      late.alone = false;
      return late;
    }
    case PipelineSchedule::interleaved: {
      Repetition in_rounds = with(stages, (2 + kSeen) * stages);
      in_rounds.estimable = kSeen * stages;
      return in_rounds;
    }
    case PipelineSchedule::gpipe:
    case PipelineSchedule::zb_h2: {
      Repetition growing = with(1, (schedule == PipelineSchedule::zb_h2 ? 4 * stages : stages) + kFew);
      growing.seen = growing.alone = false;
      return growing;
    }
    default: return {};
  }
}

}  // namespace epocast
