#pragma once
// Whether all tasks of a step keep its pace.

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <string>
#include <vector>

#include "sim/task_graph.hpp"

namespace epocast::testing {

/// A task of each component of the graph that waits for nothing outside it, beside the first: a step has one pace.
inline std::vector<std::string> tasks_driven_by_nobody(const CyclicTaskGraph& graph) {
  const std::size_t tasks = graph.tasks().size();
  boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS> waits(tasks);
  for (const Edge& e : graph.edges_with_program_order())
    boost::add_edge(static_cast<std::size_t>(e.before), static_cast<std::size_t>(e.after), waits);
  std::vector<std::size_t> component(tasks);
  const std::size_t components = boost::strong_components(waits, component.data());
  std::vector<bool> driven(components, false);
  for (const Edge& e : graph.edges_with_program_order()) {
    const std::size_t before = component[static_cast<std::size_t>(e.before)];
    const std::size_t after = component[static_cast<std::size_t>(e.after)];
    if (before != after) driven[after] = true;
  }
  std::vector<std::string> out;
  for (std::size_t t = 0; t < tasks; ++t) {
    if (!driven[component[t]]) out.push_back(graph.tasks()[t].label.text());
    driven[component[t]] = true;
  }
  if (!out.empty()) out.erase(out.begin());
  return out;
}

}  // namespace epocast::testing
