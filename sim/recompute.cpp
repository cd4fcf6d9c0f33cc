#include "sim/recompute.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/memory_timeline.hpp"

namespace epocast {
namespace {

/// What lies between a layer and the next: memory that was written before and is read after. The model's input, which
/// is there anyway, does not count.
struct Cut {
  Bytes bytes;
  int tensors = 0;
  std::size_t tensor = 0;  ///< one of them, by the layer that it is stored in
  bool possible = true;    ///< nobody writes over what crosses
};

std::size_t storage(const WorkloadTrace& trace, std::size_t layer) {
  const int in = trace.layers[layer].stored_in;
  return in >= 0 ? static_cast<std::size_t>(in) : layer;
}

/// By layer, the cut after it.
std::vector<Cut> cuts(const WorkloadTrace& trace) {
  const std::size_t n = trace.layers.size();
  std::vector<std::size_t> last_read(n, 0), last_write(n, 0);
  for (std::size_t l = 0; l < n; ++l) {
    // A view writes nothing: it may lie after the cut as any other reader.
    const bool view = trace.layers[l].kind == LayerKind::flatten;
    auto& last = view ? last_read : last_write;
    last[storage(trace, l)] = std::max(last[storage(trace, l)], l);
    for (const int input : trace.layers[l].inputs) {
      std::size_t& read = last_read[storage(trace, static_cast<std::size_t>(input))];
      read = std::max(read, l);
    }
  }
  std::vector<Cut> out(n);
  for (std::size_t s = 1; s < n; ++s) {
    const std::size_t end = std::max(last_read[s], last_write[s]);
    for (std::size_t l = s; l < end; ++l) {
      out[l].bytes += trace.layers[s].output;
      ++out[l].tensors;
      out[l].tensor = s;
      if (l < last_write[s]) out[l].possible = false;
    }
  }
  return out;
}

bool joins(LayerKind kind) {
  return kind == LayerKind::add || kind == LayerKind::concat || kind == LayerKind::multiply;
}

std::vector<std::size_t> block_starts(const WorkloadTrace& trace) {
  const std::vector<Cut> all = cuts(trace);
  std::vector<std::size_t> starts;
  for (std::size_t l = 1; l + 1 < trace.layers.size(); ++l) {
    const Cut& cut = all[l];
    // Views of what was joined belong to the block before them.
    const bool is_new = starts.empty() || all[starts.back() - 1].tensor != cut.tensor;
    if (cut.possible && cut.tensors == 1 && joins(trace.layers[cut.tensor].kind) && is_new) starts.push_back(l + 1);
  }
  return starts;
}

std::vector<std::size_t> equal_starts(const WorkloadTrace& trace, int segments) {
  const std::vector<Cut> all = cuts(trace);
  const double share = trace.kept_activation_bytes().value / segments;
  std::vector<std::size_t> starts;
  double kept = trace.layers.front().kept_activations.value;
  std::size_t l = 1;
  for (int s = 1; s < segments; ++s) {
    const double place = share * s;
    std::size_t best = 0;
    double best_distance = 0;
    for (; l + 1 < trace.layers.size(); ++l) {
      const double here = kept + trace.layers[l].kept_activations.value;
      if (here >= place + share / 2) break;
      kept = here;
      const double distance = std::abs(here - place);
      if (!all[l].possible || here < place - share / 2) continue;
      const Bytes least = best == 0 ? Bytes(0) : all[best].bytes;
      if (best == 0 || all[l].bytes < least || (all[l].bytes == least && distance < best_distance)) {
        best = l;
        best_distance = distance;
      }
    }
    if (best != 0) starts.push_back(best + 1);
  }
  return starts;
}

}  // namespace

std::vector<std::size_t> segment_starts(const WorkloadTrace& trace, const Recompute& recompute) {
  switch (recompute.segments) {
    case Recompute::Segments::none: return {};
    case Recompute::Segments::blocks: return block_starts(trace);
    case Recompute::Segments::count: return equal_starts(trace, recompute.count);
    case Recompute::Segments::sqrt: break;
  }
  const auto keeping =
      std::ranges::count_if(trace.layers, [](const LayerTrace& l) { return l.kept_activations.value > 0; });
  return equal_starts(trace, std::max(1, static_cast<int>(std::ceil(std::sqrt(static_cast<double>(keeping))))));
}

void apply_recompute(WorkloadTrace& trace, const Recompute& recompute) {
  const std::vector<std::size_t> starts = segment_starts(trace, recompute);
  if (starts.empty()) return;
  std::size_t segment = 0;
  for (std::size_t l = 1; l < trace.layers.size() && segment < starts.size(); ++l) {
    if (l == starts[segment]) ++segment;
    if (segment < starts.size()) trace.layers[l].segment = static_cast<int>(segment);
  }
  for (LayerTrace& layer : trace.layers)
    if (layer.segment >= 0) layer.times.recompute = layer.times.forward_again();
  const std::vector<Bytes> kept = kept_by_layer(trace);
  for (std::size_t l = 0; l < trace.layers.size(); ++l) {
    LayerTrace& layer = trace.layers[l];
    if (layer.segment >= 0) layer.recomputed = std::max(Bytes(0), layer.kept_activations - kept[l]);
    layer.kept_activations = kept[l];
  }
}

void forget_everything(WorkloadTrace& trace) {
  if (!trace.goes_back()) return;
  for (std::size_t l = 1; l < trace.layers.size(); ++l) {
    LayerTrace& layer = trace.layers[l];
    layer.segment = 0;
    layer.times.recompute = layer.times.forward_again();
    layer.recomputed = std::exchange(layer.kept_activations, Bytes(0)) + std::exchange(layer.offloaded, Bytes(0));
  }
}

bool forgets(const WorkloadTrace& trace) {
  return std::ranges::any_of(trace.layers, [](const LayerTrace& layer) { return layer.segment >= 0; });
}

}  // namespace epocast
