#include "experiments/reproduce/eserol2019/model_parallel_runs.hpp"

#include <fmt/format.h>

#include "sim/data_directory.hpp"

namespace epocast::eserol2019 {
namespace {

/// The published volumes are in 2^20 values of a batch of 32.
constexpr double kBytesPerSample = 4 * 1048576.0 / 32;

}  // namespace

ModelParallelRuns::ModelParallelRuns()
    : folder_(data_directory() / "experiments" / "reproduce" / "eserol2019"),
      times_(PublishedTable::load(folder_ / "table_5_15.csv", {"workers", "method", "batch"})),
      parts_(PublishedTable::load(folder_ / "table_5_15_parts.csv", {"workers", "method", "part"})),
      transport_(PublishedTable::load(folder_ / "transport.csv", {"constant"})) {}

double ModelParallelRuns::published(int workers, const std::string& method, const std::string& batch) const {
  return times_.value({std::to_string(workers), method, batch}, "run time");
}

std::vector<Scenario> ModelParallelRuns::scenarios(const std::string& method, int workers,
                                                   const std::string& batches) const {
  const std::string strategy = method == kSingleProcessor ? "{name: single}" : strategy_of(method, workers);
  Study study = load_study(folder_ / "table_5_15.yaml", {{"platform", "skylake_opa"},
                                                         {"compute.step_time", single_processor_steps(times_)},
                                                         {"workers", std::to_string(workers)},
                                                         {"strategy", strategy},
                                                         {"sweep", "{batch.global: " + batches + "}"}});
  for (Scenario& scenario : study.scenarios)
    scenario.name = fmt::format("N={} BS={} {}", workers, scenario.axes.front().second, method);
  return study.scenarios;
}

std::string ModelParallelRuns::strategy_of(const std::string& method, int workers) const {
  const std::string rate = fmt::format("copy_rate: {} B/s", transport_.value({"copy_rate"}, "rate"));
  if (method == "Layer-wise MP")
    return fmt::format("{{name: pipeline, schedule: threaded, first_layers: [{}], {}}}",
                       workers == 2 ? "conv3_3" : "conv2_2, conv3_3, conv4_3", rate);
  const std::string n = std::to_string(workers);
  std::string shares;
  for (int part = 0; part < workers; ++part)
    shares += fmt::format("{}{}", part == 0 ? "" : ", ", parts_.value({n, method, std::to_string(part)}, "work"));
  return fmt::format("{{name: filter_parallel, in_flight: {}, shares: [{}], volume: {} B, {}}}", workers, shares,
                     parts_.value({n, method, "all"}, "volume") * kBytesPerSample, rate);
}

}  // namespace epocast::eserol2019
