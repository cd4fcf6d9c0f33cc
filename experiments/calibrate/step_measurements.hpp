#pragma once
// Measured training steps: a table whose rows change a study and say how long a step of it took.
//
//     # source: our cluster, PyTorch 2.1          (optional; also date and any number of note)
//     workers,batch.per_worker,strategy,iteration_s
//     1,32,data_parallel,0.412
//     4,32,,0.447                                 (empty: as the study has it)
//
// One column has the measurement: iteration_s, iteration_ms, iteration_us or samples_per_s. All others are study keys,
// as in --set.

#include <filesystem>
#include <string>
#include <vector>

#include "costmodels/csv_table.hpp"
#include "experiments/calibrate/step_calibration.hpp"
#include "experiments/scenario.hpp"

namespace epocast {

struct MeasuredStep {
  Scenario scenario;
  std::string settings;  ///< "workers=4, batch.per_worker=32"
  double seconds = 0;    ///< one iteration of every worker
  int line = 0;
  StepPlace place;
};

struct StepMeasurements {
  std::string study, source, date;
  std::vector<MeasuredStep> steps;
  StepRange range;
  std::vector<std::string> fitted;  ///< keys whose values the steps are to tell
};

/// Reads the table and checks each row's scenario. `fitted`: keys that no row may set; if empty, compute.scale,
/// compute.step_overhead and, with several workers, what these lose: stack.scale where the study names a stack, and
/// network.efficiency unless such a study gives it. Throws ConfigError with the table's file and line: for a missing or
/// unknown unit, duplicate rows, anything wrong with a row's scenario.
StepMeasurements read_step_measurements(const CsvTable& table, const std::filesystem::path& study,
                                        const std::vector<std::string>& fitted, const Registries& registries);

/// Platform, model, strategy, workers and batch of a scenario, for StepConstants::caveats() and computing().
StepRange range_of(const ScenarioSetup& setup);

}  // namespace epocast
