// Published numbers of N=2 and N=4 serve for comparison only. The settings below follow the thesis' text and its
// table's N=1 row, and are not tuned:
//  - one parameter server is a device beside the workers (section 1.1.1); distributed ones are the workers themselves,
//    with layers placed greedily (section 5.2.3);
//  - a worker has its new parameters before the forward pass and sends its gradients after the iteration (sections
//    1.1.1 and 2.6.1), as between two session runs of TensorFlow 1: granularity `model`;
//  - the network is 10 Gb Ethernet, which connects all nodes (section 5.2); TensorFlow's default is gRPC over TCP;
//  - the batch size is that of each worker. The thesis does not say so; see docs/reproduce.md.
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/reproduce/eserol2019/targets.hpp"
#include "experiments/reproduce/published_table.hpp"
#include "experiments/reproduce/simulate.hpp"
#include "sim/data_directory.hpp"
#include "sim/error.hpp"

namespace epocast::eserol2019 {
namespace {

constexpr double kImages = 102400;  // 10 epochs of 10,240
constexpr const char* kSingle = "Single Processor";
constexpr const char* kQuantity = "run time";

/// Percent. Not a claim of accuracy: the MAPE was 11.61 when this was written, and a bound just above it makes a model
/// that got worse fail.
constexpr double kBound = 12;

struct Variant {
  std::string method;  ///< as in the table
  std::string mode;
  bool distributed;
};
const std::vector<Variant> kVariants{{"Async DP (1 PS)", "async", false},
                                     {"Sync DP (1 PS)", "sync", false},
                                     {"Async DP (distributed PS)", "async", true},
                                     {"Sync DP (distributed PS)", "sync", true}};

std::string strategy(const Variant& variant, int workers) {
  return fmt::format(
      "{{name: parameter_server, mode: {}, servers: {}, location: {}, placement: greedy, granularity: model}}",
      variant.mode, variant.distributed ? workers : 1, variant.distributed ? "colocated" : "dedicated");
}

/// The measured time of one worker's step at each batch size, as `compute.step_time` wants it.
std::string step_times(const PublishedTable& table) {
  std::string list;
  for (const PublishedCell& cell : table.cells()) {
    if (cell.keys[1] != kSingle) continue;
    const double iterations = kImages / std::stod(cell.keys[2]);
    list += fmt::format("{}{{batch: {}, time: {} s}}", list.empty() ? "" : ", ", cell.keys[2], cell.value / iterations);
  }
  return "[" + list + "]";
}

std::vector<TargetRow> run(const TargetContext& context) {
  const std::filesystem::path folder = data_directory() / "experiments" / "reproduce" / "eserol2019";
  const PublishedTable table = PublishedTable::load(folder / "table_5_15.csv", {"workers", "method", "batch"});
  const Override measured{"compute.step_time", step_times(table)};

  std::vector<Scenario> scenarios;
  std::vector<std::string> methods;  // of each scenario
  const auto add = [&](const std::string& method, int workers, const std::string& how) {
    Study study =
        load_study(folder / "table_5_15.yaml", {measured, {"workers", std::to_string(workers)}, {"strategy", how}});
    methods.insert(methods.end(), study.scenarios.size(), method);
    for (Scenario& scenario : study.scenarios) {
      scenario.name = fmt::format("N={} BS={} {}", workers, scenario.axes.front().second, method);
      scenarios.push_back(std::move(scenario));
    }
  };
  add(kSingle, 1, "{name: single}");
  for (const int workers : {2, 4})
    for (const Variant& variant : kVariants) add(variant.method, workers, strategy(variant, workers));

  const std::vector<ScenarioResult> results = simulate(scenarios, context);
  std::vector<TargetRow> rows;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string workers = std::to_string(results[i].workers), batch = results[i].axes.front().second;
    const double published = table.value({workers, methods[i], batch}, kQuantity);
    const bool single = methods[i] == kSingle;
    rows.push_back({.row = results[i].scenario,
                    .quantity = "run time of 10 epochs",
                    .unit = "s",
                    .published = published,
                    .simulated = results[i].total_s,
                    .role = single ? Role::input : Role::predicted,
                    .tolerance = single ? 1e-9 * published : 0,
                    .note = results[i].exact ? "" : "extrapolated without a steady state"});
  }
  return rows;
}

}  // namespace

Target table_5_15_data_parallel() {
  return {"eserol2019", "table_5_15_data_parallel",
          "run time of VGG-16 with parameter servers on 2 and 4 Skylake nodes, from that on one node", kBound, run};
}

}  // namespace epocast::eserol2019
