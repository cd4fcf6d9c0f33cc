#include "experiments/reproduce/pardnn2020/targets.hpp"
#include "experiments/reproduce/published_table.hpp"
#include "sim/data_directory.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::pardnn2020 {
namespace {

std::vector<TargetRow> run_parameters(const TargetContext&) {
  const PublishedTable table =
      PublishedTable::load(data_directory() / "experiments" / "reproduce" / "pardnn2020" / "table_5_1.csv", {"model"});
  std::vector<TargetRow> rows;
  for (const PublishedCell& cell : table.cells()) {
    const std::string& name = cell.keys[0];
    const Model model = load_model(data_directory() / "workloads" / "models" / (name + ".yaml"));
    const bool is_specified = name.starts_with("wrn");
    rows.push_back({.row = name,
                    .quantity = cell.quantity,
                    .unit = cell.unit,
                    .published = cell.value,
                    .simulated = static_cast<double>(model.parameter_count()) / 1e9,
                    .role = is_specified ? Role::exact : Role::predicted,
                    .tolerance = 0.01,  // printed with two decimals, some of them cut off
                    .seen = !is_specified});
  }
  return rows;
}

}  // namespace

Target parameters() {
  return {.paper = "pardnn2020",
          .table = "table_5_1",
          .description = "parameters of the networks",
          .mape_bound = 5,
          .run = run_parameters};
}

}  // namespace epocast::pardnn2020
