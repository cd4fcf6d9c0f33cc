#include "strategies/step/stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "sim/memory_timeline.hpp"
#include "sim/words.hpp"
#include "strategies/partitioners/contiguous_split.hpp"

namespace epocast {
namespace {

/// Time, and number of layers that take any, before each boundary.
struct TimedLayers {
  std::vector<double> time{0};
  std::vector<int> layers{0};

  explicit TimedLayers(const WorkloadTrace& trace) {
    for (const LayerTrace& layer : trace.layers) {
      const double seconds = (layer.times.forward + layer.times.backward()).longest().value;
      time.push_back(time.back() + seconds);
      layers.push_back(layers.back() + (seconds > 0 ? 1 : 0));
    }
  }
};

/// Halves layers [first, last) of `chunks` chunks, and so on; an odd number of chunks is halved into unequal shares.
void bisect(const TimedLayers& work, const std::vector<Bytes>& cut, std::size_t first, std::size_t last, int chunks,
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
std::vector<std::size_t> even_boundaries(const TimedLayers& work, int chunks) {
  std::vector<std::size_t> boundaries{0};
  const int layers = work.layers.back();
  for (int chunk = 1; chunk < chunks; ++chunk) {
    const auto before = static_cast<int>(std::lround(static_cast<double>(chunk) * layers / chunks));
    const auto found = std::upper_bound(work.layers.begin(), work.layers.end(), before);
    boundaries.push_back(static_cast<std::size_t>(found - work.layers.begin()) - 1);
  }
  return boundaries;
}

/// By layer, the most that one of its passes has beside activations that some backward pass reads.
std::vector<Bytes> beside_kept(const WorkloadTrace& trace) {
  std::vector<Bytes> most(trace.layers.size());
  Bytes kept;
  for (const MemoryMoment& moment : memory_timeline(trace, Optimizer::sgd)) {
    if (moment.pass == Pass::forward) kept += trace.layers[moment.layer].kept_activations;
    Bytes own = moment.use.activation_gradients + moment.use.workspace;
    if (moment.pass == Pass::forward) own += std::max(Bytes(0), moment.use.activations - kept);
    most[moment.layer] = std::max(most[moment.layer], own);
  }
  return most;
}

/// Of the moments of forward, or of backward passes, the one that has most beside `held`. With activations in the
/// host's memory, those on the device count elsewhere.
MemoryUse peak_beside(const std::vector<MemoryMoment>& moments, bool forward, Bytes held, bool offloads) {
  MemoryUse peak;
  for (const MemoryMoment& moment : moments) {
    if ((moment.pass == Pass::forward) != forward) continue;
    MemoryUse own{.activations = offloads ? Bytes(0) : moment.use.activations - held,
                  .activation_gradients = moment.use.activation_gradients,
                  .workspace = moment.use.workspace};
    if (own.total() > peak.total()) peak = std::move(own);
  }
  return peak;
}

}  // namespace

std::string_view block_copy(std::string_view name) {
  const std::size_t block = name.find('.');
  if (block == std::string_view::npos) return {};
  const std::size_t number = name.find('.', block + 1);
  if (number == std::string_view::npos || number == block + 1) return {};
  const std::string_view digits = name.substr(block + 1, number - block - 1);
  const bool is_number = std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? name.substr(0, number) : std::string_view();
}

PassPeaks pass_peaks(const WorkloadTrace& trace, std::size_t first, std::size_t last) {
  const std::vector<MemoryMoment> moments = memory_timeline(trace, Optimizer::sgd, {.first = first, .last = last - 1});
  Bytes held = kept_of_received(trace, first, last - 1), segment, largest_segment;
  for (std::size_t l = first; l < last; ++l) {
    const LayerTrace& layer = trace.layers[l];
    held += layer.kept_activations;
    segment = l > first && layer.segment == trace.layers[l - 1].segment ? segment + layer.recomputed : layer.recomputed;
    largest_segment = std::max(largest_segment, segment);
  }
  held += largest_segment;
  const bool offloads = trace.host_link.any();
  return {peak_beside(moments, true, held, offloads), peak_beside(moments, false, held, offloads)};
}

LayerSums::LayerSums(const WorkloadTrace& trace, bool at_once) {
  for (std::size_t l = 0; l < trace.layers.size(); ++l) {
    const LayerTrace& layer = trace.layers[l];
    parameters_.push_back(parameters_.back() + layer.parameters);
    gradients_.push_back(gradients_.back() + layer.gradient_bytes());
    frozen_.push_back(frozen_.back() + layer.frozen);
    kept_.push_back(kept_.back() + layer.kept_activations);
    offloaded_.push_back(offloaded_.back() + layer.offloaded);
    recomputed_.push_back(recomputed_.back() + layer.recomputed);
    const bool ends = l + 1 == trace.layers.size() || trace.layers[l + 1].segment != layer.segment;
    if (ends && !at_once && layer.segment >= 0) segment_ends_.push_back(l + 1);
  }
  for (const Bytes bytes : cut_bytes(trace)) crossing_.push_back(bytes);
}

Bytes LayerSums::recomputed(std::size_t first, std::size_t last) const {
  Bytes most;
  auto end = std::upper_bound(segment_ends_.begin(), segment_ends_.end(), first);
  for (; end != segment_ends_.end() && *end < last; first = *end++)
    most = std::max(most, recomputed_[*end] - recomputed_[first]);
  return std::max(most, recomputed_[last] - recomputed_[first]);
}

PassPeakBounds::PassPeakBounds(const WorkloadTrace& trace) : most_{beside_kept(trace)} {
  for (std::size_t half = 1; 2 * half <= trace.layers.size(); half *= 2) {
    const std::vector<Bytes>& halves = most_.back();
    std::vector<Bytes> both;
    for (std::size_t l = 0; l + half < halves.size(); ++l) both.push_back(std::max(halves[l], halves[l + half]));
    most_.push_back(std::move(both));
  }
}

Bytes PassPeakBounds::most(std::size_t first, std::size_t last) const {
  const std::size_t power = static_cast<std::size_t>(std::bit_width(last - first)) - 1;
  return std::max(most_[power][first], most_[power][last - (std::size_t{1} << power)]);
}

void check_enough_layers(const WorkloadTrace& trace, int chunks) {
  if (const int timed = TimedLayers(trace).layers.back(); timed < chunks)
    throw SplitError(
        fmt::format("the network has {} that {} time", counted(timed, "layer"), timed == 1 ? "takes" : "take"));
}

Bytes largest_neighbours(const WorkloadTrace& trace, std::size_t first, std::size_t last, Bytes received) {
  Bytes most = received, before = received;
  for (std::size_t l = first; l < last; ++l) {
    const Bytes own = trace.layers[l].offloaded;
    if (!(own.value > 0)) continue;
    most = std::max(most, before + own);
    before = own;
  }
  return most;
}

std::vector<std::size_t> halve_layers(const WorkloadTrace& trace, int chunks) {
  check_enough_layers(trace, chunks);
  const TimedLayers work(trace);
  std::vector<std::size_t> boundaries{0};
  bisect(work, cut_bytes(trace), 0, trace.layers.size(), chunks, boundaries);
  boundaries.push_back(trace.layers.size());
  return boundaries;
}

std::vector<std::size_t> divide_layers_evenly(const WorkloadTrace& trace, int chunks) {
  check_enough_layers(trace, chunks);
  std::vector<std::size_t> boundaries = even_boundaries(TimedLayers(trace), chunks);
  boundaries.push_back(trace.layers.size());
  return boundaries;
}

std::vector<std::size_t> block_copies(const WorkloadTrace& trace) {
  std::vector<std::size_t> found, copies;
  std::string block;  // of `copies`
  const auto end_block = [&] {
    if (copies.size() < 2) return true;
    if (!found.empty()) return false;
    found = copies;
    return true;
  };
  std::string_view copy;
  for (std::size_t l = 0; l < trace.layers.size(); ++l) {
    const std::string_view own = block_copy(trace.layers[l].name);
    if (own == copy) continue;
    copy = own;
    if (own.empty()) continue;
    const std::string_view its_block = own.substr(0, own.find('.'));
    if (its_block != block) {
      if (!end_block()) return {};
      block = its_block;
      copies.clear();
    }
    copies.push_back(l);
  }
  return end_block() ? found : std::vector<std::size_t>();
}

std::vector<std::size_t> divide_blocks_evenly(const WorkloadTrace& trace, int chunks) {
  const std::vector<std::size_t> copies = block_copies(trace);
  const auto count = static_cast<int>(copies.size());
  if (count < chunks)
    throw SplitError(count == 0 ? fmt::format("{} has no one block that is repeated; use another split", trace.model)
                                : fmt::format("{} has {} copies of a block", trace.model, count));
  const int more = count % chunks, first_with_more = (chunks - more) / 2;
  std::vector<std::size_t> boundaries{0};
  std::size_t next = 0;
  for (int chunk = 0; chunk + 1 < chunks; ++chunk) {
    const bool has_more = chunk >= first_with_more && chunk < first_with_more + more;
    next += static_cast<std::size_t>(count / chunks + (has_more ? 1 : 0));
    boundaries.push_back(copies[next]);
  }
  boundaries.push_back(trace.layers.size());
  return boundaries;
}

std::vector<Chunk> make_chunks(const std::vector<const WorkloadTrace*>& traces,
                               const std::vector<std::size_t>& boundaries, bool at_once) {
  const std::size_t stages = traces.size(), count = boundaries.size() - 1;
  std::vector<LayerSums> sums;
  for (const WorkloadTrace* trace : traces) sums.emplace_back(*trace, at_once);
  std::vector<Chunk> chunks;
  for (std::size_t c = 0; c < count; ++c) {
    const std::size_t stage = c % stages;
    Chunk chunk;
    chunk.first = boundaries[c];
    chunk.last = boundaries[c + 1];
    chunk.stage = static_cast<int>(stage);
    chunk.name = fmt::format("stage {}", stage);
    if (count > stages) chunk.name += fmt::format(" chunk {}", c / stages);
    for (std::size_t l = chunk.first; l < chunk.last; ++l) {
      const LayerTimes& times = traces[stage]->layers[l].times;
      chunk.forward += times.forward;
      chunk.backward_data += times.backward_data;
      chunk.backward_weights += times.backward_weights;
      chunk.recompute += times.recompute;
      chunk.update += times.update;
    }
    chunk.parameters = sums[stage].parameters(chunk.first, chunk.last);
    chunk.gradients = sums[stage].gradients(chunk.first, chunk.last);
    chunk.frozen = sums[stage].frozen(chunk.first, chunk.last);
    chunk.received = sums[stage].received(chunk.first);
    chunk.sent = sums[stage].received(chunk.last);
    chunk.activations = sums[stage].kept(chunk.first, chunk.last);
    // What comes in is kept like the rest.
    const Bytes received = kept_of_received(*traces[stage], chunk.first, chunk.last - 1);
    if (traces[stage]->host_link.any()) {
      chunk.offloaded = sums[stage].offloaded(chunk.first, chunk.last) + received;
      chunk.staging = largest_neighbours(*traces[stage], chunk.first, chunk.last, received);
    } else {
      chunk.activations += received;
    }
    chunk.recomputed = sums[stage].recomputed(chunk.first, chunk.last);
    chunk.peaks = pass_peaks(*traces[stage], chunk.first, chunk.last);
    chunks.push_back(chunk);
  }
  return chunks;
}

}  // namespace epocast
