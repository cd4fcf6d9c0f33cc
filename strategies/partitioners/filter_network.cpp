#include "strategies/partitioners/filter_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace epocast {
namespace {

std::size_t to_index(int i) { return static_cast<std::size_t>(i); }

/// A vertex per channel and one for the sum, or a single one.
int fine_vertices_per_filter(const FilterNetwork& network, int layer) {
  return network.layers[to_index(layer)].filters == 1 || layer == 0 ? 1 : network.channels(layer) + 1;
}

bool contains(const std::vector<int>& layers, int layer) {
  return std::find(layers.begin(), layers.end(), layer) != layers.end();
}

/// Layers that read each layer in this way.
std::vector<std::vector<int>> readers_by(const FilterNetwork& network, std::vector<int> FilterLayer::*relation) {
  std::vector<std::vector<int>> out(network.layers.size());
  for (std::size_t l = 0; l < network.layers.size(); ++l)
    for (const int read : network.layers[l].*relation) out[to_index(read)].push_back(static_cast<int>(l));
  return out;
}

/// Channels of a layer's filters that come before those of the layer it reads as number `position`.
int first_channel(const FilterNetwork& network, int layer, int read) {
  int channel = 0;
  for (const int r : network.layers[to_index(layer)].reads) {
    if (r == read) return channel;
    channel += network.layers[to_index(r)].filters;
  }
  return channel;
}

std::pair<int, int> locate(const std::vector<int>& offsets, int vertex) {
  const auto next = std::upper_bound(offsets.begin(), offsets.end(), vertex);
  const auto layer = static_cast<int>(next - offsets.begin()) - 1;
  return {layer, vertex - offsets[to_index(layer)]};
}

}  // namespace

double FilterNetwork::work() const {
  return std::accumulate(layers.begin(), layers.end(), 0.0,
                         [](double sum, const FilterLayer& layer) { return sum + layer.work; });
}

int FilterNetwork::channels(int layer) const {
  int sum = 0;
  for (const int read : layers[to_index(layer)].reads) sum += layers[to_index(read)].filters;
  return sum;
}

std::vector<int> FilterNetwork::readers(int layer) const {
  std::vector<int> out;
  for (std::size_t l = 0; l < layers.size(); ++l)
    if (contains(layers[l].reads, layer) || contains(layers[l].pairs, layer)) out.push_back(static_cast<int>(l));
  return out;
}

bool FilterNetwork::has_pairs() const {
  return std::any_of(layers.begin(), layers.end(), [](const FilterLayer& layer) { return !layer.pairs.empty(); });
}

std::vector<int> coarse_offsets(const FilterNetwork& network) {
  std::vector<int> out{0};
  for (const FilterLayer& layer : network.layers) out.push_back(out.back() + layer.filters);
  return out;
}

std::vector<int> fine_offsets(const FilterNetwork& network) {
  std::vector<int> out{0};
  for (std::size_t l = 0; l < network.layers.size(); ++l)
    out.push_back(out.back() + network.layers[l].filters * fine_vertices_per_filter(network, static_cast<int>(l)));
  return out;
}

Hypergraph coarse_grain(const FilterNetwork& network) {
  const std::vector<int> offset = coarse_offsets(network);
  const auto mixed_by = readers_by(network, &FilterLayer::reads), paired_by = readers_by(network, &FilterLayer::pairs);
  Hypergraph graph;
  for (const FilterLayer& layer : network.layers)
    for (int i = 0; i < layer.filters; ++i) graph.add_vertex(layer.work / layer.filters);
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const FilterLayer& layer = network.layers[l];
    if (mixed_by[l].empty() && paired_by[l].empty()) continue;
    std::vector<int> pins{0};
    for (const int reader : mixed_by[l])
      for (int v = offset[to_index(reader)]; v < offset[to_index(reader) + 1]; ++v) pins.push_back(v);
    const std::size_t common = pins.size();
    for (int i = 0; i < layer.filters; ++i) {
      pins.resize(common);
      pins.front() = offset[l] + i;
      for (const int reader : paired_by[l]) {
        const int v = offset[to_index(reader)] + i;
        if (std::find(pins.begin(), pins.end(), v) == pins.end()) pins.push_back(v);
      }
      graph.add_net(layer.sent / layer.filters, pins);
    }
  }
  return graph;
}

Hypergraph fine_grain(const FilterNetwork& network) {
  const std::vector<int> offset = fine_offsets(network);
  const auto mixed_by = readers_by(network, &FilterLayer::reads), paired_by = readers_by(network, &FilterLayer::pairs);
  std::vector<int> each;
  for (std::size_t l = 0; l < network.layers.size(); ++l)
    each.push_back(fine_vertices_per_filter(network, static_cast<int>(l)));
  Hypergraph graph;
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const FilterLayer& layer = network.layers[l];
    const double weight = layer.work / layer.filters / std::max(1, each[l] - 1);
    for (int i = 0; i < layer.filters; ++i)
      for (int k = 0; k < each[l]; ++k) graph.add_vertex(each[l] > 1 && k == each[l] - 1 ? 0 : weight);
  }
  std::vector<int> pins;
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const FilterLayer& layer = network.layers[l];
    for (int i = 0; i < layer.filters; ++i) {
      const int first = offset[l] + i * each[l], result = first + each[l] - 1;
      if (each[l] > 1) {
        pins.resize(to_index(each[l]));
        std::iota(pins.begin(), pins.end(), first);
        graph.add_net(layer.raw / layer.filters, pins);
      }
      if (mixed_by[l].empty() && paired_by[l].empty()) continue;
      pins.assign(1, result);
      for (const int reader : mixed_by[l]) {
        const int channel = each[to_index(reader)] > 1 ? first_channel(network, reader, static_cast<int>(l)) + i : 0;
        for (int j = 0; j < network.layers[to_index(reader)].filters; ++j)
          pins.push_back(offset[to_index(reader)] + j * each[to_index(reader)] + channel);
      }
      for (const int reader : paired_by[l])
        pins.push_back(offset[to_index(reader)] + (i + 1) * each[to_index(reader)] - 1);
      std::sort(pins.begin(), pins.end());
      pins.erase(std::unique(pins.begin(), pins.end()), pins.end());
      graph.add_net(layer.sent / layer.filters, pins);
    }
  }
  return graph;
}

Partition refine_grain(const FilterNetwork& network, const Partition& coarse) {
  Partition out{coarse.parts, {}};
  std::size_t vertex = 0;
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const int each = fine_vertices_per_filter(network, static_cast<int>(l));
    for (int i = 0; i < network.layers[l].filters; ++i)
      out.part_of.insert(out.part_of.end(), to_index(each), coarse.part_of[vertex++]);
  }
  return out;
}

std::string coarse_vertex_name(const FilterNetwork& network, int vertex) {
  const auto [layer, filter] = locate(coarse_offsets(network), vertex);
  const FilterLayer& of = network.layers[to_index(layer)];
  return of.filters == 1 ? fmt::format("layer '{}'", of.name) : fmt::format("filter {} of '{}'", filter, of.name);
}

std::string fine_vertex_name(const FilterNetwork& network, int vertex) {
  const auto [layer, place] = locate(fine_offsets(network), vertex);
  const FilterLayer& of = network.layers[to_index(layer)];
  if (of.filters == 1) return fmt::format("layer '{}'", of.name);
  const int each = fine_vertices_per_filter(network, layer);
  if (each == 1) return fmt::format("filter {} of '{}'", place / each, of.name);
  if (place % each == each - 1) return fmt::format("sum of filter {} of '{}'", place / each, of.name);
  return fmt::format("channel {} of filter {} of '{}'", place % each, place / each, of.name);
}

}  // namespace epocast
