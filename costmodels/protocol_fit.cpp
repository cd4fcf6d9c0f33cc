#include "costmodels/protocol_fit.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace epocast {
namespace {

constexpr double kProtocolErrorScale = 0.12;  // of ln time
constexpr double kSpread = 1;                 // of ln of a constant before seeing data

double wire(CollectiveOp op, GroupShape group) {
  const double p = group.ranks;
  const double on_node = p / group.nodes;
  switch (op) {
    case CollectiveOp::all_reduce: return 2 * (p - 1) / p;
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::all_gather: return (p - 1) / p;
    case CollectiveOp::all_to_all: return (p - on_node) / p * on_node;
    default: return 1;
  }
}

/// Expected constants: base, level, step in s, and beta as a multiple of that of the largest message. Of few
/// microseconds for each step, as NCCL's own tables have them for adapters (src/graph/tuning.cc).
struct Expected {
  double base, level, step, beta;
};
std::array<Expected, kProtocols> expected(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::all_reduce:
      return {{{1.5e-5, 1e-5, 1e-9, 10}, {4e-5, 1.2e-5, 1e-8, 2}, {1e-4, 1e-5, 5e-6, 1}}};  // tree, tree, ring
    case CollectiveOp::all_to_all: return {{{1e-5, 1e-6, 4e-6, 10}, {2e-5, 1e-6, 8e-6, 2}, {5e-5, 1e-6, 1.5e-5, 1}}};
    default: return {{{1e-5, 1e-6, 2e-6, 10}, {2e-5, 1e-6, 4e-6, 2}, {5e-5, 1e-6, 8e-6, 1}}};
  }
}

}  // namespace

Seconds protocols_time(const ProtocolConstants& constants, CollectiveOp op, GroupShape group, double bytes) {
  const double levels = std::log2(static_cast<double>(group.nodes));
  const double sent = wire(op, group) * bytes * group.nodes / group.ranks;
  std::array<double, kProtocols> times{};
  for (std::size_t i = 0; i < kProtocols; ++i) {
    const double* c = constants.data() + i * kProtocolConstants;
    times[i] = c[0] + c[1] * levels + c[2] * (group.ranks - 1) + c[3] * sent;
  }
  const double least = *std::ranges::min_element(times);
  double sum = 0;
  for (const double t : times) sum += std::pow(least / t, 4);
  return Seconds(least / std::sqrt(std::sqrt(sum)));
}

ProtocolConstants fit_protocols(CollectiveOp op, const std::vector<GroupTiming>& timings) {
  const GroupTiming& largest = *std::ranges::max_element(timings, {}, &GroupTiming::bytes);
  const double beta =
      largest.time.value * largest.group.ranks / largest.group.nodes / (largest.bytes * wire(op, largest.group));
  std::vector<FitParameter> parameters;
  for (const Expected& e : expected(op)) {
    parameters.push_back({"base", "s", e.base, kSpread});
    parameters.push_back({"level", "s", e.level, kSpread});
    parameters.push_back({"step", "s", e.step, kSpread});
    parameters.push_back({"beta", "s/B", beta * e.beta, kSpread});
  }
  const auto take = [](const std::vector<double>& values) {
    ProtocolConstants out{};
    std::ranges::copy(values, out.begin());
    return out;
  };
  const LogErrors errors = [&](const std::vector<double>& values) {
    const ProtocolConstants constants = take(values);
    std::vector<double> out;
    out.reserve(timings.size());
    for (const GroupTiming& t : timings)
      out.push_back(std::log(protocols_time(constants, op, t.group, t.bytes) / t.time));
    return out;
  };
  return take(fit_robustly(parameters, errors, kProtocolErrorScale).values());
}

std::vector<double> left_out_errors(CollectiveOp op, const std::vector<GroupTiming>& timings) {
  std::set<GroupShape> groups;
  for (const GroupTiming& t : timings) groups.insert(t.group);
  std::vector<double> out(timings.size(), 0);
  for (const GroupShape& group : groups) {
    std::vector<GroupTiming> others;
    for (const GroupTiming& t : timings)
      if (t.group != group) others.push_back(t);
    if (others.empty()) return {};  // a single shape: nothing to learn from
    const ProtocolConstants constants = fit_protocols(op, others);
    for (std::size_t i = 0; i < timings.size(); ++i)
      if (timings[i].group == group)
        out[i] = std::abs(protocols_time(constants, op, group, timings[i].bytes) / timings[i].time - 1);
  }
  return out;
}

}  // namespace epocast
