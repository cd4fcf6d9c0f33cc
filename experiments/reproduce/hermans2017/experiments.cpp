// Ours: the draft plans these experiments and has no numbers, so that nothing here is compared with anything. Accuracy
// of seven schemes after equally many epochs, and the simulated time to 80 %, for 1 to 64 workers; on 16 also with one
// worker twice as slow.
#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "experiments/reproduce/hermans2017/targets.hpp"
#include "experiments/reproduce/simulate.hpp"
#include "sim/data_directory.hpp"

namespace epocast::hermans2017 {
namespace {

TargetRow ours(std::string row, std::string quantity, std::string unit, double value) {
  return {.row = std::move(row),
          .quantity = std::move(quantity),
          .unit = std::move(unit),
          .published = std::nullopt,
          .simulated = value,
          .role = Role::stated,
          .note = "ours"};
}

std::vector<TargetRow> run(const TargetContext& context) {
  const std::filesystem::path file =
      data_directory() / "experiments" / "reproduce" / "hermans2017" / "experiments.yaml";
  std::vector<Scenario> scenarios = load_study(file, {}).scenarios;
  const std::size_t equal = scenarios.size();
  const Study unequal = load_study(file, {{"sweep.workers", "[16]"}, {"stragglers", "[{worker: 0, slowdown: 2}]"}});
  scenarios.insert(scenarios.end(), unequal.scenarios.begin(), unequal.scenarios.end());
  const std::vector<ScenarioResult> results = simulate(scenarios, context);

  std::vector<TargetRow> rows;
  std::map<std::string, double> accuracy;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ScenarioResult& result = results[i];
    const std::string scheme = result.axes[1].second.substr(0, result.axes[1].second.find('('));
    const std::string row =
        fmt::format("n={} {}{}", result.workers, scheme, i < equal ? "" : ", one worker half as fast");
    accuracy[row] = result.accuracy.value_or(0);
    rows.push_back(ours(row, "accuracy after 12 epochs", "", accuracy[row]));
    if (result.time_to_target_s) rows.push_back(ours(row, "time to 80 %", "s", *result.time_to_target_s));
  }
  rows.push_back(
      ours("n=64", "agn is ahead of downpour", "holds", accuracy["n=64 agn"] > accuracy["n=64 downpour"] ? 1 : 0));
  return rows;
}

}  // namespace

Target experiments() {
  return {.paper = "hermans2017",
          .table = "experiments",
          .description = "seven schemes on drawn digits, 1 to 64 workers: ours, the draft has no numbers",
          .mape_bound = std::nullopt,
          .run = run};
}

}  // namespace epocast::hermans2017
