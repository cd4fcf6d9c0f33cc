#include "sim/result_check.hpp"

#include <fmt/format.h>

namespace epocast {
namespace {

constexpr double kRounding = 1e-6;  // messages are rounded to 1/1024 B, and sums of times to the clock's resolution
constexpr double kRoundingOfEstimates = 1e-5;  // of a window that ends somewhere in its last iteration

/// Share of an iteration by which a result may be off without being wrong.
double leeway(const ExecutionResult& result) {
  if (!(result.iteration_ci95 > 0) && (result.exact || !(result.iteration > 0))) return kRounding;
  return kRoundingOfEstimates + result.iteration_ci95 / result.iteration;
}

}  // namespace

std::vector<std::string> doubts_about(const ExecutionResult& result, bool overlooks_traffic) {
  std::vector<std::string> doubts;
  if (overlooks_traffic)
    doubts.emplace_back(
        "collectives at level closed_form do not notice the other traffic of this run or slow links, nor does traffic "
        "notice them: times are too short where they share links; use collective.level: auto or flow");
  if (const double busy = result.metrics.max_link_utilization; busy > 1 + leeway(result))
    doubts.push_back(fmt::format("impossible: link {} would carry {:.1f} % of what it can", result.metrics.busiest_link,
                                 100 * busy));
  if (result.bound && result.iteration * (1 + leeway(result)) < result.bound->seconds)
    doubts.push_back(fmt::format("impossible: an iteration of {:.6g} s is shorter than its lower bound of {:.6g} s",
                                 result.iteration, result.bound->seconds));
  return doubts;
}

}  // namespace epocast
