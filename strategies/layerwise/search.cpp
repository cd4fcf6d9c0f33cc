#include "strategies/layerwise/search.hpp"

#include <algorithm>

namespace epocast {
namespace {

/// What the operator's edges cost if it alone has configuration `own`.
double transfers(const CostTables& tables, const std::vector<std::size_t>& choice, std::size_t op, std::size_t own) {
  double out = 0;
  for (const CostGraph::Edge& edge : tables.graph.edges) {
    if (edge.from == op) out += edge.table(own, choice[edge.to]);
    if (edge.to == op) out += edge.table(choice[edge.from], own);
  }
  return out;
}

double memory_of(const CostTables& tables, const std::vector<std::size_t>& choice) {
  double out = 0;
  for (std::size_t op = 0; op < choice.size(); ++op) out += tables.operators[op].memory[choice[op]];
  return out;
}

/// With a price on memory [s/B].
Optimum priced(const CostTables& tables, double price) {
  CostGraph graph = tables.graph;
  for (std::size_t op = 0; op < graph.nodes.size(); ++op)
    for (std::size_t c = 0; c < graph.nodes[op].size(); ++c)
      graph.nodes[op][c] += price * tables.operators[op].memory[c];
  return minimise(graph);
}

}  // namespace

std::vector<OperatorChoice> explain_choices(const CostTables& tables, const std::vector<std::size_t>& choice) {
  std::vector<OperatorChoice> out;
  for (std::size_t op = 0; op < choice.size(); ++op) {
    const OperatorCosts& costs = tables.operators[op];
    OperatorChoice& made = out.emplace_back();
    made.degrees = made.runner_up = costs.configurations[choice[op]];
    made.compute = costs.compute[choice[op]];
    made.update = costs.update[choice[op]];
    made.transfer = transfers(tables, choice, op, choice[op]);
    const double now = made.compute + made.update + made.transfer;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < costs.configurations.size(); ++c) {
      if (c == choice[op]) continue;
      const double transfer = transfers(tables, choice, op, c);
      const double cost = costs.compute[c] + costs.update[c] + transfer;
      if (!(cost < least)) continue;
      least = cost;
      made.runner_up = costs.configurations[c];
      made.runner_up_more = cost - now;
      made.runner_up_compute = costs.compute[c];
      made.runner_up_update = costs.update[c];
      made.runner_up_transfer = transfer;
    }
  }
  return out;
}

Choice cheapest(const CostTables& tables, double memory_limit) {
  Optimum best = minimise(tables.graph);
  const std::size_t left_by_paper = best.left_by_paper, enumerated = best.enumerated;
  if (memory_limit > 0 && memory_of(tables, best.choice) > memory_limit) {
    double low = 0, high = 1e-12;  // s per byte
    constexpr double kMostPrice = 1;
    Optimum fitting = priced(tables, high);
    while (memory_of(tables, fitting.choice) > memory_limit && high < kMostPrice) {
      low = high;
      high *= 4;
      fitting = priced(tables, high);
    }
    constexpr int kHalvings = 12;
    for (int i = 0; i < kHalvings && memory_of(tables, fitting.choice) <= memory_limit; ++i) {
      const double middle = (low + high) / 2;
      Optimum trial = priced(tables, middle);
      if (memory_of(tables, trial.choice) <= memory_limit) {
        high = middle;
        fitting = std::move(trial);
      } else {
        low = middle;
      }
    }
    best = std::move(fitting);
  }
  const double memory = memory_of(tables, best.choice);
  return {std::move(best.choice), left_by_paper, enumerated, memory, memory_limit <= 0 || memory <= memory_limit};
}

SearchResult search(const CostTables& tables, double memory_limit) {
  SearchResult out{cheapest(tables, memory_limit), {}, 0};
  out.cost = tables.graph.cost(out.choice);
  out.operators = explain_choices(tables, out.choice);
  return out;
}

}  // namespace epocast
