// Table 5.13 counts activations and weights of VGG-16. Layer for layer it must agree with the model file. Activations
// are printed with two digits or so (3.2 M for 3,211,264; 800 K for 802,816): within 3 %. The 93 MB of its total are
// not the sum of its rows, but stand in the course note that the table follows.
#include <fmt/format.h>

#include <map>

#include "experiments/reproduce/eserol2019/targets.hpp"
#include "experiments/reproduce/published_table.hpp"
#include "sim/data_directory.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::eserol2019 {
namespace {

double value_of(const Layer& layer, const std::string& quantity) {
  if (quantity == "activations") return static_cast<double>(layer.output.values());
  if (quantity == "height") return static_cast<double>(layer.output.height);
  if (quantity == "width") return static_cast<double>(layer.output.width);
  if (quantity == "channels") return static_cast<double>(layer.output.channels);
  // Weights: all parameters but the bias.
  double weights = 0;
  for (const ParameterTensor& tensor : layer.parameters)
    if (tensor.name.ends_with(".weight")) weights += static_cast<double>(tensor.values);
  return weights;
}

std::vector<TargetRow> run_table_5_13(const TargetContext&) {
  const PublishedTable printed =
      PublishedTable::load(data_directory() / "experiments" / "reproduce" / "eserol2019" / "table_5_13.csv", {"layer"});
  const Model model = load_model(data_directory() / "workloads" / "models" / "vgg16.yaml");
  // The thesis numbers layers of each kind.
  std::map<std::string, const Layer*> layers;
  int convolutions = 0, poolings = 0, connected = 0;
  double activations = 0;
  for (const Layer& layer : model.layers) {
    std::string name;
    if (layer.kind == LayerKind::input) name = "INPUT";
    if (layer.kind == LayerKind::convolution) name = fmt::format("CONV{}", ++convolutions);
    if (layer.kind == LayerKind::pooling) name = fmt::format("POOL{}", ++poolings);
    if (layer.kind == LayerKind::fully_connected) name = fmt::format("FC{}", ++connected);
    if (name.empty()) continue;
    layers[name] = &layer;
    activations += static_cast<double>(layer.output.values());
  }
  const double megabytes = 4 * activations / 1024 / 1024;
  std::vector<TargetRow> rows;
  for (const PublishedCell& cell : printed.cells()) {
    const std::string& name = cell.keys.front();
    if (name == "TOTAL") {
      if (cell.quantity == "parameters")
        rows.push_back({name, cell.quantity, cell.unit, cell.value, static_cast<double>(model.parameter_count()),
                        Role::exact, 0, "with 13,416 biases, unlike the rows"});
      continue;
    }
    const auto layer = layers.find(name);
    const double value = layer == layers.end() ? -1 : value_of(*layer->second, cell.quantity);
    rows.push_back({name, cell.quantity, cell.unit, cell.value, value, Role::exact,
                    cell.quantity == "activations" ? 0.03 * cell.value : 0, ""});
  }
  rows.push_back({"TOTAL", "memory of the activations", "MiB", std::nullopt, megabytes, Role::exact, 0,
                  "corrected; printed 93 MB"});
  return rows;
}

}  // namespace

Target table_5_13() {
  return {"eserol2019", "table_5_13", "sizes of VGG-16's activations and weights", std::nullopt, run_table_5_13};
}

}  // namespace epocast::eserol2019
