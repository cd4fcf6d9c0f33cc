#include "experiments/reproduce/lee2020/scaling.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace epocast::lee2020 {

std::map<std::string, Curve> run_curves(const std::filesystem::path& study, const std::vector<Setting>& settings,
                                        const TargetContext& context) {
  std::vector<Scenario> scenarios;
  std::vector<std::string> names;  // of each scenario's setting
  for (const Setting& setting : settings)
    for (Scenario& scenario : load_study(study, setting.changes).scenarios) {
      scenario.name = setting.name + ", " + scenario.name;
      scenarios.push_back(std::move(scenario));
      names.push_back(setting.name);
    }
  std::map<std::string, Curve> curves;
  std::vector<ScenarioResult> results = simulate(scenarios, context);
  for (std::size_t i = 0; i < results.size(); ++i) curves[names[i]].push_back(std::move(results[i]));
  return curves;
}

double best_speedup(const Curve& curve) {
  double best = 0;
  for (const ScenarioResult& point : curve) best = std::max(best, point.speedup.value_or(0));
  return best;
}

const ScenarioResult& on(const Curve& curve, std::int64_t workers) {
  for (const ScenarioResult& point : curve)
    if (point.workers == workers) return point;
  throw std::logic_error("no point of a curve on " + std::to_string(workers) + " workers");
}

double last_scaling(const Curve& curve, double gain) {
  std::size_t last = 0;
  while (last + 1 < curve.size() && curve[last].iteration_s >= gain * curve[last + 1].iteration_s) ++last;
  return static_cast<double>(curve[last].workers);
}

TargetRow fact(std::string row, std::string quantity, std::string unit, double published, double simulated,
               double tolerance, std::string note) {
  return {std::move(row), std::move(quantity), std::move(unit), published,
          simulated,      Role::exact,         tolerance,       std::move(note)};
}

TargetRow within_factor_of_two(std::string row, std::string quantity, std::string unit, double published,
                               double simulated, const std::string& note) {
  const double tolerance = simulated < published ? published / 2 : published;
  return fact(std::move(row), std::move(quantity), std::move(unit), published, simulated, tolerance,
              note + "; right within a factor of 2");
}

TargetRow ordering(std::string row, std::string claim, bool holds) {
  return {std::move(row), std::move(claim), "holds", 1, holds ? 1.0 : 0.0, Role::exact, 0, ""};
}

}  // namespace epocast::lee2020
