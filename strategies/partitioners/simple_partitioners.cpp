#include "strategies/partitioners/simple_partitioners.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace epocast {
namespace {

/// Splits work [first, last) among parts [part, part + parts) and writes each item's part.
void bisect(const std::vector<double>& work, std::size_t first, std::size_t last, int part, int parts,
            std::vector<int>& part_of) {
  if (parts == 1) {
    std::fill(part_of.begin() + static_cast<std::ptrdiff_t>(first), part_of.begin() + static_cast<std::ptrdiff_t>(last),
              part);
    return;
  }
  const int left_parts = parts / 2, right_parts = parts - left_parts;
  double right = 0;
  for (std::size_t i = first; i < last; ++i) right += work[i];
  double left = 0, best = std::numeric_limits<double>::infinity();
  std::size_t cut = first + static_cast<std::size_t>(left_parts);
  for (std::size_t i = first; i + static_cast<std::size_t>(right_parts) < last; ++i) {
    left += work[i];
    right -= work[i];
    if (i + 1 < first + static_cast<std::size_t>(left_parts)) continue;
    const double larger = std::max(left / left_parts, right / right_parts);
    if (larger >= best) continue;
    best = larger;
    cut = i + 1;
  }
  bisect(work, first, cut, part, left_parts, part_of);
  bisect(work, cut, last, part + left_parts, right_parts, part_of);
}

}  // namespace

Partition layerwise_bisection(const FilterNetwork& network, int parts) {
  std::vector<double> work;
  std::vector<std::size_t> layers;  // those with work
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    if (network.layers[l].work <= 0) continue;
    layers.push_back(l);
    work.push_back(network.layers[l].work);
  }
  if (parts < 1 || static_cast<std::size_t>(parts) > work.size())
    throw PartitionError(fmt::format("{} parts, but {} layers that have work; use 1 to {} parts or a finer grain",
                                     parts, work.size(), work.size()));
  std::vector<int> part_of(work.size());
  bisect(work, 0, work.size(), 0, parts, part_of);
  Partition out{parts, {}};
  std::size_t next = 0;
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    // A layer without work goes with the next one that has some, or with the last.
    out.part_of.insert(out.part_of.end(), static_cast<std::size_t>(network.layers[l].filters),
                       part_of[std::min(next, part_of.size() - 1)]);
    if (next < layers.size() && layers[next] == l) ++next;
  }
  return out;
}

Partition fill_in_order(const Hypergraph& graph, int parts, double average) {
  if (parts < 1 || parts > graph.vertices())
    throw PartitionError(fmt::format("{} parts, but {} vertices", parts, graph.vertices()));
  if (average <= 0) average = graph.total_weight() / parts;
  Partition out{parts, {}};
  double load = 0;
  int part = 0;
  for (int v = 0; v < graph.vertices(); ++v) {
    if (load > average && part + 1 < parts && graph.weight(v) > 0) {
      ++part;
      load = 0;
    }
    out.part_of.push_back(part);
    load += graph.weight(v);
  }
  return out;
}

Partition split_horizontally(const FilterNetwork& network, int parts) {
  if (parts < 1) throw PartitionError(fmt::format("{} parts; at least one is needed", parts));
  Partition out{parts, {}};
  for (const FilterLayer& layer : network.layers)
    for (int i = 0; i < layer.filters; ++i)
      out.part_of.push_back(layer.work > 0 ? static_cast<int>(static_cast<std::int64_t>(i) * parts / layer.filters)
                                           : 0);
  return out;
}

}  // namespace epocast
