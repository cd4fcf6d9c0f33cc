// The share of time in which GPipe's devices idle: (K - 1) / (M + K - 1) for K equal stages and M micro-batches (Huang
// et al. 2019, section 2.3), and the same from the simulated schedules of GPipe and of 1F1B with flush.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "experiments/reproduce/gpipe/targets.hpp"
#include "experiments/reproduce/simulate.hpp"
#include "sim/data_directory.hpp"

namespace epocast::gpipe {
namespace {

std::vector<TargetRow> run_bubble(const TargetContext& context) {
  std::vector<Scenario> scenarios;
  for (const char* schedule : {"gpipe", "1f1b"}) {
    Study study = load_study(data_directory() / "experiments" / "reproduce" / "gpipe" / "bubble.yaml",
                             {{"strategy.schedule", schedule}});
    for (Scenario& scenario : study.scenarios) {
      scenario.name = fmt::format("{} K={} M={}", schedule, scenario.axes[0].second, scenario.axes[1].second);
      scenarios.push_back(std::move(scenario));
    }
  }
  std::vector<TargetRow> rows;
  for (const ScenarioResult& result : simulate(scenarios, context)) {
    const double stages = std::stod(result.axes[0].second), micro_batches = std::stod(result.axes[1].second);
    rows.push_back({.row = result.scenario,
                    .quantity = "idle share",
                    .unit = "",
                    .published = (stages - 1) / (micro_batches + stages - 1),
                    .simulated = result.bubble_fraction.value(),
                    .role = Role::exact,
                    .tolerance = 1e-9,
                    .note = ""});
  }
  return rows;
}

}  // namespace

Target bubble() {
  return {"gpipe", "bubble", "idle share of pipelines with equal stages: (K - 1) / (M + K - 1)", std::nullopt,
          run_bubble};
}

}  // namespace epocast::gpipe
