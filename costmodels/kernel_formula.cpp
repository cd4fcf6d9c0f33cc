#include "costmodels/kernel_formula.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace epocast {
namespace {

constexpr double kBytesPerWorkValue = 4;  // KernelWork::bytes counts fp32

double saturation(double x, double half) { return x / (x + half); }

double smooth_maximum(double a, double b) {
  const double longer = std::max(a, b);
  if (longer <= 0) return 0;
  const double ratio = std::min(a, b) / longer;
  return longer * std::sqrt(std::sqrt(1 + ratio * ratio * ratio * ratio));
}

double in_format(double bytes, const DeviceRates& rates) {
  return bytes * bytes_per_value(rates.precision) / kBytesPerWorkValue;
}

double roofs_time(std::span<const double> c, double class_factor, const KernelWork& w, const DeviceRates& rates) {
  const double overhead = c[0], efficiency = c[1], memory_efficiency = c[2];
  const double m_half = c[3], n_half = c[4], k_half = c[5], work_half = c[6];
  const double byte_time = in_format(w.bytes, rates) / (rates.memory_bandwidth.value * memory_efficiency);
  if (w.flop == 0) return (overhead * w.repeats + byte_time) / class_factor;
  const double reached = efficiency * class_factor * saturation(w.m, m_half) * saturation(w.n, n_half) *
                         saturation(w.k, k_half) * saturation(w.count * w.m * w.n / rates.units, work_half);
  return overhead * w.repeats + smooth_maximum(w.flop / (rates.peak_rate.value * reached), byte_time);
}

struct Tile {
  double rows, columns;
};
// Tiles that cuBLAS and CUTLASS have kernels of (CUTLASS, "Efficient GEMM in CUDA"); more of them fit no better.
constexpr std::array<Tile, 6> kTiles{Tile{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}};
constexpr std::array<double, 8> kCuts{1, 2, 3, 4, 6, 8, 12, 16};
constexpr double kStepDepth = 32;       // of k; tiles are loaded in slices of 32 or more
constexpr double kPartialSumBytes = 4;  // fp32
constexpr double kQuantiseBytes = 3;    // a 16-bit value read, an 8-bit one written

double tiles_time(std::span<const double> c, double class_factor, const KernelWork& w, const DeviceRates& rates) {
  const double overhead = c[0], efficiency = c[1], memory_efficiency = c[2], fill = c[3];
  const double on_chip = c[4], whole = c[5], split = c[6], quantise = c[7];
  const double result_bytes = bytes_per_value(rates.precision);  // fp8: 2, as only operands are rounded
  const double operand_bytes = rates.precision == Precision::fp8 ? 1 : result_bytes;
  const double of_unit = rates.peak_rate.value / rates.units * efficiency * class_factor;
  const double bandwidth = rates.memory_bandwidth.value * memory_efficiency;
  const double bytes = w.count * (operand_bytes * (w.m + w.n) * w.k + result_bytes * w.m * w.n);
  const double whole_share = whole / (1 + whole);
  double least = std::numeric_limits<double>::max();
  for (const Tile& tile : kTiles) {
    const double step = smooth_maximum(2 * tile.rows * tile.columns / of_unit,
                                       (tile.rows + tile.columns) * operand_bytes * rates.units / on_chip);
    const double tiles = w.count * std::ceil(w.m / tile.rows) * std::ceil(w.n / tile.columns);
    for (const double cuts : kCuts) {
      const double depth = std::ceil(w.k / cuts / kStepDepth) * kStepDepth;
      const double filled = tiles * cuts / rates.units;
      const double waves = std::max(1.0, whole_share * std::ceil(filled) + (1 - whole_share) * filled);
      const double partial = cuts > 1 ? split * kPartialSumBytes * w.count * w.m * w.n * cuts : 0;
      least = std::min(least, smooth_maximum(waves * (depth * step + fill), (bytes + partial) / bandwidth));
    }
  }
  double time = overhead + least;
  // The input's values: BLAS has samples as n (kernel_shape.hpp).
  if (rates.precision == Precision::fp8) time += quantise * kQuantiseBytes * w.count * w.n * w.k / bandwidth;
  return time;
}

constexpr double kQueryTile = 128;

double attention_time(std::span<const double> c, double class_factor, const KernelWork& w, const DeviceRates& rates) {
  const double overhead = c[0], efficiency = c[1], memory_efficiency = c[2], fill = c[3], score_time = c[4];
  const double busy =
      w.flop / (rates.peak_rate.value * efficiency * class_factor) + w.scores * score_time / rates.units;
  const double filled = w.count * std::ceil(w.m / kQueryTile) / rates.units;
  const double compute = busy * std::max(1.0, w.longest_row / filled) + std::ceil(filled) * fill;
  const double bandwidth = rates.memory_bandwidth.value * memory_efficiency;
  return overhead + smooth_maximum(compute, in_format(w.bytes, rates) / bandwidth) +
         in_format(w.copied_bytes, rates) / bandwidth;
}

}  // namespace

double moved_bytes(const KernelWork& work, const DeviceRates& rates) {
  return in_format(work.bytes + work.copied_bytes, rates);
}

KernelFormula kernel_formula(const std::string& family, Precision precision) {
  if (family == "attention") return KernelFormula::attention;
  return family == "gemm" && precision != Precision::fp32 ? KernelFormula::tiles : KernelFormula::roofs;
}

std::string kernel_class(const KernelWork& work, const DeviceRates& rates) {
  constexpr double kFedAtOnce = 16;
  const double multiple = work.row_unit * bytes_per_value(rates.precision);
  if (rates.precision == Precision::fp32 || multiple >= kFedAtOnce) return work.kernel_class;
  return fmt::format("{} {} B", work.kernel_class, multiple);
}

std::vector<FitParameter> kernel_parameters(const std::string& family, Precision precision) {
  // Expected values are engineering estimates; spreads are wide, so that a dozen points outweigh them.
  switch (kernel_formula(family, precision)) {
    case KernelFormula::tiles:
      // On-chip bandwidth: of A100's second-level cache as NVIDIA states it (5120 bytes per clock of 1.41 GHz).
      return {{"overhead", "s", 2e-6, 1},
              {"efficiency", "", 0.8, 0.4},
              {"memory_efficiency", "", 0.8, 0.4},
              {"fill", "s", 1e-6, 1.5},
              {"on_chip", "B/s", 7.2e12, 1},
              {"whole", "", 0.3, 1.5},
              {"split", "", 1, 1.5},
              {"quantise", "", 1, precision == Precision::fp8 ? 1.0 : 0.0}};
    case KernelFormula::attention:
      return {{"overhead", "s", 8e-6, 1},
              {"efficiency", "", 0.7, 0.4},
              {"memory_efficiency", "", 0.7, 0.4},
              {"fill", "s", 2e-6, 1.5},
              {"score_time", "s", 1.5e-11, 1.5}};
    case KernelFormula::roofs: break;
  }
  const bool computes = family != "memory";
  return {{"overhead", "s", 5e-6, 1},
          {"efficiency", "", 0.75, computes ? 0.4 : 0},
          {"memory_efficiency", "", 0.7, 0.4},
          {"m_half", "", 4, computes ? 2.0 : 0},
          {"n_half", "", 4, computes ? 2.0 : 0},
          {"k_half", "", 16, computes ? 2.0 : 0},
          {"work_half", "", 64, computes ? 2.0 : 0}};
}

double kernel_time(KernelFormula formula, std::span<const double> constants, double class_factor,
                   const KernelWork& work, const DeviceRates& rates) {
  switch (formula) {
    case KernelFormula::tiles: return tiles_time(constants, class_factor, work, rates);
    case KernelFormula::attention: return attention_time(constants, class_factor, work, rates);
    case KernelFormula::roofs: break;
  }
  return roofs_time(constants, class_factor, work, rates);
}

}  // namespace epocast
