#include "strategies/partitioners/vertex_groups.hpp"

#include <algorithm>
#include <map>

namespace epocast {

Partition VertexGroups::expand(const Partition& of_groups) const {
  Partition out{of_groups.parts, {}};
  for (const int group : group_of) out.part_of.push_back(of_groups.part_of[static_cast<std::size_t>(group)]);
  return out;
}

VertexGroups group_vertices(const Hypergraph& graph, const std::vector<std::uint64_t>& colours, int pieces) {
  VertexGroups out;
  const std::size_t vertices = colours.size(), at_most = static_cast<std::size_t>(pieces);
  for (std::size_t begin = 0, end = 0; begin < vertices; begin = end) {
    while (end < vertices && colours[end] == colours[begin]) ++end;
    const std::size_t size = end - begin, groups = std::min(size, at_most);
    for (std::size_t g = 0; g < groups; ++g) {
      const std::size_t first = begin + g * size / groups, last = begin + (g + 1) * size / groups;
      double weight = 0;
      for (std::size_t v = first; v < last; ++v) weight += graph.weight(static_cast<int>(v));
      out.group_of.insert(out.group_of.end(), last - first, out.graph.add_vertex(weight));
    }
  }
  std::map<std::vector<int>, double> cost_of;
  for (int net = 0; net < graph.nets(); ++net) {
    std::vector<int> pins;
    for (const int pin : graph.pins(net)) pins.push_back(out.group_of[static_cast<std::size_t>(pin)]);
    std::sort(pins.begin(), pins.end());
    pins.erase(std::unique(pins.begin(), pins.end()), pins.end());
    if (pins.size() > 1) cost_of[std::move(pins)] += graph.cost(net);
  }
  for (const auto& [pins, cost] : cost_of) out.graph.add_net(cost, pins);
  return out;
}

}  // namespace epocast
