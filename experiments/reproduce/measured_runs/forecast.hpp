#pragma once
// Forecasts of measured runs, each from the baseline of its series.

#include "experiments/reproduce/measured_runs/runs_file.hpp"
#include "experiments/reproduce/target.hpp"

namespace epocast {

/// A baseline is an input, its series' runs are predicted. The trivial rule is linear scaling: samples per second in
/// proportion to workers. Computation is anchored by compute.step_time, which is sought until the baseline's simulated
/// run takes the measured time, however many devices it has. Throws ConfigError where no step time does, and what
/// simulate() throws.
std::vector<TargetRow> forecast(const RunsFile& file, const TargetContext& context);

/// A target as reproduce() wants it.
Target measured_target(RunsFile file);

}  // namespace epocast
