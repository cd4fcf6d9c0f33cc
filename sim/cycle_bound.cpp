#include "sim/cycle_bound.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/howard_cycle_ratio.hpp>
#include <boost/graph/strong_components.hpp>
#include <cassert>
#include <map>
#include <memory>

namespace epocast {
namespace {

struct Arc {
  double duration = 0;  ///< of the instance that it leaves
  double lag = 0;       ///< after retiming, never negative
  int true_lag = 0;
};
using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Arc>;

/// Boost's own traits stop improving within 0.005, absolute. Weights here are scaled to a sum of 1.
struct FineFloat {
  using value_type = double;
  static double infinity() { return std::numeric_limits<double>::infinity(); }
  static double epsilon() { return -1e-13; }
};

/// Adds an edge from each instance to the one served next on its slot. In a steady state of period 1 the last
/// beginnings on a slot are one of each of its instances, in the order of service.
void add_service_order(const CompiledGraph& graph, const std::function<double(Instance)>& duration,
                       const std::vector<ServiceCount>& counts, Graph& out) {
  std::map<std::int32_t, std::vector<const ServiceCount*>> by_slot;
  for (const ServiceCount& c : counts)
    if (c.slot >= 0) by_slot[c.slot].push_back(&c);
  for (auto& [slot, served] : by_slot) {
    std::sort(served.begin(), served.end(),
              [](const ServiceCount* a, const ServiceCount* b) { return a->order < b->order; });
    for (std::size_t k = 0; k < served.size(); ++k) {
      const ServiceCount& from = *served[k];
      const ServiceCount& to = *served[(k + 1) % served.size()];
      const int lag = k + 1 == served.size() ? 1 : 0;  // the next round
      const Instance before{from.task, from.rank};
      boost::add_edge(graph.instance_id(before), graph.instance_id({to.task, to.rank}),
                      Arc{duration(before), static_cast<double>(lag), static_cast<int>(lag + to.begun - from.begun)},
                      out);
    }
  }
}

/// Adds all arcs to `out`. Every lag is replaced by lag + begun(before) - begun(after). This "retiming" leaves the
/// ratio of each cycle as it is and makes all lags non-negative, as Howard's algorithm needs, service order included:
/// nothing begins its iteration k before what it waits for has begun its iteration k - lag.
void build(const CompiledGraph& graph, const std::function<double(Instance)>& duration,
           const std::vector<ServiceCount>& counts, Graph& out) {
  std::vector<std::int64_t> begun(graph.instances, 0);
  for (const ServiceCount& c : counts) begun[graph.instance_id({c.task, c.rank})] = c.begun;
  for (std::uint32_t t = 0; t < graph.tasks.size(); ++t) {
    // Waiting for one's own previous firing.
    for (std::uint32_t r = 0; r < graph.tasks[t].width; ++r) {
      const auto id = graph.instance_id({t, r});
      boost::add_edge(id, id, Arc{duration({t, r}), 1, 1}, out);
    }
  }
  for (const CompiledEdge& edge : graph.edges) {
    const bool one_before = graph.tasks[edge.before].width == 1, one_after = graph.tasks[edge.after].width == 1;
    for (std::uint32_t r = 0; r < edge.width; ++r) {
      const Instance from{edge.before, one_before ? 0 : r}, to{edge.after, one_after ? 0 : r};
      const auto before = graph.instance_id(from), after = graph.instance_id(to);
      const auto lag = static_cast<std::int64_t>(edge.lag) + begun[before] - begun[after];
      assert(lag >= 0);
      boost::add_edge(before, after, Arc{duration(from), static_cast<double>(lag), static_cast<int>(edge.lag)}, out);
    }
  }
  add_service_order(graph, duration, counts, out);
}

}  // namespace

CycleBound maximum_cycle_ratio(const CompiledGraph& graph, const std::function<double(Instance)>& duration,
                               const std::vector<ServiceCount>& counts) {
  const auto owner = std::make_unique<Graph>(graph.instances);
  build(graph, duration, counts, *owner);
  const Graph& whole = *owner;
  std::vector<std::uint32_t> task_of(graph.instances);
  for (std::uint32_t t = 0; t < graph.tasks.size(); ++t)
    for (std::uint32_t r = 0; r < graph.tasks[t].width; ++r) task_of[graph.instance_id({t, r})] = t;

  double scale = 0;
  for (std::uint64_t v = 0; v < graph.instances; ++v)
    for (const auto& e : boost::make_iterator_range(boost::out_edges(v, whole))) scale += whole[e].duration;
  CycleBound best;
  if (scale <= 0) return best;

  // Boost's implementation compares all vertices with the best cycle found anywhere, which needs a strongly connected
  // graph.
  std::vector<std::size_t> component(graph.instances), local(graph.instances);
  const std::size_t components = boost::strong_components(
      whole, boost::make_iterator_property_map(component.begin(), boost::get(boost::vertex_index, whole)));
  std::vector<std::size_t> size(components, 0);
  std::vector<std::vector<std::uint64_t>> members(components);
  for (std::uint64_t v = 0; v < graph.instances; ++v) {
    local[v] = size[component[v]]++;
    members[component[v]].push_back(v);
  }
  double best_ratio = -1;
  for (std::size_t c = 0; c < components; ++c) {
    Graph part(size[c]);
    for (const std::uint64_t v : members[c])
      for (const auto& e : boost::make_iterator_range(boost::out_edges(v, whole)))
        if (const auto to = boost::target(e, whole); component[to] == c) {
          Arc arc = whole[e];
          arc.duration /= scale;
          boost::add_edge(local[v], local[to], arc, part);
        }
    std::vector<boost::graph_traits<Graph>::edge_descriptor> cycle;
    const double ratio =
        boost::maximum_cycle_ratio(part, boost::get(boost::vertex_index, part), boost::get(&Arc::duration, part),
                                   boost::get(&Arc::lag, part), &cycle, FineFloat());
    if (cycle.empty() || ratio <= best_ratio) continue;
    best_ratio = ratio;
    best = {};
    double seconds = 0, lag = 0;
    for (const auto& e : cycle) {
      best.tasks.push_back(task_of[members[c][boost::source(e, part)]]);
      best.lags.push_back(part[e].true_lag);
      best.durations.push_back(part[e].duration * scale);
      seconds += best.durations.back();
      lag += part[e].lag;
    }
    best.seconds = seconds / lag;
  }
  return best;
}

}  // namespace epocast
