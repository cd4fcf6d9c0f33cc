#pragma once
// How long one kernel takes by formula: physical constants of a device and precision, applied to a kernel's work.
//
// Three formulas; which one a kernel has follows from its operator and precision.
//
// roofs (all of fp32 but fused attention; everything that is not a product in narrower formats):
//     time = overhead * repeats + (T_flop^4 + T_bytes^4)^(1/4)
//     T_flop = FLOP / (peak * efficiency * class factor * s(m, m_half) s(n, n_half) s(k, k_half)
//              s(count m n / units, work_half)),   s(x, half) = x / (x + half)
//     T_bytes = bytes / (bandwidth * memory_efficiency)
// A kernel without FLOP takes (overhead * repeats + T_bytes) / class factor: an operation that is slow by its bytes is
// several kernels or passes over them, each of which begins and ends.
//
// tiles (products in tf32, fp16, bf16 and fp8, which libraries compute tile by tile on the multiprocessors' matrix
// units):
//     time = overhead + min over tiles a x b and cuts s of k of (T_tiles^4 + T_bytes^4)^(1/4) + T_quantise
//     T_tiles = waves * (ceil32(k / s) * step + fill)
//     step = ((2 a b / (peak / units * efficiency * class factor))^4 + ((a + b) operand bytes / (on_chip /
//     units))^4)^(1/4) waves = max(1, q ceil(w) + (1 - q) w),   w = count ceil(m / a) ceil(n / b) s / units,   q =
//     whole / (1 + whole) T_bytes = (operands and result, and 4 m n s bytes of partial sums times `split` if s > 1)
//               / (bandwidth * memory_efficiency)
//     T_quantise = quantise * 3 bytes for each value of the input / (bandwidth * memory_efficiency), fp8 only
// `whole` says how much a last wave that is not full costs: 0 for persistent kernels, which spread it. `fill` is what a
// tile needs before its first and after its last step.
//
// Matrix units are fed 16 bytes at a time. Where rows do not begin at multiples of that, libraries fall back to older
// kernels: a class of their own for each multiple ("tn 2 B"), the class of other products where none was measured.
//
// attention (fused):
//     time = overhead + (T_compute^4 + T_bytes^4)^(1/4) + T_copied
//     T_compute = busy * max(1, longest row / w) + ceil(w) fill,   w = count ceil(m / 128) / units
//     busy = FLOP / (peak * efficiency * class factor) + scores * score_time / units
//
// References: Williams, Waterman, Patterson 2009, "Roofline" (the fourth-power sum is a smooth maximum); NVIDIA,
// "Matrix Multiplication Background User's Guide" (tiles, waves and their quantisation, split k, 16 bytes); Dao et al.
// 2022, "FlashAttention" (tiles of 128 queries).

#include <span>
#include <string>
#include <vector>

#include "costmodels/kernel_shape.hpp"
#include "costmodels/robust_fit.hpp"
#include "sim/precision.hpp"
#include "sim/quantity.hpp"

namespace epocast {

/// What a calibration needs to know of the device.
struct DeviceRates {
  FlopPerSecond peak_rate;  ///< of matrix products in `precision`
  BytesPerSecond memory_bandwidth;
  double units = 1;  ///< cores or multiprocessors
  Precision precision = Precision::fp32;
};

enum class KernelFormula { roofs, tiles, attention };

/// Kernels that share code on a device with these rates: KernelWork::kernel_class, and for products on matrix units
/// whose rows begin at multiples of 8 bytes or less, this multiple.
std::string kernel_class(const KernelWork& work, const DeviceRates& rates);

KernelFormula kernel_formula(const std::string& family, Precision precision);

/// Names, units, expected values and spreads of the formula's constants, in the order in which kernel_time() takes
/// them.
std::vector<FitParameter> kernel_parameters(const std::string& family, Precision precision);

/// Bytes that a kernel moves to and from memory, in the rates' precision.
double moved_bytes(const KernelWork& work, const DeviceRates& rates);

/// Seconds. REQUIRES as many constants as kernel_parameters() has for this family and precision.
double kernel_time(KernelFormula formula, std::span<const double> constants, double class_factor,
                   const KernelWork& work, const DeviceRates& rates);

}  // namespace epocast
