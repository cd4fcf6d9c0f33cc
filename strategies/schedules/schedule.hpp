#pragma once
// Who computes what in which order: the schedules of pipeline parallelism.

#include <vector>

namespace epocast {

enum class PipelineSchedule {
  naive,        ///< one batch at a time, whole
  gpipe,        ///< all forward passes, then all backward passes (Huang et al. 2019)
  one_f_one_b,  ///< 1F1B with flush (Fan et al. 2021, DAPPLE; Narayanan et al. 2021, PipeDream-Flush)
  interleaved,  ///< 1F1B over several chunks of layers per stage (Narayanan et al. 2021, Megatron-LM)
  zb_h1,        ///< zero bubble, memory of 1F1B (Qi et al. 2023, ZB-H1)
  zb_h2,        ///< zero bubble, twice the memory (Qi et al. 2023, ZB-H2)
  pipedream,    ///< 1F1B without flush, an update after every batch, stashed weights (Narayanan et al. 2019)
  two_bw,       ///< 1F1B without flush, gradients accumulated, double-buffered weights (Narayanan et al. 2021)
  threaded,     ///< several batches in flight, the oldest first, weights as they are (Eserol 2019, section 4.2)
};

/// Whether each batch passes through an empty pipeline.
bool flushes(PipelineSchedule schedule);
/// Whether a batch is one micro-batch.
bool takes_whole_batches(PipelineSchedule schedule);
/// Whether the gradients of activations and of weights are computed separately.
bool splits_backward(PipelineSchedule schedule);

enum class PipelinePass {
  forward,
  backward,          ///< of a schedule that does not split it
  backward_data,     ///< gradient of the chunk's input
  backward_weights,  ///< gradient of its parameters
};

/// One thing that a stage does.
struct PipelineWork {
  PipelinePass pass = PipelinePass::forward;
  int chunk = 0;  ///< of all chunks in the network's order; stage s has chunks s, s + stages, s + 2 stages, ...
  int micro_batch = 0;
};

/// What one stage does for one batch, in order.
using StageProgram = std::vector<PipelineWork>;

/// The programs of all stages of a schedule that flushes, for `micro_batches` of one batch. REQUIRES:
/// flushes(schedule); chunks_per_stage is 1 unless the schedule is interleaved, and then micro_batches is a multiple of
/// stages.
///
/// 1F1B: stage s starts with p - s forward passes and then does a backward and a forward pass in turn. ZB-H1 computes
/// the weights' gradient s micro-batches later, which lets the activations' gradients go ahead and fills the end; with
/// f, b and w the times of forward, backward_data and backward_weights its bubble is (p - 1)(f + b - w) for w <= f, b.
/// ZB-H2 starts with 2 p - 1 - 2 s forward passes and delays by 2 s: (p - 1)(f + b - 2 w), from 2 p - 1 micro-batches
/// on.
std::vector<StageProgram> stage_programs(PipelineSchedule schedule, int stages, int chunks_per_stage,
                                         int micro_batches);

/// After how many micro-batches a schedule that flushes does the same again, and how many at least it takes to see so:
/// the pipeline fills, repeats a few times, and runs empty. gpipe does all forward passes first, and zb_h2 was not seen
/// to do the same again; but their steps grow by the same with each micro-batch. `repeat` is 0 where there is no end.
///
/// Where the slowest stages are apart, or wait for messages that go around, as many micro-batches take turns as are in
/// flight between them; mostly a divisor of `multiple`, which is half of the stages.
struct Repetition {
  int repeat = 0, fewest = 0, multiple = 1;
  int estimable = 0;  ///< where `fewest` are too many, so many show what more of them would add; or 0
  bool seen = true;   ///< to do the same again at all
  bool alone = true;  ///< mostly so that a step of `fewest` tells of others by itself
};
/// `patience`: allows for so many times as long until all has settled.
Repetition repetition(PipelineSchedule schedule, int stages, int patience);

/// Micro-batches that stage s may have in flight in a schedule without flush: p - s, so that it starts as many forward
/// passes as PipeDream's start-up does.
inline int in_flight_without_flush(int stages, int stage) { return stages - stage; }

/// The most micro-batches that a program has under way at a time, of each of the stage's chunks together: from the
/// start of the forward pass to the end of whatever needs the activations last.
int peak_in_flight(const StageProgram& program);

}  // namespace epocast
