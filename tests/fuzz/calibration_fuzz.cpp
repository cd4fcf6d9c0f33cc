// Fuzz target: any bytes either load as a calibration (of kernels, of a network, of steps), or throw ConfigError; what
// loads predicts times. Links with clang's -fsanitize=fuzzer or with driver.cpp.

#include <cstddef>
#include <cstdint>
#include <string>

#include "costmodels/compute_calibration.hpp"
#include "costmodels/network_calibration.hpp"
#include "experiments/calibrate/step_calibration.hpp"
#include "sim/error.hpp"
#include "tests/fuzz/property.hpp"

using namespace epocast;
using fuzz::attempt;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  attempt([&] {
    const ComputeCalibration calibration = read_compute_calibration(ConfigNode::load_text(text, "fuzz.yaml"));
    for (const KernelFit& fit : calibration.fits)
      if (!fit.points.empty())
        require(fit.time(kernel_work(fit.points.front().shape), calibration.rates) >= 0,
                "predicted times are not negative");
  });
  attempt([&] {
    const NetworkCalibration calibration = read_network_calibration(ConfigNode::load_text(text, "fuzz.yaml"));
    for (const NetworkFit& fit : calibration.fits)
      require(fit.time(2, 1e6).value >= 0, "predicted times are not negative");
  });
  attempt([&] {
    const StepConstants constants(ConfigNode::load_text(text, "fuzz.yaml"));
    require(!constants.calibration().constants.empty(), "a calibration has constants");
    constants.apply(ConfigNode::load_text("study: s", "study.yaml"));
    for (const Discrepancy::Pull& pull : constants.calibration().discrepancy.pulls())
      require(constants.calibration().discrepancy.factor(pull.place) >= 0, "factors are not negative");
  });
  return 0;
}
