#include "costmodels/borrowed_fits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace epocast {
namespace {

FittedParameter times(FittedParameter p, double factor) {
  p.value *= factor;
  p.low *= factor;
  p.high *= factor;
  return p;
}

/// Geometric mean of own over other factors of the classes that both have; 1 if there is none. Of kernels that only
/// move data additions alone, if both have them: they stream, while the rates of norms and the like hang on who wrote
/// them.
double class_ratio(const KernelFit& own, const KernelFit& other) {
  if (own.family == "memory")
    if (const FittedParameter* mine = own.find_class("add"), *theirs = other.find_class("add"); mine && theirs)
      return mine->value / theirs->value;
  double sum = 0;
  int common = 0;
  for (const auto& [name, factor] : own.class_factors)
    if (const FittedParameter* theirs = other.find_class(name)) {
      sum += std::log(factor.value / theirs->value);
      ++common;
    }
  return common > 0 ? std::exp(sum / common) : 1;
}

/// By which the other's class factors are multiplied to mean the same rates with the own efficiency.
double efficiency_ratio(const KernelFit& own, const KernelFit& other) {
  const auto of = [](const KernelFit& fit) {
    return std::ranges::find(fit.parameters, "memory_efficiency", &FittedParameter::name)->value;
  };
  return of(other) / of(own);
}

/// Of a class whose kernels only move data: of many small kernels the launch, or what else is not bytes, shapes the
/// fitted factor; what is borrowed is for the large ones that a step waits for. The median of the measured ones, each
/// with the weight of its bytes.
FittedParameter factor_by_bytes(const KernelFit& fit, const std::string& kernel_class, const FittedParameter& factor,
                                const DeviceRates& rates) {
  std::vector<std::pair<double, double>> measured;  // factor, bytes
  double all = 0;
  for (const KernelTiming& point : fit.points) {
    const KernelWork work = kernel_work(point.shape);
    if (work.kernel_class != kernel_class) continue;
    measured.emplace_back(fit.physical_time(work, rates) / point.time.value, moved_bytes(work, rates));
    all += measured.back().second;
  }
  std::ranges::sort(measured);
  double below = 0;
  for (const auto& [ratio, bytes] : measured)
    if ((below += bytes) >= all / 2) return times(factor, ratio);
  return factor;
}

/// A pass of the family that both calibrations have.
std::pair<const KernelFit*, const KernelFit*> common_pass(const ComputeCalibration& own,
                                                          const ComputeCalibration& other, const std::string& family) {
  for (const KernelFit& fit : own.fits)
    if (fit.family == family)
      if (const KernelFit* theirs = other.find(family, fit.pass)) return {&fit, theirs};
  return {nullptr, nullptr};
}

KernelFit borrow(const KernelFit& missing, const ComputeCalibration& own, const ComputeCalibration& other,
                 const std::string& name) {
  KernelFit fit = missing;
  fit.borrowed_from = name;
  const auto [mine, theirs] = common_pass(own, other, missing.family);
  if (fit.family == "memory")
    for (auto& [kernel_class, factor] : fit.class_factors)
      factor = times(factor_by_bytes(missing, kernel_class, factor, other.rates),
                     mine != nullptr ? class_ratio(*mine, *theirs) : 1);
  fit.points.clear();
  fit.residuals = ResidualInterpolation({}, {}, {});
  fit.quality = {};
  if (mine != nullptr)
    for (std::size_t i = 0; i < fit.parameters.size(); ++i)
      fit.parameters[i] = times(fit.parameters[i], mine->parameters[i].value / theirs->parameters[i].value);
  return fit;
}

}  // namespace

bool are_of_same_device(const ComputeCalibration& own, const ComputeCalibration& other) {
  return own.device == other.device && own.rates.precision == other.rates.precision && other.scaled_from.empty();
}

std::string borrow_missing(ComputeCalibration& own, const ComputeCalibration& other, const std::string& name) {
  const bool as_they_are = are_of_same_device(own, other);
  std::vector<std::string> added;
  std::vector<KernelFit> borrowed;
  for (const KernelFit& theirs : other.fits) {
    if (theirs.family == "convolution" && own.rates.precision == Precision::fp8) continue;  // frameworks have none
    const auto mine = std::ranges::find_if(own.fits, [&](const KernelFit& fit) {
      return fit.family == theirs.family && (fit.pass == theirs.pass || fit.family == "gemm");
    });
    if (mine == own.fits.end()) {
      borrowed.push_back(as_they_are ? theirs : borrow(theirs, own, other, name));
      added.push_back(fmt::format("{} {}", theirs.family, to_string(theirs.pass)));
      continue;
    }
    // Kernels that move data share little but the memory; one implementation in place of another tells nothing of
    // others.
    const bool by_rates = as_they_are && theirs.family == "memory";
    const double ratio = by_rates ? efficiency_ratio(*mine, theirs) : class_ratio(*mine, theirs);
    for (const auto& [kernel_class, factor] : theirs.class_factors)
      if (mine->find_class(kernel_class) == nullptr) {
        const FittedParameter rate =
            theirs.family == "memory" ? factor_by_bytes(theirs, kernel_class, factor, other.rates) : factor;
        mine->class_factors.emplace_back(kernel_class, times(rate, ratio));
        added.push_back(fmt::format("{} {}", theirs.family, kernel_class));
      }
  }
  own.fits.insert(own.fits.end(), borrowed.begin(), borrowed.end());
  return fmt::format("{}", fmt::join(added, ", "));
}

}  // namespace epocast
