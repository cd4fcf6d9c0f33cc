#include "experiments/place/place_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "experiments/line_plot.hpp"

namespace epocast {
namespace {

constexpr std::size_t kSteps = 100;
constexpr std::size_t kMemorySteps = 400;

/// Adds the part of [begin, end] that lies in each step.
void add_overlaps(std::vector<double>& sums, double step, Ticks begin, Ticks end) {
  const auto b = static_cast<double>(begin), e = static_cast<double>(end);
  for (auto s = static_cast<std::size_t>(b / step); s < sums.size() && static_cast<double>(s) * step < e; ++s)
    sums[s] +=
        std::max(0.0, std::min(e, static_cast<double>(s + 1) * step) - std::max(b, static_cast<double>(s) * step));
}

double to_milliseconds(double ticks) { return 1e3 * ticks / kTicksPerSecond; }

}  // namespace

std::string placement_profile_svg(const PlaceReport& report) {
  const PlacementGraph& graph = report.graph->graph;
  const Placement& placement = report.outcomes[report.best].result().placement;
  const ReplayResult result = replay(graph, report.machine, placement, report.options);
  const double step = std::max(1.0, static_cast<double>(result.makespan) / static_cast<double>(kSteps));
  std::vector<double> computes(kSteps, 0), transfers(kSteps, 0);
  for (std::size_t n = 0; n < graph.size(); ++n)
    if (graph.time[n] > 0) add_overlaps(computes, step, result.start[n], result.end[n]);
  for (const OutputTransfer& t : result.transfers) add_overlaps(transfers, step, t.begin, t.end);
  PlotLine devices{"devices that compute", {}}, ratio{"transfers to computation", {}};
  for (std::size_t s = 0; s < kSteps; ++s) {
    const double at = to_milliseconds((static_cast<double>(s) + 0.5) * step);
    devices.points[at] = computes[s] / step;
    if (computes[s] > 0) ratio.points[at] = transfers[s] / computes[s];
  }
  return lines_svg({devices, ratio}, "time [ms]", "devices, and transfers to computation", false, PlotScales::linear);
}

std::string placement_memory_svg(const PlaceReport& report) {
  const PlacementGraph& graph = report.graph->graph;
  const Placement& placement = report.outcomes[report.best].result().placement;
  const ReplayResult result = replay(graph, report.machine, placement, report.options);
  const std::vector<Residence> all = residences(graph, placement, result);
  const double step = std::max(1.0, static_cast<double>(result.makespan) / static_cast<double>(kMemorySteps));
  std::vector<PlotLine> lines;
  for (int d = 0; d < report.machine.devices; ++d) {
    PlotLine line{fmt::format("device {}", d), {}};
    line.steps = true;
    // The most of each step in which something changes, then what it leaves.
    std::map<std::size_t, double> most{{0, 0}};
    double held = 0;
    for (const MemoryPoint& point : memory_over_time(all, d)) {
      const auto at = static_cast<std::size_t>(static_cast<double>(point.time) / step);
      if (at > most.rbegin()->first) most.emplace(most.rbegin()->first + 1, held);
      const auto found = most.emplace(at, held).first;
      found->second = std::max(found->second, point.bytes);
      held = point.bytes;
    }
    if (most.rbegin()->first < kMemorySteps) most.emplace(most.rbegin()->first + 1, held);
    most.emplace(kMemorySteps, held);
    for (const auto& [at, bytes] : most) line.points[to_milliseconds(static_cast<double>(at) * step)] = bytes / 1e9;
    lines.push_back(std::move(line));
  }
  if (report.machine.memory > 0)
    lines.push_back({"limit",
                     {{0, report.machine.memory / 1e9},
                      {to_milliseconds(static_cast<double>(result.makespan)), report.machine.memory / 1e9}}});
  return lines_svg(lines, "time [ms]", "memory [GB]", false, PlotScales::linear);
}

}  // namespace epocast
