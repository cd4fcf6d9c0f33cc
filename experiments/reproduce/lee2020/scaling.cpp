#include "experiments/reproduce/lee2020/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "experiments/reproduce/published_table.hpp"
#include "sim/data_directory.hpp"

namespace epocast::lee2020 {

std::vector<Override> machine(double duplex) {
  const PublishedTable constants = PublishedTable::load(
      data_directory() / "experiments" / "reproduce" / "lee2020" / "cori_haswell.csv", {"constant"});
  const auto rate = [&](const char* name) { return fmt::format("{} GB/s", constants.value({name}, "rate")); };
  return {{"compute.core_bandwidth", rate("core_bandwidth")},
          {"collective.reduction_rate", rate("reduction_rate")},
          {"network.efficiency", fmt::format("{}", duplex * constants.value({"links"}, "share"))}};
}

std::map<std::string, Curve> run_curves(const std::filesystem::path& study, const std::vector<Setting>& settings,
                                        const std::vector<Override>& machine, const TargetContext& context) {
  std::vector<Scenario> scenarios;
  std::vector<std::string> names;  // of each scenario's setting
  for (const Setting& setting : settings) {
    std::vector<Override> changes = machine;
    changes.insert(changes.end(), setting.changes.begin(), setting.changes.end());
    for (Scenario& scenario : load_study(study, changes).scenarios) {
      scenario.name = setting.name + ", " + scenario.name;
      scenarios.push_back(std::move(scenario));
      names.push_back(setting.name);
    }
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

TargetRow printed(std::string row, std::string quantity, std::string unit, double published, double simulated,
                  double half_digit) {
  return {.row = std::move(row),
          .quantity = std::move(quantity),
          .unit = std::move(unit),
          .published = published,
          .simulated = simulated,
          .role = Role::exact,
          .tolerance = half_digit,
          .note = half_digit > 0 ? "printed rounded" : ""};
}

TargetRow stated(std::string row, std::string quantity, std::string unit, double published, double simulated,
                 double factor, std::string note) {
  if (factor > 1) note += fmt::format("{}within a factor of {}", note.empty() ? "" : "; ", factor);
  return {.row = std::move(row),
          .quantity = std::move(quantity),
          .unit = std::move(unit),
          .published = published,
          .simulated = simulated,
          .role = Role::stated,
          .note = std::move(note),
          .factor = factor};
}

TargetRow ordering(std::string row, std::string claim, bool holds) {
  return stated(std::move(row), std::move(claim), "holds", 1, holds ? 1 : 0);
}

}  // namespace epocast::lee2020
