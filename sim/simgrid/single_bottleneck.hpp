#pragma once
// Finds the flows that can have only one bottleneck, whatever flows at the same time.

#include <utility>
#include <vector>

#include "sim/simgrid/engine.hpp"

namespace epocast {

/// Flows between these hosts all cross `link` and meet no flow of another group. No other link on their way is slower:
/// then under max-min fairness each of n flows gets 1/n of `link`, since another link that carries m <= n of them could
/// give each at least as much.
struct BottleneckGroup {
  int link = -1;
  std::vector<std::pair<int, int>> pairs;  ///< source and target host
};

/// Groups among the routes between `pairs` (each once), which must be all that carry flows. A typical one: pushes of
/// all workers to one server, whose downlink they share. Pairs that are in no group need a solver.
std::vector<BottleneckGroup> find_single_bottlenecks(SimEngine& engine, const std::vector<std::pair<int, int>>& pairs);

}  // namespace epocast
