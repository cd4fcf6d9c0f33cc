#include "costmodels/kernel_fit.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "sim/quantile.hpp"

namespace epocast {
namespace {

constexpr double kErrorScale = 0.15;  // of ln time; errors beyond it count less and less
constexpr double kLargestResidual =
    1;                                // of ln time; a kernel 2.7 times off is an outlier, not a neighbour to learn from
constexpr double kClassSpread = 0.7;  // of ln class factor before seeing data

constexpr std::size_t kMostPoints = 600;
constexpr std::size_t kMostForLengths = 250;  // cost grows with their cube, many times over

/// At most so many, evenly spread over the shapes of each kind in the order of their sizes.
std::vector<KernelTiming> spread_out(std::vector<KernelTiming> points, std::size_t most) {
  if (points.size() <= most) return points;
  std::ranges::stable_sort(points, {}, [](const KernelTiming& p) {
    const KernelWork w = kernel_work(p.shape);
    return std::tuple(w.kind, w.m, w.k, w.n, w.count, w.bytes);
  });
  std::vector<KernelTiming> out;
  for (std::size_t i = 0; i < most; ++i) out.push_back(points[i * (points.size() - 1) / (most - 1)]);
  return out;
}

struct Prepared {
  KernelWork work;
  std::string kernel_class;
  double log_time = 0;
};

std::vector<Prepared> prepare(const std::vector<KernelTiming>& points, const DeviceRates& rates) {
  std::vector<Prepared> out;
  for (const KernelTiming& p : points) {
    KernelWork work = kernel_work(p.shape);
    std::string name = kernel_class(work, rates);
    out.push_back({std::move(work), std::move(name), std::log(p.time.value)});
  }
  return out;
}

/// Fits the constants and class factors only.
KernelFit fit_physical(const std::vector<KernelTiming>& all, const DeviceRates& rates) {
  const std::vector<KernelTiming> points = spread_out(all, kMostPoints);
  KernelFit fit;
  fit.family = points.front().shape.family();
  fit.pass = points.front().shape.pass;
  const std::vector<Prepared> data = prepare(points, rates);
  std::vector<FitParameter> parameters = kernel_parameters(fit.family, rates.precision);
  const std::size_t common = parameters.size();
  std::map<std::string, std::size_t> classes;
  for (const Prepared& p : data) classes.emplace(p.kernel_class, 0);
  for (auto& [name, index] : classes) {
    index = parameters.size();
    // With a single class its factor could not be told from the efficiency.
    parameters.push_back({name, "", 1, classes.size() > 1 ? kClassSpread : 0});
  }
  const KernelFormula formula = kernel_formula(fit.family, rates.precision);
  const LogErrors errors = [&](const std::vector<double>& values) {
    const std::span<const double> c(values.data(), common);
    std::vector<double> out;
    out.reserve(data.size());
    for (const Prepared& p : data)
      out.push_back(std::log(kernel_time(formula, c, values[classes.at(p.kernel_class)], p.work, rates)) - p.log_time);
    return out;
  };
  RobustFit robust = fit_robustly(parameters, errors, kErrorScale);
  for (std::size_t i = common; i < parameters.size(); ++i)
    fit.class_factors.emplace_back(parameters[i].name, robust.parameters[i]);
  robust.parameters.resize(common);
  fit.parameters = std::move(robust.parameters);
  fit.points = points;
  return fit;
}

struct Residuals {
  std::vector<InterpolationPoint> at;
  std::vector<double> values;
};

InterpolationPoint point_of(const KernelWork& work) { return {work.features, work.kind}; }

Residuals residuals_of(const KernelFit& fit, const std::vector<KernelTiming>& points, const DeviceRates& rates) {
  Residuals out;
  for (const KernelTiming& p : points) {
    const KernelWork work = kernel_work(p.shape);
    const double residual = std::log(p.time.value / fit.physical_time(work, rates));
    out.values.push_back(std::clamp(residual, -kLargestResidual, kLargestResidual));
    out.at.push_back(point_of(work));
  }
  return out;
}

}  // namespace

double KernelFit::physical_time(const KernelWork& work, const DeviceRates& rates) const {
  std::vector<double> values;
  for (const FittedParameter& p : parameters) values.push_back(p.value);
  double factor = 1;
  const FittedParameter* own = find_class(kernel_class(work, rates));
  if (own == nullptr) own = find_class(work.kernel_class);
  if (own != nullptr) factor = own->value;
  return kernel_time(kernel_formula(family, rates.precision), values, factor, work, rates);
}

void MeasuredSizes::Range::take(double size) {
  low = std::min(low, size);
  high = std::max(high, size);
}

MeasuredSizes KernelFit::measured_sizes() const {
  MeasuredSizes sizes;
  for (const KernelTiming& p : points) {
    const KernelWork work = kernel_work(p.shape);
    sizes.m.take(work.m);
    sizes.n.take(work.n);
    sizes.k.take(work.k);
  }
  return sizes;
}

const FittedParameter* KernelFit::find_class(const std::string& name) const {
  for (const auto& [known, factor] : class_factors)
    if (known == name) return &factor;
  return nullptr;
}

bool KernelFit::extrapolates(const KernelWork& work, const MeasuredSizes& sizes, const DeviceRates& rates) const {
  if (points.empty()) return true;
  const bool known = find_class(kernel_class(work, rates)) != nullptr;
  return !known || !sizes.m.is_near(work.m) || !sizes.n.is_near(work.n) || !sizes.k.is_near(work.k);
}

double KernelFit::time(const KernelWork& work, const DeviceRates& rates) const {
  const double formula = physical_time(work, rates);
  return points.empty() ? formula : formula * std::exp(residuals.mean(point_of(work)));
}

void interpolate_residuals(KernelFit& fit, const DeviceRates& rates, const InterpolationSettings& settings) {
  Residuals r = residuals_of(fit, fit.points, rates);
  fit.residuals = ResidualInterpolation(settings, std::move(r.at), std::move(r.values));
}

KernelFit fit_kernels(const std::vector<KernelTiming>& points, const DeviceRates& rates) {
  KernelFit fit = fit_physical(points, rates);
  const Residuals r = residuals_of(fit, spread_out(fit.points, kMostForLengths), rates);
  interpolate_residuals(fit, rates, fit_interpolation(r.at, r.values, kernel_work(points.front().shape).amounts));
  return fit;
}

namespace {

/// Equal for timings that are left out together.
std::string group_of(KernelShape shape, Grouping grouping) {
  const bool layer = grouping == Grouping::layer;
  if (auto* gemm = std::get_if<GemmShape>(&shape.of)) {
    *gemm = {gemm->m, layer ? 1 : gemm->n, gemm->k, false, false};
    shape.pass = KernelPass::forward;
  }
  if (auto* convolution = std::get_if<ConvolutionShape>(&shape.of); convolution != nullptr && layer)
    convolution->batch = 1;
  if (auto* recurrent = std::get_if<RecurrentShape>(&shape.of); recurrent != nullptr && layer)
    recurrent->batch = recurrent->steps = 1;
  if (auto* attention = std::get_if<AttentionShape>(&shape.of); attention != nullptr && layer)
    attention->batch = attention->queries = attention->keys = 1;
  return shape.text();
}

double roofline(const KernelWork& w, const DeviceRates& rates, double efficiency) {
  return std::max(w.flop / (efficiency * rates.peak_rate.value),
                  moved_bytes(w, rates) / (0.8 * rates.memory_bandwidth.value));
}

/// The one efficiency of the least median error over these points, from a fine grid.
double best_efficiency(const std::vector<KernelTiming>& points, const DeviceRates& rates) {
  std::vector<KernelWork> works;
  for (const KernelTiming& p : points) works.push_back(kernel_work(p.shape));
  double best = 1;
  double least = 1e300;
  for (double efficiency = 0.02; efficiency < 3; efficiency *= 1.02) {
    std::vector<double> errors;
    for (std::size_t i = 0; i < points.size(); ++i)
      errors.push_back(std::abs(roofline(works[i], rates, efficiency) / points[i].time.value - 1));
    if (const double error = median(std::move(errors)); error < least) {
      least = error;
      best = efficiency;
    }
  }
  return best;
}

}  // namespace

std::vector<HeldOut> cross_validate(const std::vector<KernelTiming>& points, const DeviceRates& rates,
                                    Grouping grouping) {
  constexpr std::size_t kBlocks = 8;
  constexpr std::size_t kManyShapes = 120;
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < points.size(); ++i) groups[group_of(points[i].shape, grouping)].push_back(i);
  std::vector<std::vector<std::size_t>> shapes;
  for (auto& [text, members] : groups) shapes.push_back(std::move(members));

  const auto without = [&](const std::set<std::size_t>& out) {
    std::vector<KernelTiming> kept;
    for (std::size_t i = 0; i < points.size(); ++i)
      if (!out.contains(i)) kept.push_back(points[i]);
    return kept;
  };
  std::vector<HeldOut> results(points.size());
  const auto predict = [&](const KernelFit& fit, double efficiency, std::size_t shape) {
    for (const std::size_t i : shapes[shape]) {
      const KernelWork work = kernel_work(points[i].shape);
      results[i] = {points[i], roofline(work, rates, efficiency), fit.physical_time(work, rates),
                    fit.time(work, rates)};
    }
  };
  for (std::size_t block = 0; block < std::min(kBlocks, shapes.size()); ++block) {
    std::set<std::size_t> of_block;
    for (std::size_t s = block; s < shapes.size(); s += kBlocks) of_block.insert(shapes[s].begin(), shapes[s].end());
    const std::vector<KernelTiming> outside = without(of_block);
    if (outside.empty()) continue;  // a single shape: nothing to learn from
    const KernelFit of_others = fit_kernels(outside, rates);
    const double efficiency = best_efficiency(outside, rates);
    for (std::size_t s = block; s < shapes.size(); s += kBlocks) {
      if (shapes.size() > kManyShapes) {
        predict(of_others, efficiency, s);
        continue;
      }
      const std::vector<KernelTiming> kept = without({shapes[s].begin(), shapes[s].end()});
      KernelFit fit = fit_physical(kept, rates);
      interpolate_residuals(fit, rates, of_others.residuals.settings());
      predict(fit, best_efficiency(kept, rates), s);
    }
  }
  std::erase_if(results, [](const HeldOut& h) { return h.final == 0; });
  return results;
}

FitQuality quality_of(const std::vector<HeldOut>& held_out) {
  std::vector<double> rival, physical, final;
  std::set<std::string> shapes;
  for (const HeldOut& h : held_out) {
    rival.push_back(std::abs(h.roofline / h.timing.time.value - 1));
    physical.push_back(std::abs(h.physical / h.timing.time.value - 1));
    final.push_back(std::abs(h.final / h.timing.time.value - 1));
    shapes.insert(group_of(h.timing.shape, Grouping::shape));
  }
  return {.points = static_cast<int>(held_out.size()),
          .shapes = static_cast<int>(shapes.size()),
          .roofline = median(rival),
          .physical = median(physical),
          .final = median(final),
          .ninetieth = quantile(final, 0.9)};
}

std::vector<TestedFit> fit_all(const std::vector<KernelTiming>& points, const DeviceRates& rates) {
  std::map<std::pair<std::string, KernelPass>, std::vector<KernelTiming>> groups;
  for (const KernelTiming& p : points) {
    const std::string family = p.shape.family();
    groups[{family, family == "gemm" ? KernelPass::forward : p.shape.pass}].push_back(p);
  }
  std::vector<TestedFit> out;
  for (const auto& [key, members] : groups) {
    const bool of_layers = kernel_formula(key.first, rates.precision) != KernelFormula::roofs;
    out.push_back(
        {fit_kernels(members, rates), cross_validate(members, rates, of_layers ? Grouping::layer : Grouping::shape)});
    out.back().fit.quality = quality_of(out.back().held_out);
  }
  return out;
}

}  // namespace epocast
