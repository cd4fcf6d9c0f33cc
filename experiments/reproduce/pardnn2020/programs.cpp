#include "experiments/reproduce/pardnn2020/programs.hpp"

#include <stdexcept>

#include "experiments/reproduce/published_table.hpp"
#include "sim/data_directory.hpp"

namespace epocast::pardnn2020 {
namespace {

std::filesystem::path data(const char* file) {
  return data_directory() / "experiments" / "reproduce" / "pardnn2020" / file;
}

}  // namespace

std::vector<Program> programs() {
  std::vector<Program> out;
  const PublishedTable table =
      PublishedTable::load(data("node_counts.csv"), {"model", "optimizer", "gradients", "loss"});
  for (const PublishedCell& cell : table.cells())
    out.push_back(
        {cell.keys[0], {parse_optimizer(cell.keys[1]), parse_gradient_use(cell.keys[2]), cell.keys[3] == "decayed"}});
  return out;
}

Program program_of(const std::string& model) {
  for (const Program& program : programs())
    if (program.model == model) return program;
  throw std::logic_error("no program of " + model);
}

ModelGraphRequest program_request(const Program& program, std::int64_t batch) {
  return {.model = program.model,
          .batch = batch,
          .options = program.options,
          .calibration = "v100",
          .times = OperatorTimes::operators};
}

NamedGraph training_graph(const Program& program, std::int64_t batch) {
  return model_graph(program_request(program, batch));
}

PlacementMachine dgx2(int devices, double memory) { return {devices, to_ticks(3.4e-6), 150e9, memory}; }

std::int64_t printed_batch(const std::string& model, int devices) {
  static const PublishedTable table = PublishedTable::load(data("table_6_1.csv"), {"model", "devices"});
  return static_cast<std::int64_t>(table.value({model, std::to_string(devices)}, "largest batch"));
}

}  // namespace epocast::pardnn2020
