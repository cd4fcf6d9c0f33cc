#include "costmodels/protocol_fit.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <sstream>

namespace epocast {
namespace {

constexpr double kProtocolErrorScale = 0.12;  // of ln time
constexpr double kSpread = 1;                 // of ln of a constant before seeing data
constexpr double kFormulaWeight = 0.1;        // for each group it learnt from but the first; an equal setting weighs 1
constexpr double kLikeness = 4;               // of settings: how fast their weight falls with ln of their times' ratio
constexpr double kScatters = 2;               // by how many a difference must exceed what equal software differs by

/// Root of the mean square of ln (time on one machine / time on another) for equal software and nodes, from 1 MB up: 88
/// pairs of nccl-tests logs of Polaris and its test system for each operation, 8 ranks on two nodes
/// (argonne-lcf/alcf-nccl-tests 385be33604cc). reduce_scatter was not measured, and is as all_gather.
double scatter(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::all_reduce: return 0.059;
    case CollectiveOp::all_to_all: return 0.246;
    default: return 0.083;
  }
}

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

/// ln s, interpolated between measured sizes; none outside of them.
std::optional<double> ln_time(const GroupTimings& timings, GroupShape group, double bytes) {
  const GroupTiming *below = nullptr, *above = nullptr;
  for (const GroupTiming& t : timings) {
    if (t.group != group) continue;
    if (t.bytes <= bytes && (below == nullptr || t.bytes > below->bytes)) below = &t;
    if (t.bytes >= bytes && (above == nullptr || t.bytes < above->bytes)) above = &t;
  }
  if (below == nullptr || above == nullptr) return std::nullopt;
  const double low = std::log(below->time.value), high = std::log(above->time.value);
  if (below->bytes == above->bytes) return low;
  return low + (high - low) * std::log(bytes / below->bytes) / std::log(above->bytes / below->bytes);
}

std::set<GroupShape> groups_of(const GroupTimings& timings) {
  std::set<GroupShape> out;
  for (const GroupTiming& t : timings) out.insert(t.group);
  return out;
}

/// Of the groups measured, by ratios of nodes and of ranks. REQUIRES: not empty.
GroupShape nearest(const GroupTimings& timings, GroupShape group) {
  const auto distance = [&](const GroupTiming& t) {
    return std::abs(std::log(static_cast<double>(t.group.nodes) / group.nodes)) +
           std::abs(std::log(static_cast<double>(t.group.ranks) / group.ranks));
  };
  return std::ranges::min_element(timings, {}, distance)->group;
}

}  // namespace

bool same_but_for_version(const std::string& one, const std::string& other) {
  const auto without = [](const std::string& name) {
    std::istringstream words(name);
    std::string out;
    for (std::string word; words >> word;)
      if (std::isdigit(static_cast<unsigned char>(word.front())) == 0) out += word + ' ';
    return out;
  };
  return without(one) == without(other);
}

WeightedTime time_by_measurements(CollectiveOp op, const GroupTimings& own, std::span<const OtherSetting> others,
                                  GroupShape group, double bytes) {
  if (own.empty()) return {};
  const GroupShape from = nearest(own, group);
  const std::optional<double> here = ln_time(own, from, bytes);
  if (!here) return {};
  if (from == group) return {Seconds(std::exp(*here)), std::numeric_limits<double>::infinity()};
  const double least = kScatters * scatter(op);
  double sum = 0, weights = 0;
  for (const OtherSetting& other : others) {
    const std::optional<double> there = ln_time(other.timings, from, bytes);
    const std::optional<double> wanted = ln_time(other.timings, group, bytes);
    if (!there || !wanted) continue;
    const double difference = *here - *there;
    const double counts =
        std::abs(difference) > least ? difference * (1 - least * least / (difference * difference)) : 0;
    const double weight = std::exp(-kLikeness * std::abs(difference));
    sum += weight * (*wanted + counts);
    weights += weight;
  }
  if (!(weights > 0)) return {};
  return {Seconds(std::exp(sum / weights)), weights};
}

Seconds corrected_time(const ProtocolConstants& constants, CollectiveOp op, const GroupTimings& own,
                       std::span<const OtherSetting> others, GroupShape group, double bytes) {
  const Seconds formula = protocols_time(constants, op, group, bytes);
  const WeightedTime measured = time_by_measurements(op, own, others, group, bytes);
  if (!(measured.weight > 0)) return formula;
  const double weight = kFormulaWeight * static_cast<double>(groups_of(own).size() - 1);
  return formula * std::pow(measured.time / formula, 1 / (1 + weight / measured.weight));
}

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

ProtocolConstants fit_protocols(CollectiveOp op, const GroupTimings& timings) {
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

std::vector<double> left_out_errors(CollectiveOp op, const GroupTimings& timings,
                                    std::span<const OtherSetting> others) {
  const auto without = [](const GroupTimings& all, GroupShape group) {
    GroupTimings rest;
    std::ranges::copy_if(all, std::back_inserter(rest), [&](const GroupTiming& t) { return t.group != group; });
    return rest;
  };
  const std::set<GroupShape> groups = groups_of(timings);
  if (groups.size() < 2) return {};  // nothing to learn from
  std::vector<double> out(timings.size(), 0);
  for (const GroupShape& group : groups) {
    const GroupTimings rest = without(timings, group);
    std::vector<OtherSetting> known(others.begin(), others.end());
    for (OtherSetting& other : known)
      if (other.other_version) other.timings = without(other.timings, group);
    const ProtocolConstants constants = fit_protocols(op, rest);
    for (std::size_t i = 0; i < timings.size(); ++i)
      if (timings[i].group == group)
        out[i] = std::abs(corrected_time(constants, op, rest, known, group, timings[i].bytes) / timings[i].time - 1);
  }
  return out;
}

}  // namespace epocast
