#include "strategies/pipeline/stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "strategies/partitioners/contiguous_split.hpp"

namespace epocast {
namespace {

/// Time, and number of layers that take any, before each boundary.
struct Work {
  std::vector<double> time{0};
  std::vector<int> layers{0};

  explicit Work(const WorkloadTrace& trace) {
    for (const LayerTrace& layer : trace.layers) {
      const double seconds = (layer.times.forward + layer.times.backward()).value;
      time.push_back(time.back() + seconds);
      layers.push_back(layers.back() + (seconds > 0 ? 1 : 0));
    }
  }
};

/// Halves layers [first, last) of `chunks` chunks, and so on; an odd number of chunks is halved into unequal shares.
void bisect(const Work& work, const std::vector<Bytes>& cut, std::size_t first, std::size_t last, int chunks,
            std::vector<std::size_t>& boundaries) {
  if (chunks == 1) return;
  const int left = chunks / 2, right = chunks - left;
  std::size_t best = 0;
  double slowest = std::numeric_limits<double>::infinity();
  for (std::size_t at = first + 1; at < last; ++at) {
    if (work.layers[at] - work.layers[first] < left || work.layers[last] - work.layers[at] < right) continue;
    const double time = std::max((work.time[at] - work.time[first]) / left, (work.time[last] - work.time[at]) / right);
    // Of equally good boundaries, the one with the fewest bytes across.
    const bool same = best != 0 && std::abs(time - slowest) <= 1e-12 * slowest;
    if (same ? cut[at - 1] >= cut[best - 1] : time > slowest) continue;
    best = at;
    slowest = time;
  }
  bisect(work, cut, first, best, left, boundaries);
  boundaries.push_back(best);
  bisect(work, cut, best, last, right, boundaries);
}

/// The n-th of `chunks` chunks begins with layer round(n x layers / chunks) of those that take time.
std::vector<std::size_t> even_boundaries(const Work& work, int chunks) {
  std::vector<std::size_t> boundaries{0};
  const int layers = work.layers.back();
  for (int chunk = 1; chunk < chunks; ++chunk) {
    const auto before = static_cast<int>(std::lround(static_cast<double>(chunk) * layers / chunks));
    const auto found = std::upper_bound(work.layers.begin(), work.layers.end(), before);
    boundaries.push_back(static_cast<std::size_t>(found - work.layers.begin()) - 1);
  }
  return boundaries;
}

}  // namespace

std::vector<std::size_t> split_layers(const WorkloadTrace& trace, int chunks, SplitRule rule,
                                      BytesPerSecond bandwidth) {
  const Work work(trace);
  if (work.layers.back() < chunks)
    throw SplitError(fmt::format("the network has {} layers that take time", work.layers.back()));
  std::vector<std::size_t> boundaries{0};
  switch (rule) {
    case SplitRule::even: boundaries = even_boundaries(work, chunks); break;
    case SplitRule::bisection: bisect(work, cut_bytes(trace), 0, trace.layers.size(), chunks, boundaries); break;
    case SplitRule::time: {
      WorkloadTrace passes = trace;  // updates are not part of a micro-batch's time
      for (LayerTrace& layer : passes.layers) layer.times.update = Seconds(0);
      boundaries.clear();
      for (const PipelineStage& stage :
           split_contiguous(passes, {.devices = chunks, .stages = chunks, .bandwidth = bandwidth}).stages)
        boundaries.push_back(stage.first);
    }
  }
  boundaries.push_back(trace.layers.size());
  return boundaries;
}

std::vector<Chunk> make_chunks(const WorkloadTrace& trace, const std::vector<std::size_t>& boundaries, int stages) {
  const std::vector<Bytes> cut = cut_bytes(trace);
  const auto count = static_cast<int>(boundaries.size()) - 1;
  std::vector<Chunk> chunks;
  for (int c = 0; c < count; ++c) {
    Chunk chunk;
    chunk.first = boundaries[static_cast<std::size_t>(c)];
    chunk.last = boundaries[static_cast<std::size_t>(c) + 1];
    chunk.stage = c % stages;
    chunk.name = fmt::format("stage {}", chunk.stage);
    if (count > stages) chunk.name += fmt::format(" chunk {}", c / stages);
    for (std::size_t l = chunk.first; l < chunk.last; ++l) {
      const LayerTrace& layer = trace.layers[l];
      chunk.forward += layer.times.forward;
      chunk.backward_data += layer.times.backward_data;
      chunk.backward_weights += layer.times.backward_weights;
      chunk.update += layer.times.update;
      chunk.parameters += layer.parameters;
      chunk.activations += layer.kept_activations;
    }
    if (c > 0) chunk.received = cut[chunk.first - 1];
    chunk.sent = cut[chunk.last - 1];
    chunk.activations += chunk.received;
    chunks.push_back(chunk);
  }
  return chunks;
}

MemoryUse stage_memory(const std::vector<Chunk>& chunks, int stage, const StageProgram& program, int versions,
                       bool recompute, Optimizer optimizer, Precision precision) {
  Bytes parameters;
  for (const Chunk& chunk : chunks)
    if (chunk.stage == stage) parameters += chunk.parameters;

  // What a forward pass keeps; with recomputation the rest is there from the backward pass on.
  bool split = false;
  for (const PipelineWork& work : program) split |= work.pass == PipelinePass::backward_weights;
  Bytes now, peak;
  for (const PipelineWork& work : program) {
    const Chunk& chunk = chunks[static_cast<std::size_t>(work.chunk)];
    const Bytes from_forward = recompute ? chunk.received : chunk.activations;
    if (work.pass == PipelinePass::forward) now += from_forward;
    if (work.pass == PipelinePass::backward || work.pass == PipelinePass::backward_data)
      now += chunk.activations - from_forward;
    // A forward pass makes all its activations, if only to drop them.
    peak = std::max(peak, work.pass == PipelinePass::forward ? now + (chunk.activations - from_forward) : now);
    if (work.pass == (split ? PipelinePass::backward_weights : PipelinePass::backward)) now = now - chunk.activations;
  }
  return {
      .parameters = parameters * versions,
      .gradients = parameters,
      .optimizer_state = parameters * (optimizer_bytes_per_value(optimizer, precision) / bytes_per_value(precision)),
      .activations = peak};
}

}  // namespace epocast
