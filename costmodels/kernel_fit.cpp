#include "costmodels/kernel_fit.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>

#include "sim/quantile.hpp"

namespace epocast {
namespace {

constexpr double kErrorScale = 0.15;  // of ln time; errors beyond it count less and less
constexpr double kLargestResidual =
    1;                                // of ln time; a kernel 2.7 times off is an outlier, not a neighbour to learn from
constexpr double kClassSpread = 0.7;  // of ln class factor before seeing data

struct Constants {
  double overhead, efficiency, memory_efficiency, m_half, n_half, k_half, work_half;
};

Constants constants(std::span<const double> v) { return {v[0], v[1], v[2], v[3], v[4], v[5], v[6]}; }

double saturation(double x, double half) { return x / (x + half); }

double formula(const Constants& c, double class_factor, const KernelWork& w, const DeviceRates& rates) {
  const double byte_time = w.bytes / (rates.memory_bandwidth.value * c.memory_efficiency);
  double busy = byte_time / class_factor;
  if (w.flop > 0) {
    const double efficiency = c.efficiency * class_factor * saturation(w.m, c.m_half) * saturation(w.n, c.n_half) *
                              saturation(w.k, c.k_half) * saturation(w.count * w.m * w.n / rates.units, c.work_half);
    const double flop_time = w.flop / (rates.peak_rate.value * efficiency);
    const double longer = std::max(flop_time, byte_time);
    const double ratio = std::min(flop_time, byte_time) / longer;
    busy = longer * std::sqrt(std::sqrt(1 + ratio * ratio * ratio * ratio));
  }
  return c.overhead * w.repeats + busy;
}

struct Prepared {
  KernelWork work;
  double log_time = 0;
};

std::vector<Prepared> prepare(const std::vector<KernelTiming>& points) {
  std::vector<Prepared> out;
  for (const KernelTiming& p : points) out.push_back({kernel_work(p.shape), std::log(p.time.value)});
  return out;
}

/// Fits the constants and class factors only.
KernelFit fit_physical(const std::vector<KernelTiming>& points, const DeviceRates& rates) {
  KernelFit fit;
  fit.family = points.front().shape.family();
  fit.pass = points.front().shape.pass;
  const std::vector<Prepared> data = prepare(points);
  std::vector<FitParameter> parameters = kernel_parameters(fit.family);
  const std::size_t common = parameters.size();
  std::map<std::string, std::size_t> classes;
  for (const Prepared& p : data) classes.emplace(p.work.kernel_class, 0);
  for (auto& [name, index] : classes) {
    index = parameters.size();
    // With a single class its factor could not be told from the efficiency.
    parameters.push_back({name, "", 1, classes.size() > 1 ? kClassSpread : 0});
  }
  const LogErrors errors = [&](const std::vector<double>& values) {
    const Constants c = constants(values);
    std::vector<double> out;
    out.reserve(data.size());
    for (const Prepared& p : data)
      out.push_back(std::log(formula(c, values[classes.at(p.work.kernel_class)], p.work, rates)) - p.log_time);
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
  std::vector<Coordinates> at;
  std::vector<double> values;
};

Residuals residuals_of(const KernelFit& fit, const DeviceRates& rates) {
  Residuals out;
  for (const KernelTiming& p : fit.points) {
    KernelWork work = kernel_work(p.shape);
    const double residual = std::log(p.time.value / fit.physical_time(work, rates));
    out.values.push_back(std::clamp(residual, -kLargestResidual, kLargestResidual));
    out.at.push_back(std::move(work.features));
  }
  return out;
}

}  // namespace

std::vector<FitParameter> kernel_parameters(const std::string& family) {
  // Expected values are engineering estimates; spreads are wide, so that a dozen points outweigh them.
  const bool computes = family != "memory";
  return {{"overhead", "s", 5e-6, 1},
          {"efficiency", "", 0.75, computes ? 0.4 : 0},
          {"memory_efficiency", "", 0.7, 0.4},
          {"m_half", "", 4, computes ? 2.0 : 0},
          {"n_half", "", 4, computes ? 2.0 : 0},
          {"k_half", "", 16, computes ? 2.0 : 0},
          {"work_half", "", 64, computes ? 2.0 : 0}};
}

double KernelFit::physical_time(const KernelWork& work, const DeviceRates& rates) const {
  std::vector<double> values;
  for (const FittedParameter& p : parameters) values.push_back(p.value);
  double factor = 1;
  for (const auto& [name, value] : class_factors)
    if (name == work.kernel_class) factor = value.value;
  return formula(constants(values), factor, work, rates);
}

bool KernelFit::extrapolates(const KernelWork& work) const {
  const auto outside = [&](auto size) {
    double low = 1e300;
    double high = 0;
    for (const KernelTiming& p : points) {
      const double measured = size(kernel_work(p.shape));
      low = std::min(low, measured);
      high = std::max(high, measured);
    }
    return size(work) < low / 2 || size(work) > high * 2;
  };
  const bool known = std::ranges::any_of(class_factors, [&](const auto& c) { return c.first == work.kernel_class; });
  return !known || outside([](const KernelWork& w) { return w.m; }) ||
         outside([](const KernelWork& w) { return w.n; }) || outside([](const KernelWork& w) { return w.k; });
}

double KernelFit::time(const KernelWork& work, const DeviceRates& rates) const {
  return physical_time(work, rates) * std::exp(residuals.mean(work.features));
}

void interpolate_residuals(KernelFit& fit, const DeviceRates& rates, const InterpolationSettings& settings) {
  Residuals r = residuals_of(fit, rates);
  fit.residuals = ResidualInterpolation(settings, std::move(r.at), std::move(r.values));
}

KernelFit fit_kernels(const std::vector<KernelTiming>& points, const DeviceRates& rates) {
  KernelFit fit = fit_physical(points, rates);
  const Residuals r = residuals_of(fit, rates);
  interpolate_residuals(fit, rates, fit_interpolation(r.at, r.values));
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
  return shape.text();
}

double roofline(const KernelWork& w, const DeviceRates& rates, double efficiency) {
  return std::max(w.flop / (efficiency * rates.peak_rate.value), w.bytes / (0.8 * rates.memory_bandwidth.value));
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
  for (std::size_t block = 0; block < std::min(kBlocks, shapes.size()); ++block) {
    std::set<std::size_t> of_block;
    for (std::size_t s = block; s < shapes.size(); s += kBlocks) of_block.insert(shapes[s].begin(), shapes[s].end());
    const std::vector<KernelTiming> outside = without(of_block);
    if (outside.empty()) continue;  // a single shape: nothing to learn from
    const InterpolationSettings settings = fit_kernels(outside, rates).residuals.settings();
    for (std::size_t s = block; s < shapes.size(); s += kBlocks) {
      const std::vector<KernelTiming> kept = without({shapes[s].begin(), shapes[s].end()});
      KernelFit fit = fit_physical(kept, rates);
      interpolate_residuals(fit, rates, settings);
      const double efficiency = best_efficiency(kept, rates);
      for (const std::size_t i : shapes[s]) {
        const KernelWork work = kernel_work(points[i].shape);
        results[i] = {points[i], roofline(work, rates, efficiency), fit.physical_time(work, rates),
                      fit.time(work, rates)};
      }
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
    out.push_back({fit_kernels(members, rates), cross_validate(members, rates)});
    out.back().fit.quality = quality_of(out.back().held_out);
  }
  return out;
}

}  // namespace epocast
