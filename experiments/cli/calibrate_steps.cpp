#include "experiments/cli/calibrate_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "experiments/calibrate/step_report.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/cli/progress_line.hpp"
#include "experiments/fork_pool.hpp"
#include "experiments/run_study.hpp"
#include "experiments/store/record_writer.hpp"
#include "sim/file_output.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

void check_constants(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    try {
      find_step_constant(key);
    } catch (const std::invalid_argument& problem) {
      throw ConfigError(std::string("--fit: ") + problem.what());
    }
    if (std::ranges::count(keys, key) > 1) throw ConfigError("--fit: '" + key + "' is named twice");
  }
}

/// Simulates steps in children, as `run` does.
class Simulator {
 public:
  Simulator(const StepMeasurements& measured, const std::vector<StepConstant>& constants, const Registries& registries,
            int jobs)
      : measured_(measured), constants_(constants), registries_(registries), jobs_(jobs) {}

  std::vector<double> operator()(const std::vector<StepTrial>& trials) {
    std::vector<Scenario> scenarios;
    for (const StepTrial& trial : trials) {
      Scenario scenario = measured_.steps[trial.step].scenario;
      for (std::size_t c = 0; c < trial.values.size(); ++c)
        scenario.settings.emplace_back(
            constants_[c].key,
            ConfigNode::load_text(step_constant_text(constants_[c], trial.values[c]), constants_[c].key));
      scenarios.push_back(std::move(scenario));
    }
    ProgressLine line(fmt::format("{} steps simulated", simulated_));
    const auto results = run_study(scenarios, registries_, {}, jobs_, line.observer());
    simulated_ += results.size();
    std::vector<double> out;
    for (const ScenarioResult& result : results) {
      if (result.exit_code == 2) throw ConfigError(result.error);
      if (!result.error.empty()) throw SimulationError(result.scenario + ": " + result.error);
      out.push_back(result.iteration_s);
    }
    return out;
  }

 private:
  const StepMeasurements& measured_;
  const std::vector<StepConstant>& constants_;
  const Registries& registries_;
  int jobs_;
  std::size_t simulated_ = 0;
};

}  // namespace

int calibrate_steps(const CalibrateStepsArguments& arguments, const Registries& registries) {
  if (arguments.study.empty())
    throw ConfigError("steps are of a study; give --study STUDY.yaml, and --from a table of its steps");
  if (arguments.files.size() > 1) throw ConfigError("--from: one table of steps at a time; join them");
  check_constants(arguments.constants);
  const CsvTable table = CsvTable::load(arguments.files.front());
  const StepMeasurements measured = read_step_measurements(table, arguments.study, arguments.constants, registries);
  std::vector<StepConstant> constants;
  for (const std::string& key : measured.fitted) constants.push_back(find_step_constant(key));

  const int jobs = arguments.jobs > 0 ? arguments.jobs : available_processors();
  Simulator simulator(measured, constants, registries, jobs);
  std::vector<StepTrial> plain;
  std::vector<double> times;
  std::vector<StepPlace> places;
  for (std::size_t s = 0; s < measured.steps.size(); ++s) {
    plain.push_back({s, {}});
    times.push_back(measured.steps[s].seconds);
    places.push_back(measured.steps[s].place);
  }
  const std::vector<double> before = simulator(plain);
  const StepFit fit = fit_steps(constants, times, std::ref(simulator), places);

  std::cout << fmt::format("{}: {}\n\n", measured.study, counted(measured.steps.size(), "step"));
  print_report(std::cout, measured, before, fit);
  if (!arguments.store.empty()) {
    std::vector<nlohmann::ordered_json> rows;
    for (std::size_t s = 0; s < times.size(); ++s)
      rows.push_back({{"kind", "steps"},
                      {"step", measured.steps[s].scenario.name},
                      {"measured_s", times[s]},
                      {"before_s", before[s]},
                      {"fitted_s", fit.predicted[s]},
                      {"left_out_s", s < fit.left_out.size() ? nlohmann::ordered_json(fit.left_out[s]) : nullptr}});
    store_records(arguments.store, "calibrate", measured.study, program_version(), rows);
  }
  if (!arguments.plot.empty()) write_file(arguments.plot, plot_steps(measured, fit));
  if (!arguments.output.empty()) write_file(arguments.output, to_yaml(to_calibration(measured, fit)));
  return kDone;
}

}  // namespace epocast
