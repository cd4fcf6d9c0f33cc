#include <algorithm>
#include <stdexcept>
#include <utility>

#include "experiments/reproduce/pardnn2020/targets.hpp"
#include "experiments/reproduce/published_table.hpp"
#include "sim/data_directory.hpp"
#include "sim/error.hpp"
#include "workloads/model_reader.hpp"
#include "workloads/operators/operator_graph_builder.hpp"

namespace epocast::pardnn2020 {
namespace {

constexpr std::int64_t kBatch = 1;  // changes no count

std::vector<TargetRow> run_node_counts(const TargetContext&) {
  const PublishedTable table =
      PublishedTable::load(data_directory() / "experiments" / "reproduce" / "pardnn2020" / "node_counts.csv",
                           {"model", "optimizer", "gradients", "loss"});
  std::vector<TargetRow> rows;
  for (const PublishedCell& cell : table.cells()) {
    const Model model = load_model(data_directory() / "workloads" / "models" / (cell.keys[0] + ".yaml"));
    OperatorGraphOptions options;
    try {
      options = {parse_optimizer(cell.keys[1]), parse_gradient_use(cell.keys[2]), cell.keys[3] == "decayed"};
    } catch (const std::invalid_argument& problem) {
      throw ConfigError("node_counts.csv: " + cell.keys[0] + ": " + problem.what());
    }
    rows.push_back({.row = cell.keys[0],
                    .quantity = cell.quantity,
                    .unit = cell.unit,
                    .published = cell.value,
                    .simulated = static_cast<double>(build_operator_graph(model, kBatch, options).size()),
                    .role = Role::predicted,
                    .seen = true});  // which program a network is was decided with the counts in view
  }
  return rows;
}

}  // namespace

Target node_counts() {
  return {.paper = "pardnn2020",
          .table = "node_counts",
          .description = "operations in the graph of a training step, Table 5.1",
          .mape_bound = 7.5,
          .run = run_node_counts};
}

}  // namespace epocast::pardnn2020
