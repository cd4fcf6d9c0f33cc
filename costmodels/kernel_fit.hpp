#pragma once
// The compute model of `fitted`: how long one kernel takes on one device, fitted to measured kernels.
//
//     time = kernel_time(constants, class factor) * exp(interpolated residual)      (kernel_formula.hpp)
//
// One set of constants for each operator family and pass. A kernel is seen as the matrix product m x k by k x n it
// amounts to: short sides waste register tiles, a short k does not amortise loading them, and too few results leave
// cores idle. Class factors above 1 are fast algorithms (Winograd, FFT), which need fewer FLOP than the direct one that
// is counted.
//
// Scope and limits: one device, one precision, one library version. Near measured shapes the residual is interpolated
// between them (residual_interpolation.hpp), for kernels that only move data between those of the same operation; far
// from them the formula alone stands. Large tables are thinned to 600 points, and those by which the interpolation's
// lengths are fitted to 250. Validation:
// docs/calibration.md, tests/published/calibration_test.cpp (leave-one-shape-out on DeepBench),
// tests/published/half_precision_test.cpp (whole pairs of inputs and outputs left out).

#include <string>
#include <vector>

#include "costmodels/kernel_formula.hpp"
#include "costmodels/kernel_shape.hpp"
#include "costmodels/residual_interpolation.hpp"
#include "costmodels/robust_fit.hpp"
#include "sim/quantity.hpp"

namespace epocast {

struct KernelTiming {
  KernelShape shape;
  Seconds time;
  int line = 0;         ///< in the file it came from
  int repetitions = 0;  ///< runs that `time` is the median of; 0 if nobody said
  double spread = 0;    ///< of those, interquartile range over median
};

/// How well a fit predicts shapes that it has not seen: medians of |predicted / measured - 1|.
struct FitQuality {
  int points = 0;
  int shapes = 0;        ///< distinct ones, which were left out one at a time
  double roofline = 0;   ///< of a roofline with one fitted efficiency, for comparison
  double physical = 0;   ///< of the formula without interpolation
  double final = 0;      ///< of the whole
  double ninetieth = 0;  ///< 90th percentile of the whole
};

/// Of products: how large those were that were measured.
struct MeasuredSizes {
  struct Range {
    double low = 1e300, high = 0;
    void take(double size);
    bool is_near(double size) const { return size >= low / 2 && size <= high * 2; }
  };
  Range m, n, k;
};

/// The model of one operator family and pass (gemm: all passes, since the transposition tells them apart).
struct KernelFit {
  std::string family;
  KernelPass pass = KernelPass::forward;
  std::vector<FittedParameter> parameters;                             ///< kernel_parameters() in their order
  std::vector<std::pair<std::string, FittedParameter>> class_factors;  ///< by kernel_class()
  ResidualInterpolation residuals{{}, {}, {}};
  std::vector<KernelTiming> points;  ///< what it was fitted to; of large tables those that residuals need
  FitQuality quality;
  std::string borrowed_from;  ///< a calibration of another device (borrowed_fits.hpp); empty if measured on this one

  /// None if no kernel of the class was measured, which is called as kernel_class() does.
  const FittedParameter* find_class(const std::string& name) const;
  /// Time by the formula alone.
  double physical_time(const KernelWork& work, const DeviceRates& rates) const;
  /// Whether m, n or k lies more than a factor 2 outside what was measured, or nothing of the kernel's class was; what
  /// is borrowed lies outside.
  bool extrapolates(const KernelWork& work, const DeviceRates& rates) const {
    return extrapolates(work, measured_sizes(), rates);
  }
  bool extrapolates(const KernelWork& work, const MeasuredSizes& sizes, const DeviceRates& rates) const;
  MeasuredSizes measured_sizes() const;
  /// Time with the interpolated residual.
  double time(const KernelWork& work, const DeviceRates& rates) const;
};

/// Sets `residuals` from `points`, given the constants. REQUIRES settings with a length for each coordinate.
void interpolate_residuals(KernelFit& fit, const DeviceRates& rates, const InterpolationSettings& settings);

/// Fits points that are all of one family and (but for gemm) pass. REQUIRES at least one.
KernelFit fit_kernels(const std::vector<KernelTiming>& points, const DeviceRates& rates);

/// What cross-validation predicted for one measurement without having seen its shape.
struct HeldOut {
  KernelTiming timing;
  double roofline = 0, physical = 0, final = 0;  ///< [s]
};

/// Leaves out each distinct shape in turn (for gemm, all transpositions of m, n, k; for the others, all repetitions),
/// refits the constants without it and predicts it. Length scales come from eight fits that each leave out an eighth of
/// the shapes, among them the one predicted; where there are more than 120 shapes, these eight predict as well. The
/// rival roofline has one efficiency, refitted alike for the least median error, 0.8 of the memory bandwidth and no
/// overhead. With Grouping::layer, all batch sizes of a layer (of attention, all batch sizes and lengths) are left out
/// together, which is harder.
enum class Grouping { shape, layer };
std::vector<HeldOut> cross_validate(const std::vector<KernelTiming>& points, const DeviceRates& rates,
                                    Grouping grouping = Grouping::shape);

FitQuality quality_of(const std::vector<HeldOut>& held_out);

/// A fit with its test.
struct TestedFit {
  KernelFit fit;
  std::vector<HeldOut> held_out;
};

/// Groups by family and pass, fits and cross-validates each: fused attention and products in narrower formats than fp32
/// with whole layers left out, others shape by shape.
std::vector<TestedFit> fit_all(const std::vector<KernelTiming>& points, const DeviceRates& rates);

}  // namespace epocast
