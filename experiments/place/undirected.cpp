#include "experiments/place/undirected.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <vector>

#include "sim/error.hpp"
#include "strategies/placement/mapping.hpp"

#ifdef EPOCAST_METIS
#include <metis.h>
#endif
#ifdef EPOCAST_SCOTCH
extern "C" {
#include <scotch.h>
}
#endif

namespace epocast {
namespace {

#if defined(EPOCAST_METIS) || defined(EPOCAST_SCOTCH)
/// Both partitioners add up weights in 32 bits.
constexpr double kLargestTotal = 1 << 29;

/// Symmetric, without parallel edges. `Number` is the partitioner's integer.
template <class Number>
struct Undirected {
  std::vector<Number> begin, neighbour, edge_weight, vertex_weight;

  Undirected(const PlacementGraph& graph, std::span<const Ticks> transfer) {
    std::vector<std::pair<std::uint64_t, Ticks>> edges;
    edges.reserve(2 * graph.edges());
    for (std::size_t e = 0; e < graph.edges(); ++e) {
      const std::uint64_t u = graph.from[e], v = graph.to[e];
      edges.emplace_back(u << 32 | v, transfer[e]);
      edges.emplace_back(v << 32 | u, transfer[e]);
    }
    std::sort(edges.begin(), edges.end());
    std::vector<double> weight;
    begin.assign(graph.size() + 1, 0);
    for (std::size_t i = 0; i < edges.size(); ++i) {
      if (i > 0 && edges[i].first == edges[i - 1].first) {
        weight.back() += static_cast<double>(edges[i].second);
        continue;
      }
      neighbour.push_back(static_cast<Number>(edges[i].first & 0xffffffffU));
      weight.push_back(static_cast<double>(edges[i].second));
      ++begin[(edges[i].first >> 32) + 1];
    }
    for (std::size_t n = 0; n < graph.size(); ++n) begin[n + 1] += begin[n];
    edge_weight = whole(weight, 1);
    vertex_weight = whole(std::vector<double>(graph.time.begin(), graph.time.end()), 0);
  }

  static std::vector<Number> whole(const std::vector<double>& numbers, Number least) {
    double total = 0;
    for (const double number : numbers) total += number;
    std::vector<Number> out;
    out.reserve(numbers.size());
    for (const double number : numbers)
      out.push_back(std::max<Number>(number > 0 ? 1 : least,
                                     static_cast<Number>(total > 0 ? number * (kLargestTotal / total) : 0)));
    return out;
  }
};

template <class Number>
Placement to_placement(const PlacementGraph& graph, std::span<const Ticks> transfer, int devices,
                       const std::vector<Number>& part) {
  Placement out(part.begin(), part.end());
  unite_groups(graph, transfer, devices, out);
  return out;
}
#endif

}  // namespace

#ifdef EPOCAST_METIS
Placement place_with_metis(const PlacementGraph& graph, std::span<const Ticks> transfer, int devices) {
  if (devices == 1) return Placement(graph.size(), 0);
  Undirected<idx_t> undirected(graph, transfer);
  auto vertices = static_cast<idx_t>(graph.size());
  idx_t constraints = 1, parts = devices, cut = 0;
  idx_t set[METIS_NOPTIONS];
  METIS_SetDefaultOptions(set);
  set[METIS_OPTION_SEED] = 1;
  std::vector<idx_t> part(graph.size());
  const int result = METIS_PartGraphKway(&vertices, &constraints, undirected.begin.data(), undirected.neighbour.data(),
                                         undirected.vertex_weight.data(), nullptr, undirected.edge_weight.data(),
                                         &parts, nullptr, nullptr, set, &cut, part.data());
  if (result != METIS_OK) throw ConfigError(fmt::format("--method metis: METIS failed with code {}", result));
  return to_placement(graph, transfer, devices, part);
}
#else
Placement place_with_metis(const PlacementGraph&, std::span<const Ticks>, int) {
  throw ConfigError("--method metis: this epocast was built without METIS; install libmetis-dev and build again");
}
#endif

#ifdef EPOCAST_SCOTCH
Placement place_with_scotch(const PlacementGraph& graph, std::span<const Ticks> transfer, int devices) {
  if (devices == 1) return Placement(graph.size(), 0);
  Undirected<SCOTCH_Num> undirected(graph, transfer);
  const auto vertices = static_cast<SCOTCH_Num>(graph.size());
  SCOTCH_Graph scotch;
  SCOTCH_Strat strategy;
  std::vector<SCOTCH_Num> part(graph.size());
  if (SCOTCH_graphInit(&scotch) != 0 || SCOTCH_stratInit(&strategy) != 0)
    throw ConfigError("--method scotch: Scotch does not start");
  SCOTCH_randomReset();
  const bool done =
      SCOTCH_graphBuild(&scotch, 0, vertices, undirected.begin.data(), undirected.begin.data() + 1,
                        undirected.vertex_weight.data(), nullptr, static_cast<SCOTCH_Num>(undirected.neighbour.size()),
                        undirected.neighbour.data(), undirected.edge_weight.data()) == 0 &&
      SCOTCH_stratGraphMapBuild(&strategy, SCOTCH_STRATDEFAULT, devices, 0.05) == 0 &&
      SCOTCH_graphPart(&scotch, devices, &strategy, part.data()) == 0;
  SCOTCH_stratExit(&strategy);
  SCOTCH_graphExit(&scotch);
  if (!done) throw ConfigError("--method scotch: Scotch failed; it says why on stderr");
  return to_placement(graph, transfer, devices, part);
}
#else
Placement place_with_scotch(const PlacementGraph&, std::span<const Ticks>, int) {
  throw ConfigError("--method scotch: this epocast was built without Scotch; install libscotch-dev and build again");
}
#endif

}  // namespace epocast
