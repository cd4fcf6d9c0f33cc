#include "strategies/step/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "strategies/partitioners/contiguous_split.hpp"
#include "strategies/partitioners/unequal_split.hpp"
#include "strategies/step/host_copies.hpp"
#include "strategies/step/stage_memory.hpp"

namespace epocast {
namespace {

constexpr int kTryAllUpTo = 8;  // devices, on which replicas can be divided in 128 ways

/// All ways to write n as a sum of so many positive numbers, in order.
void for_each_sum(int n, int numbers, const std::function<void(const std::vector<int>&)>& visit) {
  std::vector<int> chosen;
  const std::function<void(int)> go_on = [&](int left) {
    const int open = numbers - static_cast<int>(chosen.size());
    for (int next = open == 1 ? left : 1; next <= left - open + 1; ++next) {
      chosen.push_back(next);
      if (open == 1)
        visit(chosen);
      else
        go_on(left - next);
      chosen.pop_back();
    }
  };
  go_on(n);
}

WorkloadTrace without_updates(WorkloadTrace trace) {
  for (LayerTrace& layer : trace.layers) layer.times.update = Seconds(0);
  return trace;
}

bool fits(MicroBatch& micro_batch, StepPlan plan, const StageLayout& layout, const SplitLimits& limits) {
  plan.traces.clear();
  for (const int replicas : layout.replicas) plan.traces.push_back(&micro_batch.share(replicas));
  plan.chunks = make_chunks(plan.traces, layout.boundaries, splits_backward(plan.schedule));
  const std::vector<DeviceMemory> memory = pipeline_memory(plan, limits.optimizer);
  return std::all_of(memory.begin(), memory.end(),
                     [&](const DeviceMemory& stage) { return stage.use.total() <= *limits.memory; });
}

/// Micro-batches that stage s has under way at most.
int window(const StepPlan& plan, int s) {
  switch (plan.schedule) {
    case PipelineSchedule::naive:
    case PipelineSchedule::gpipe: return plan.micro_batches;
    case PipelineSchedule::threaded: return plan.in_flight;
    case PipelineSchedule::zb_h2: return 2 * (plan.stages() - s) - 1;
    default: return in_flight_without_flush(plan.stages(), s);
  }
}

/// What the time of a batch is bound by: the slowest stage or link, each stage's window of micro-batches that are on
/// their way from it to the last stage and back, and all-reduces; where batches do not overlap also the first
/// micro-batch's way, and what all-reduces take beyond the last backward pass. Exact for equal stages and free links.
Seconds estimated_batch(MicroBatch& micro_batch, const StepPlan& plan, const StageLayout& layout,
                        const std::vector<Bytes>& cut, const SplitLimits& limits) {
  Seconds pace, round_trip, exposed, batch;
  for (int s = plan.stages(); s-- > 0;) {
    const auto stage = static_cast<std::size_t>(s);
    const int replicas = layout.replicas[stage];
    const std::size_t first = layout.boundaries[stage], last = layout.boundaries[stage + 1];
    Seconds forward, backward, messages;
    for (std::size_t l = first; l < last; ++l) {
      forward += micro_batch.passes(replicas).layers[l].times.forward.longest();
      backward += micro_batch.passes(replicas).layers[l].times.backward().longest();
    }
    if (s + 1 < plan.stages())
      messages = cut[last - 1] * (2.0 / std::min(replicas, layout.replicas[stage + 1])) / limits.bandwidth;
    const Seconds reduction =
        micro_batch.sums(replicas).parameters(first, last) * (2.0 * (replicas - 1) / replicas) / limits.bandwidth;
    round_trip += forward + backward + messages;
    pace = std::max({pace, forward + backward, messages, round_trip / window(plan, s)});
    exposed = std::max(exposed, limits.overlap ? reduction - backward : reduction);
    // Without a flush a stage's next batches but one wait for its update.
    batch = std::max({batch, reduction, (round_trip + reduction) / (window(plan, s) + 1)});
  }
  if (!flushes(plan.schedule)) return std::max(batch, pace * plan.micro_batches);
  return round_trip + pace * (plan.micro_batches - 1) + exposed;
}

/// Of each chunk in turn, the passes as they take on the slowest of its stage's devices; none if all devices are alike,
/// or if it is still open which devices a stage gets.
std::vector<WorkloadTrace> traces_by_chunk(MicroBatch& micro_batch, const StepPlan& plan,
                                           const std::vector<int>& replicas) {
  if (replicas.empty() || plan.ranks.front().devices.empty()) return {};
  const DeviceTime all = micro_batch.passes(replicas.front()).compute_time();
  if (all.is_same()) return {};
  std::vector<WorkloadTrace> out;
  for (std::size_t c = 0; c < replicas.size(); ++c) {
    WorkloadTrace& own = out.emplace_back(micro_batch.passes(replicas[c]));
    for (LayerTrace& layer : own.layers)
      layer.times = each_pass([&](DeviceTime LayerTimes::*pass) {
        Seconds longest;
        for (const DeviceId device : plan.ranks[c % plan.ranks.size()].devices)
          longest = std::max(longest, (layer.times.*pass).on(device));
        return longest;
      });
  }
  return out;
}

}  // namespace

MicroBatch::Shared::Shared(WorkloadTrace made, bool at_once)
    : trace(std::move(made)), passes(without_updates(trace)), sums(trace, at_once), peaks(trace) {}

const MicroBatch::Shared& MicroBatch::shared(int replicas) {
  std::unique_ptr<Shared>& found = shares_[replicas];
  if (!found) found = std::make_unique<Shared>(source_(samples_ / replicas), at_once_);
  return *found;
}

bool StageLayout::better_than(const StageLayout& other) const {
  return fits != other.fits ? fits : batch.value < other.batch.value * (1 - 1e-9);
}

StageLayout split_by_time(MicroBatch& micro_batch, const StepPlan& plan, const std::vector<int>& replicas, int devices,
                          const SplitLimits& limits) {
  const std::size_t stages = plan.ranks.size(), chunks_per_stage = plan.chunks.size() / stages;
  SplitOptions options{.devices = devices,
                       .stages = static_cast<int>(plan.chunks.size()),
                       .replicate = replicas.empty(),
                       .bandwidth = limits.bandwidth,
                       .memory = {},
                       .batches_per_update = static_cast<double>(plan.micro_batches),
                       .reductions_overlap = !flushes(plan.schedule)};
  for (std::size_t c = 0; c < plan.chunks.size() && !replicas.empty(); ++c)
    options.replicas.push_back(replicas[c % stages]);
  if (!replicas.empty()) options.devices = std::accumulate(options.replicas.begin(), options.replicas.end(), 0);
  options.trace_of = [&](int count) {
    const bool wanted = replicas.empty() || std::find(replicas.begin(), replicas.end(), count) != replicas.end();
    return wanted && micro_batch.divides_by(count) ? &micro_batch.passes(count) : nullptr;
  };

  // Messages are those of the whole micro-batch.
  const int known = replicas.empty() ? 1 : replicas.front();
  WorkloadTrace whole = micro_batch.passes(known);
  for (LayerTrace& layer : whole.layers) layer.output *= known;

  const std::vector<WorkloadTrace> of_stage = traces_by_chunk(micro_batch, plan, options.replicas);
  const auto split = [&] {
    if (of_stage.empty()) return split_contiguous(whole, options);
    std::vector<const WorkloadTrace*> each;
    for (const WorkloadTrace& trace : of_stage) each.push_back(&trace);
    return split_unequal(whole, options, each);
  };

  const std::vector<Bytes> cut = cut_bytes(whole);
  const auto layout_of = [&](const ContiguousSplit& found) {
    StageLayout out;
    for (std::size_t c = 0; c < found.stages.size(); ++c) {
      if (c < stages) out.replicas.push_back(found.stages[c].replicas);
      out.boundaries.push_back(found.stages[c].first);
    }
    out.boundaries.push_back(whole.layers.size());
    if (chunks_per_stage == 1) out.batch = estimated_batch(micro_batch, plan, out, cut, limits);
    return out;
  };
  StageLayout fastest = layout_of(split());
  if (!limits.memory) return fastest;
  fastest.fits = fits(micro_batch, plan, fastest, limits);
  // One processor for all gradients needs what it needs wherever stages begin.
  if (fastest.fits || plan.gradients == GradientPlace::one_processor) return fastest;

  const std::vector<ChunkNeed> needs = chunk_needs(plan, limits.optimizer, whole);
  const std::vector<int> under_way = passes_under_way(plan);
  options.memory = *limits.memory * (1.0 / static_cast<double>(chunks_per_stage));
  options.memory_of = [&](const StagePosition& position) {
    const LayerSums& sums = micro_batch.sums(position.replicas);
    const std::size_t chunk = needs.size() - static_cast<std::size_t>(position.stages_from_here);
    const Bytes received = sums.received(position.first);
    Bytes kept = sums.kept(position.first, position.last), running = sums.recomputed(position.first, position.last);
    if (whole.host_link.any()) {
      const Bytes offloaded = sums.offloaded(position.first, position.last) + received;
      const Bytes stays = stays_on_device(whole.host_link, offloaded, under_way[chunk % stages]);
      const WorkloadTrace& share = micro_batch.share(position.replicas);
      const Bytes staging = largest_neighbours(share, position.first, position.last, received);
      kept += stays;
      running += std::max(Bytes(0), staging - stays);
    } else {
      kept += received;
    }
    const auto with = [&](Bytes on_top) {
      return sums.frozen(position.first, position.last) + needs[chunk](sums.parameters(position.first, position.last),
                                                                       sums.gradients(position.first, position.last),
                                                                       kept, running, on_top);
    };
    // What the running pass has on top takes long to find: only where it decides.
    const Bytes bound = with(micro_batch.peak_bounds(position.replicas).most(position.first, position.last));
    if (bound <= options.memory || with(Bytes(0)) > options.memory) return bound;
    const PassPeaks peaks = pass_peaks(micro_batch.share(position.replicas), position.first, position.last);
    return with(std::max(peaks.forward.total(), peaks.backward.total()));
  };
  try {
    return layout_of(split());
  } catch (const SplitError&) {
    return fastest;
  }
}

StageLayout split_and_replicate(MicroBatch& micro_batch, const StepPlan& plan, int devices, const SplitLimits& limits) {
  if (devices > kTryAllUpTo) return split_by_time(micro_batch, plan, {}, devices, limits);
  std::optional<StageLayout> best;
  for_each_sum(devices, plan.stages(), [&](const std::vector<int>& replicas) {
    const bool shares =
        std::all_of(replicas.begin(), replicas.end(), [&](int count) { return micro_batch.divides_by(count); });
    if (!shares) return;
    StageLayout layout = split_by_time(micro_batch, plan, replicas, devices, limits);
    if (!best || layout.better_than(*best)) best = std::move(layout);
  });
  if (!best)
    throw SplitError(fmt::format("no {} numbers that divide them add up to {} devices", plan.stages(), devices));
  return std::move(*best);
}

}  // namespace epocast
