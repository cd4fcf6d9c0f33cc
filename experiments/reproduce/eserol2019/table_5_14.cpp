#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "experiments/reproduce/eserol2019/targets.hpp"
#include "experiments/reproduce/published_table.hpp"
#include "experiments/reproduce/simulate.hpp"
#include "sim/data_directory.hpp"
#include "sim/error.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::eserol2019 {
namespace {

constexpr double kImagesOfRun = 64000;
constexpr double kGiB = 1024.0 * 1024 * 1024;

/// Bytes that all ranks together send in an epoch of all-reduces: 2(N-1) copies of the gradients in each iteration.
double formula(double workers, double batch, double parameters) {
  return 2 * (workers - 1) * parameters * 4 * (kImagesOfRun / batch);
}

/// The thesis' GB for a partition whose forward pass of 32 images moves `volume` x 2^20 values: forward and backward,
/// one byte a value.
double hypergraph_gib(double volume) { return volume * 2 * (kImagesOfRun / 32) / 1024; }

double reduction(double data_parallel, double hypergraph) { return 100 * (1 - hypergraph / data_parallel); }

/// Our own value: the thesis counts 4 bytes for each gradient, but 1 for each activation.
TargetRow correct(std::string row, const char* quantity, const char* unit, double value) {
  return {std::move(row), quantity, unit, std::nullopt, value, Role::exact, 0, "corrected"};
}

std::vector<TargetRow> run_table_5_14(const TargetContext& context) {
  const std::filesystem::path folder = data_directory() / "experiments" / "reproduce" / "eserol2019";
  const PublishedTable printed = PublishedTable::load(folder / "table_5_14.csv", {"workers", "batch"});
  const PublishedTable partitions = PublishedTable::load(folder / "table_5_10_used.csv", {"workers"});
  const Model model = load_model(data_directory() / "workloads" / "models" / "vgg16.yaml");
  const Study study = load_study(folder / "table_5_14.yaml");

  std::vector<TargetRow> inputs, cells, corrected;
  double sum = 0, corrected_sum = 0;
  for (const ScenarioResult& result : simulate(study.scenarios, context)) {
    const std::string workers = std::to_string(result.workers), batch = std::to_string(result.global_batch);
    const auto n = static_cast<double>(result.workers), bs = static_cast<double>(result.global_batch);
    const double expected = formula(n, bs, static_cast<double>(model.parameter_count()));
    if (!(std::abs(result.comm_bytes_per_epoch - expected) <= 1e-9 * expected))
      throw SimulationError(
          fmt::format("{}: all-reduces sent {} bytes instead of 2(N-1) x 4 x parameters x iterations = {}",
                      result.scenario, result.comm_bytes_per_epoch, expected));
    const double volume = partitions.value({workers}, "volume used");
    if (inputs.empty() || inputs.back().row != "N=" + workers)
      inputs.push_back({.row = "N=" + workers,
                        .quantity = "volume of a forward pass (Table 5.10)",
                        .unit = "MB",
                        .published = partitions.value({workers}, "volume"),
                        .simulated = volume,
                        .role = Role::input,
                        .tolerance = 1,
                        .note = "printed truncated"});

    const double data_parallel = result.comm_bytes_per_epoch / kGiB;
    const double hypergraph = hypergraph_gib(volume);
    const double fp32 = 4 * hypergraph;
    const std::string row = "N=" + workers + " BS=" + batch;
    const auto add = [&](const char* quantity, const char* unit, double value, Role role, const char* note) {
      // The thesis truncates.
      cells.push_back(
          {row, quantity, unit, printed.value({workers, batch}, quantity), std::floor(value), role, 0, note});
    };
    add("data parallelism", "GB", data_parallel, Role::exact, "");
    // The printed volume of N=8 has too few digits to give this cell, which was used to find them.
    add("hypergraph partitioning", "GB", hypergraph, result.workers == 8 ? Role::input : Role::exact,
        result.workers == 8 ? "decides the last digit of the input" : "");
    add("reduction", "%", reduction(data_parallel, hypergraph), Role::exact, "");

    corrected.push_back(correct(row, "data parallelism, fp32", "GiB", data_parallel));
    corrected.push_back(correct(row, "hypergraph partitioning, fp32", "GiB", fp32));
    corrected.push_back(correct(row, "reduction, both fp32", "%", reduction(data_parallel, fp32)));
    sum += reduction(data_parallel, hypergraph);
    corrected_sum += reduction(data_parallel, fp32);
  }
  const auto count = static_cast<double>(study.scenarios.size());
  const double printed_average = printed.value({"all", "all"}, "reduction");
  cells.push_back({"average", "reduction", "%", printed_average, std::floor(sum / count), Role::exact, 0, ""});
  corrected.push_back(correct("average", "reduction, both fp32", "%", corrected_sum / count));

  inputs.insert(inputs.end(), cells.begin(), cells.end());
  inputs.insert(inputs.end(), corrected.begin(), corrected.end());
  return inputs;
}

}  // namespace

Target table_5_14() {
  return {
      "eserol2019", "table_5_14",
      "bytes moved in an epoch of VGG-16: data parallelism against hypergraph partitioning, as printed and all in fp32",
      std::nullopt, run_table_5_14};
}

}  // namespace epocast::eserol2019
