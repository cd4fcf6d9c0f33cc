#pragma once
// The file that `epocast calibrate compute` writes and that studies name: `compute: {cost_model: fitted, calibration:
// v100}`.
//
//     calibration: compute
//     device: NVIDIA V100 (DGX-1)
//     source: ...                    # of the measurements; also library, date, confidence
//     precision: fp32                # or tf32, fp16, bf16, fp8: of the fits; peak_rate is of products in it
//     rates: {peak_rate: 15700 GFLOP/s, memory_bandwidth: 900 GB/s, units: 80}
//
//     fits:                          # one per operator and pass; see kernel_formula.hpp for the formulas
//       - operator: convolution
//
//         pass: forward
//
//         quality: {points: 94, shapes: 90, roofline_error: 0.284, physical_error: 0.0845, error: 0.088, ...}
//
//         parameters: {overhead: [1.6e-05, 1.3e-05, 2.1e-05], ...}      # value, ends of the 95 % interval; s
//
//         class_factors: {1x1: [0.985, 0.7, 1.4], ...}
//
//         interpolation: {amplitude: 0.12, noise: 0.034, lengths: [0.56, 1.6, 0.95, 2.8, 2.1, 1.3]}
//
//         points:                    # the measurements: shape, time in s
//           - [n=8 c=64 h=56 w=56 k=64 r=3 s=3 oh=56 ow=56 stride=1, 0.000106]
//
// A fit with `borrowed_from: NAME` instead of quality, interpolation and points is another device's, in proportion
// (borrowed_fits.hpp).
//
// A device that was not measured borrows another's fits at its own rates:
//
//     scaled_from: p100              # a calibration in the same folder
//     expected_error: 0.3            # median, as found where both devices were measured; left out if they never were
//     efficiency: 0.5                # of its nominal rates, where steps on both devices tell; 1 by default
//
// and `device`, `source`, `confidence`, `precision` and `rates` of its own. So does a format that was not measured:
// tf32 from bf16, at the rate of its products and with values of four bytes. Devices of the catalogue that say whose
// kernels theirs are like need no file: `calibration: auto` does the same for them, and for a card whose chip was
// measured on another card, with other memory or at other clocks.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "costmodels/kernel_fit.hpp"
#include "sim/cluster.hpp"
#include "sim/config.hpp"

namespace epocast {

struct ComputeCalibration {
  std::string device, source, library, date;
  std::string confidence;  ///< for people: how sure it is, and of what
  DeviceRates rates;
  std::vector<KernelFit> fits;
  std::string scaled_from;               ///< empty if measured on this device
  std::optional<double> expected_error;  ///< median relative error of a scaled calibration, where it is known
  double efficiency = 1;                 ///< of a scaled calibration: its rates over the device's nominal ones
  double product_share = 1;              ///< the same of products alone, beyond efficiency (Device::product_share)

  /// The fit for an operator family and pass, or null. A gemm fit serves all passes.
  const KernelFit* find(const std::string& family, KernelPass pass) const;
};

/// Throws ConfigError with file and line for anything that is not as described above.
ComputeCalibration load_compute_calibration(const std::filesystem::path& file);
ComputeCalibration read_compute_calibration(const ConfigNode& root);

/// Whether a calibration is of the very rates that a device has in `precision`, but for rounding (1 %).
bool has_rates_of(const Device& device, Precision precision, const ComputeCalibration& calibration);

/// The fits of a calibration, called `name`, at the nominal rates of another device in `precision`: shares of the
/// roofline, floors and what fits miss stay, but for the device's `product_share`. Its errors are those of scaling, see
/// docs/calibration.md. REQUIRES that the device's rate in `precision` is known.
ComputeCalibration at_rates_of(const Device& device, Precision precision, ComputeCalibration measured,
                               const std::string& name);

/// The file's text.
std::string to_yaml(const ComputeCalibration& calibration);

}  // namespace epocast
