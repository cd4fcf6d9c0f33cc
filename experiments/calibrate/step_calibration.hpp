#pragma once
// Constants of whole training steps, fitted to measured ones: the file that `epocast calibrate steps` writes and a
// study names under `steps`.
//
//     calibration: steps
//     fitted_to: vgg16-skylake           # the study; also source and date, if known
//     quality: {points: 8, error: 0.012, left_out_error: 0.021, within_90: 0.045}
//     measured: {platforms: [skylake_10gbe], models: [vgg16], strategies: [data_parallel], workers: [1, 8],
//                batch: [16, 64]}
//     constants:
//       compute.scale: {value: 1.23, low: 1.2, high: 1.27}      # a study key: its value, ends of the 95 % interval
//       compute.step_overhead: {value: 0.0123 s, low: 0.01 s, high: 0.015 s}
//     discrepancy:                       # what the constants leave, see discrepancy.hpp; may be left out
//       - {platform: skylake_10gbe, model: vgg16, strategy: data_parallel, workers: 1, batch: 16, weight: -0.012}

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodels/robust_fit.hpp"
#include "experiments/calibrate/discrepancy.hpp"
#include "sim/config.hpp"

namespace epocast {

/// A study key whose value measured steps can tell.
struct StepConstant {
  std::string key;
  std::string unit;                     ///< "" or "s"
  double expected = 1;                  ///< where it lies if the steps say nothing (engineering estimate)
  double spread = 1;                    ///< standard deviation of its logarithm before seeing any
  bool divides = false;                 ///< a step's time is linear in 1 / value; else in the value
  double most = 1e300;                  ///< what a study may say
  std::vector<double> usual = {};       ///< values that it has unless the steps show that it has another
  std::optional<double> costless = {};  ///< with which, in all that have one, several workers lose nothing
};

/// compute.scale, compute.step_overhead, compute.kernel_overhead, network.efficiency, network.message_overhead, and
/// constants of the software stack that a study names: stack.scale for all of them together, or stack.spread,
/// stack.interference, stack.collective_overhead, stack.copies.
const std::vector<StepConstant>& step_constants();
/// Throws std::invalid_argument with the nearest key as a hint.
const StepConstant& find_step_constant(const std::string& key);
/// The value as a study file has it: "1.23", "0.0123 s".
std::string step_constant_text(const StepConstant& constant, double value);

/// What steps a calibration is made of.
struct StepRange {
  std::vector<std::string> platforms, models, strategies;  ///< sorted, each once
  std::array<std::int64_t, 2> workers{};                   ///< least and most
  std::array<double, 2> batch{};                           ///< the same, of one worker's batch

  /// Nothing where there are several.
  std::optional<StepPlace> place() const;
};

struct StepCalibration {
  std::string study, source, date;
  int points = 0;
  double error = 0;           ///< median of |predicted / measured - 1|
  double left_out_error = 0;  ///< the same, each step predicted from the others; 0 with a single one
  double within_90 = 0;       ///< |ln (predicted / true)| of nine of ten steps among these; 0: not known
  StepRange measured;
  std::vector<FittedParameter> constants;  ///< by study key
  Discrepancy discrepancy;
};

std::string to_yaml(const StepCalibration& calibration);

/// A calibration that a study names.
class StepConstants {
 public:
  /// Throws ConfigError with file and line for anything that is not as described above.
  explicit StepConstants(const ConfigNode& root, std::string name = "");

  /// The study's configuration with the constants in place. Throws ConfigError where it has one of its own.
  ConfigNode apply(const ConfigNode& config) const;
  /// How a scenario differs from what was measured; usually empty.
  std::vector<std::string> caveats(const StepRange& scenario) const;
  /// What the discrepancy makes of computing in a scenario: a factor; 1 where there is none, where compute.scale is
  /// not among the constants, or where the scenario is several, of which each would have its own.
  double computing(const StepRange& scenario) const;
  /// The study's `compute`, in which apply() has been, with compute.scale times that. Throws ConfigError where no
  /// study may have the product.
  ConfigNode computing(const ConfigNode& compute, const StepRange& scenario) const;
  /// |ln (forecast / true)| of nine of ten scenarios like this one; nothing where that is not known: it was not told,
  /// or the scenario differs from what was measured.
  std::optional<double> within_90(const StepRange& scenario) const;
  /// A sentence for `--explain` on the discrepancy; empty where it says nothing.
  std::string explanation(const StepRange& scenario) const;
  const StepCalibration& calibration() const { return calibration_; }

 private:
  struct Value {
    std::string key;
    ConfigNode node;
  };
  std::string name_;
  StepCalibration calibration_;
  const Value* scale() const;  ///< compute.scale, if it is among the constants

  std::vector<Value> values_;
};

}  // namespace epocast
