#include "costmodels/network_fit.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <stdexcept>
#include <tuple>

namespace epocast {
namespace {

constexpr double kNetworkErrorScale = 0.1;
constexpr double kLargestNetworkResidual = 1;
constexpr std::size_t kSizesPerRanks = 24;
constexpr std::size_t kFewSizes = 8;
constexpr double kNeighbourSpread = 0.1;  // of ln beta and ln speed; chosen on the KNL table, see docs/calibration.md
constexpr double kLarge = 1e6;            // [B]; where bandwidth counts

struct RingWork {
  double steps = 1, wire = 1, reduced_share = 0;  ///< wire and share per byte of the message
};

RingWork ring_work(CollectiveOp op, int ranks) {
  const double p = ranks;
  switch (op) {
    case CollectiveOp::all_reduce: return {2 * (p - 1), 2 * (p - 1) / p, 0.5};
    case CollectiveOp::reduce_scatter: return {p - 1, (p - 1) / p, 1};
    case CollectiveOp::all_gather:
    case CollectiveOp::all_to_all: return {p - 1, (p - 1) / p, 0};
    default: return {std::ceil(std::log2(p)), 1, 0};
  }
}

InterpolationPoint point_at(int ranks, double bytes) { return {{std::log2(bytes), 2 * std::log2(ranks)}}; }

/// The measured sizes if they are few; else knots a factor of about 8 apart.
std::vector<double> choose_knots(const std::vector<CollectiveTiming>& points) {
  std::set<double> sizes;
  for (const CollectiveTiming& p : points) sizes.insert(p.bytes);
  std::vector<double> knots(sizes.begin(), sizes.end());
  if (knots.size() <= kFewSizes) return knots;
  const double low = knots.front();
  const double high = knots.back();
  const int pieces = std::max(1, static_cast<int>(std::log2(high / low) / 3));
  knots.clear();
  for (int i = 0; i <= pieces; ++i) knots.push_back(low * std::pow(high / low, static_cast<double>(i) / pieces));
  return knots;
}

double interpolate(const std::vector<double>& knots, const std::vector<double>& values, double at) {
  if (at <= knots.front()) return values.front();
  for (std::size_t i = 1; i < knots.size(); ++i)
    if (at <= knots[i]) {
      const double share = std::log(at / knots[i - 1]) / std::log(knots[i] / knots[i - 1]);
      return values[i - 1] + share * (values[i] - values[i - 1]);
    }
  return values.back();
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

}  // namespace

double NetworkFit::beta_at(double bytes) const {
  std::vector<double> values;
  for (const FittedParameter& b : betas) values.push_back(b.value);
  return interpolate(knots, values, bytes);
}

double NetworkFit::speed_of(int ranks) const {
  if (speed.empty()) return 1;
  const auto above = speed.lower_bound(ranks);
  if (above == speed.end()) return speed.rbegin()->second.value;
  if (above->first == ranks || above == speed.begin()) return above->second.value;
  const auto below = std::prev(above);
  const double share = std::log2(static_cast<double>(ranks) / below->first) /
                       std::log2(static_cast<double>(above->first) / below->first);
  return below->second.value + share * (above->second.value - below->second.value);
}

AlphaBetaGamma NetworkFit::link(int ranks, double bytes) const {
  if (protocols) throw std::logic_error("collectives across nodes have no single link");
  // The residual belongs to whichever of latency and bandwidth; bandwidth is what is uncertain for large messages.
  const RingWork work = ring_work(op, ranks);
  const double latency = work.steps * alpha.value;
  const double rest = std::max(time(ranks, bytes).value - latency, 0.0) / std::max(work.wire * bytes, 1e-300);
  return {alpha.value, std::max(rest - work.reduced_share * gamma, 0.0), gamma};
}

double NetworkFit::formula(int ranks, double bytes) const {
  const RingWork work = ring_work(op, ranks);
  return work.steps * alpha.value + work.wire * bytes * (beta_at(bytes) + work.reduced_share * gamma) / speed_of(ranks);
}

Seconds NetworkFit::time(int ranks, double bytes, int nodes) const {
  if (protocols) return corrected_time(*protocols, op, groups, other_settings, {ranks, nodes}, bytes);
  return Seconds(formula(ranks, bytes) * std::exp(residuals.mean(point_at(ranks, bytes))));
}

bool NetworkFit::extrapolates(int ranks, double bytes) const {
  const auto [small, large] = std::ranges::minmax(points, {}, &CollectiveTiming::bytes);
  const auto [few, many] = std::ranges::minmax(points, {}, &CollectiveTiming::ranks);
  return bytes < small.bytes || bytes > large.bytes || ranks < few.ranks || ranks > many.ranks;
}

void interpolate_residuals(NetworkFit& fit, const InterpolationSettings& settings) {
  std::vector<InterpolationPoint> at;
  std::vector<double> values;
  for (const CollectiveTiming& p : fit.points) {
    at.push_back(point_at(p.ranks, p.bytes));
    values.push_back(std::clamp(std::log(p.time.value / fit.formula(p.ranks, p.bytes)), -kLargestNetworkResidual,
                                kLargestNetworkResidual));
  }
  fit.residuals = ResidualInterpolation(settings, std::move(at), std::move(values));
}

NetworkFit fit_network(const std::vector<CollectiveTiming>& points, double gamma) {
  NetworkFit fit;
  fit.op = points.front().op;
  fit.library = points.front().library;
  fit.gamma = gamma;
  fit.knots = choose_knots(points);
  fit.points = points;
  // Where the data say nothing: 10 us and what the largest message shows.
  const CollectiveTiming& largest = *std::ranges::max_element(points, {}, &CollectiveTiming::bytes);
  const RingWork largest_work = ring_work(largest.op, largest.ranks);
  const double beta = largest.time.value / (largest_work.wire * largest.bytes);

  std::vector<FitParameter> parameters{{"alpha", "s", 1e-5, 1.5}};
  for (std::size_t k = 0; k < fit.knots.size(); ++k) parameters.push_back({"beta", "s/B", beta, 2});
  std::set<int> ranks;
  for (const CollectiveTiming& p : points) ranks.insert(p.ranks);
  for (const int r : ranks) parameters.push_back({std::to_string(r), "", 1, r == *ranks.begin() ? 0 : 1.0});

  const auto take = [&](const std::vector<FittedParameter>& values) {
    fit.alpha = values[0];
    fit.betas.assign(values.begin() + 1, values.begin() + 1 + static_cast<std::ptrdiff_t>(fit.knots.size()));
    std::size_t next = 1 + fit.knots.size();
    for (const int r : ranks) fit.speed[r] = values[next++];
  };
  const LogErrors errors = [&](const std::vector<double>& values) {
    std::vector<FittedParameter> current;
    for (std::size_t i = 0; i < values.size(); ++i)
      current.push_back({parameters[i].name, parameters[i].unit, values[i], 0, 0});
    take(current);
    std::vector<double> out;
    for (const CollectiveTiming& p : points) out.push_back(std::log(fit.formula(p.ranks, p.bytes) / p.time.value));
    // Neighbours are expected to be alike, but a protocol may switch between them: the loss forgives single large
    // steps.
    const auto alike = [&](double a, double b) {
      out.push_back(std::log(a / b) * kNetworkErrorScale / kNeighbourSpread);
    };
    for (std::size_t k = 1; k < fit.betas.size(); ++k) alike(fit.betas[k].value, fit.betas[k - 1].value);
    for (auto it = std::next(fit.speed.begin()); it != fit.speed.end(); ++it)
      alike(it->second.value, std::prev(it)->second.value);
    return out;
  };
  take(fit_robustly(parameters, errors, kNetworkErrorScale).parameters);

  std::vector<InterpolationPoint> at;
  std::vector<double> residuals;
  for (const CollectiveTiming& p : points) {
    at.push_back(point_at(p.ranks, p.bytes));
    residuals.push_back(std::clamp(std::log(p.time.value / fit.formula(p.ranks, p.bytes)), -kLargestNetworkResidual,
                                   kLargestNetworkResidual));
  }
  interpolate_residuals(fit, fit_interpolation(at, residuals));
  return fit;
}

std::vector<CollectiveTiming> thin_out(const std::vector<CollectiveTiming>& points, int first) {
  std::vector<CollectiveTiming> sorted = points;
  std::ranges::sort(sorted, {}, [](const CollectiveTiming& p) { return std::tuple(p.ranks, p.bytes, p.time.value); });
  std::map<int, std::vector<CollectiveTiming>> by_ranks;
  std::size_t left = std::max<std::size_t>(sorted.size() / 3, 1);
  for (auto i = static_cast<std::size_t>(first); i < sorted.size() && left > 0; i += 3, --left)
    by_ranks[sorted[i].ranks].push_back(sorted[i]);
  std::vector<CollectiveTiming> out;
  for (const auto& [ranks, of] : by_ranks) {
    // The next measured size at or above each of so many evenly spaced ones, each once.
    const double ratio = of.back().bytes / of.front().bytes;
    std::size_t last = of.size();
    for (std::size_t i = 0; i < kSizesPerRanks; ++i) {
      const double wanted =
          of.front().bytes * std::pow(ratio, static_cast<double>(i) / (kSizesPerRanks - 1)) * (1 - 1e-9);
      const auto found = std::ranges::lower_bound(of, wanted, {}, &CollectiveTiming::bytes);
      const auto index = static_cast<std::size_t>(found - of.begin());
      if (index == last || index == of.size()) continue;
      out.push_back(of[index]);
      last = index;
    }
  }
  return out;
}

namespace {

/// The rival: one alpha and one beta for all sizes and rank counts, by the same robust regression.
class OneLine {
 public:
  explicit OneLine(const std::vector<CollectiveTiming>& points) {
    const std::vector<FitParameter> parameters{{"alpha", "s", 1e-5, 1.5}, {"beta", "s/B", 1e-10, 4}};
    const LogErrors errors = [&](const std::vector<double>& values) {
      take(values);
      std::vector<double> out;
      for (const CollectiveTiming& p : points) out.push_back(std::log(time(p) / p.time.value));
      return out;
    };
    take(fit_robustly(parameters, errors, kNetworkErrorScale).values());
  }
  double time(const CollectiveTiming& p) const {
    const RingWork work = ring_work(p.op, p.ranks);
    return work.steps * alpha_ + work.wire * p.bytes * beta_;
  }

 private:
  void take(const std::vector<double>& values) {
    alpha_ = values[0];
    beta_ = values[1];
  }
  double alpha_ = 0, beta_ = 0;
};

NetworkQuality test_held_out(const std::vector<CollectiveTiming>& group, double gamma) {
  const bool any_large = std::ranges::any_of(group, [](const CollectiveTiming& p) { return p.bytes >= kLarge; });
  NetworkQuality quality;
  quality.points = static_cast<int>(group.size());
  std::vector<double> errors;
  std::vector<double> plain;
  for (int first = 0; first < 3; ++first) {
    const std::vector<CollectiveTiming> part = thin_out(group, first);
    if (part.empty()) continue;
    const NetworkFit fit = fit_network(part, gamma);
    const OneLine line(part);
    std::set<std::tuple<int, double, double>> used;
    for (const CollectiveTiming& p : part) used.emplace(p.ranks, p.bytes, p.time.value);
    for (const CollectiveTiming& p : group) {
      if (used.contains({p.ranks, p.bytes, p.time.value}) || (any_large && p.bytes < kLarge)) continue;
      errors.push_back(std::abs(fit.time(p.ranks, p.bytes) / p.time - 1));
      plain.push_back(std::abs(line.time(p) / p.time.value - 1));
    }
    quality.fitted = std::max(quality.fitted, static_cast<int>(part.size()));
  }
  quality.held_out = static_cast<int>(errors.size());
  quality.error = quantile(errors, 0.5);
  quality.ninetieth = quantile(errors, 0.9);
  quality.alpha_beta = quantile(plain, 0.5);
  return quality;
}

NetworkFit fit_across_nodes(const std::vector<CollectiveTiming>& group) {
  NetworkFit fit;
  fit.op = group.front().op;
  fit.library = group.front().library;
  fit.points = group;
  for (const CollectiveTiming& p : group) fit.groups.push_back({{p.ranks, p.nodes}, p.bytes, p.time});
  fit.protocols = fit_protocols(fit.op, fit.groups);
  return fit;
}

/// By groups that were left out; of a single group nothing is known. REQUIRES: its settings are related.
void test_across_nodes(NetworkFit& fit) {
  const std::vector<double> errors = left_out_errors(fit.op, fit.groups, fit.other_settings);
  std::vector<double> large, small;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (fit.groups[i].bytes >= kLarge)
      large.push_back(errors[i]);
    else
      small.push_back(errors[i]);
  }
  fit.quality.points = fit.quality.fitted = static_cast<int>(fit.groups.size());
  fit.quality.held_out = static_cast<int>(large.size());
  fit.quality.error = quantile(large, 0.5);
  fit.quality.ninetieth = quantile(large, 0.9);
  fit.quality.small = quantile(small, 0.5);
}

}  // namespace

void relate_settings(std::vector<NetworkFit>& fits) {
  for (NetworkFit& fit : fits) {
    fit.other_settings.clear();
    for (const NetworkFit& other : fits)
      if (&other != &fit && other.op == fit.op && other.protocols)
        fit.other_settings.push_back({other.groups, same_but_for_version(fit.library, other.library)});
  }
}

std::vector<NetworkFit> fit_networks(const std::vector<CollectiveTiming>& points, double gamma) {
  constexpr std::size_t kFewEnough = 500;  // to fit all of them
  std::map<std::pair<CollectiveOp, std::string>, std::vector<CollectiveTiming>> groups;
  for (const CollectiveTiming& p : points) groups[{p.op, p.library}].push_back(p);
  std::vector<NetworkFit> fits;
  for (const auto& [key, group] : groups) {
    if (std::ranges::any_of(group, [](const CollectiveTiming& p) { return p.nodes > 1; })) {
      fits.push_back(fit_across_nodes(group));
      continue;
    }
    fits.push_back(fit_network(group.size() > kFewEnough ? thin_out(group, 0) : group, gamma));
    fits.back().quality = test_held_out(group, gamma);
  }
  relate_settings(fits);
  for (NetworkFit& fit : fits)
    if (fit.protocols) test_across_nodes(fit);
  return fits;
}

}  // namespace epocast
