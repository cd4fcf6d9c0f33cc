#include "sim/cycle_bound.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/howard_cycle_ratio.hpp>
#include <boost/graph/strong_components.hpp>
#include <cmath>
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

/// How many whole iterations each instance starts after its nominal one. Shifting every instance by it ("retiming") leaves
/// the ratio of each cycle as it is and makes all lags non-negative, as Howard's algorithm needs.
class Retiming {
 public:
  Retiming(const std::vector<ServiceStart>& starts, double period) : period_(period) {
    for (const ServiceStart& s : starts) first_[{s.task, s.rank}] = s.time - static_cast<double>(s.iteration) * period;
  }
  int shift(std::uint32_t task, std::uint32_t rank) const {
    const auto it = first_.find({task, rank});
    return it == first_.end() ? 0 : static_cast<int>(std::floor(it->second / period_ + 1e-9));
  }
  double phase(const ServiceStart& s) const {
    return first_.at({s.task, s.rank}) - shift(s.task, s.rank) * period_;
  }

 private:
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> first_;
  double period_;
};

void add_service_order(const CompiledGraph& graph, const std::function<double(Instance)>& duration,
                       const std::vector<ServiceStart>& starts, const Retiming& retiming, Graph& out) {
  std::map<std::int32_t, std::vector<const ServiceStart*>> by_slot;
  for (const ServiceStart& s : starts)
    if (s.slot >= 0) by_slot[s.slot].push_back(&s);
  for (auto& [slot, served] : by_slot) {
    std::sort(served.begin(), served.end(),
              [&](const ServiceStart* a, const ServiceStart* b) { return retiming.phase(*a) < retiming.phase(*b); });
    for (std::size_t k = 0; k < served.size(); ++k) {
      const ServiceStart& from = *served[k];
      const ServiceStart& to = *served[(k + 1) % served.size()];
      const int lag = k + 1 == served.size() ? 1 : 0;
      const int true_lag = lag + retiming.shift(from.task, from.rank) - retiming.shift(to.task, to.rank);
      boost::add_edge(graph.instance_id({from.task, from.rank}), graph.instance_id({to.task, to.rank}),
                      Arc{duration({from.task, from.rank}), static_cast<double>(lag), true_lag}, out);
    }
  }
}

/// Adds all arcs to `out`. False if rounding has moved start times across the edge of an iteration, which would make a lag
/// negative; the graph is useless then.
bool build(const CompiledGraph& graph, const std::function<double(Instance)>& duration,
           const std::vector<ServiceStart>& starts, double iteration_seconds, Graph& out) {
  const bool ordered = iteration_seconds > 0 && !starts.empty();
  const Retiming retiming(ordered ? starts : std::vector<ServiceStart>{}, ordered ? iteration_seconds : 1);
  bool feasible = true;
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
      const int lag = static_cast<int>(edge.lag) + retiming.shift(to.task, to.rank) - retiming.shift(from.task, from.rank);
      feasible &= lag >= 0;
      boost::add_edge(graph.instance_id(from), graph.instance_id(to),
                      Arc{duration(from), static_cast<double>(lag), static_cast<int>(edge.lag)}, out);
    }
  }
  if (ordered && feasible) add_service_order(graph, duration, starts, retiming, out);
  return feasible;
}

}  // namespace

CycleBound maximum_cycle_ratio(const CompiledGraph& graph, const std::function<double(Instance)>& duration,
                               const std::vector<ServiceStart>& starts, double iteration_seconds) {
  auto owner = std::make_unique<Graph>(graph.instances);
  if (!build(graph, duration, starts, iteration_seconds, *owner)) {
    owner = std::make_unique<Graph>(graph.instances);
    build(graph, duration, {}, 0, *owner);
  }
  const Graph& whole = *owner;
  std::vector<std::uint32_t> task_of(graph.instances);
  for (std::uint32_t t = 0; t < graph.tasks.size(); ++t)
    for (std::uint32_t r = 0; r < graph.tasks[t].width; ++r) task_of[graph.instance_id({t, r})] = t;

  double scale = 0;
  for (std::uint64_t v = 0; v < graph.instances; ++v)
    for (const auto& e : boost::make_iterator_range(boost::out_edges(v, whole))) scale += whole[e].duration;
  CycleBound best;
  if (scale <= 0) return best;

  // Boost's implementation compares all vertices with the best cycle found anywhere, which needs a strongly connected graph.
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
