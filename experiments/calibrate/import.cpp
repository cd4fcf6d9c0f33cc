#include "experiments/calibrate/import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "costmodels/timings_file.hpp"
#include "sim/input_file.hpp"
#include "sim/words.hpp"
#include "workloads/model_reader.hpp"

namespace epocast {

std::vector<const CsvRow*> choose_device(const CsvTable& table, const ImportOptions& options, std::string& device,
                                         std::vector<std::string>& left_out) {
  std::vector<std::string> names;
  for (const CsvRow& row : table.rows())
    if (std::ranges::find(names, row.text("device")) == names.end()) names.push_back(row.text("device"));
  device = options.device;
  if (device.empty() && names.size() > 1)
    throw table.error(table.columns_line(), "device",
                      "the file has several devices; choose one with --device" + name_hint("", names));
  if (device.empty()) device = names.front();
  if (std::ranges::find(names, device) == names.end())
    throw table.error(table.columns_line(), "device",
                      "there are no rows of device '" + device + "'" + name_hint(device, names));

  std::vector<const CsvRow*> chosen;
  std::map<std::string, int> other_precisions;
  int older = 0;
  for (const CsvRow& row : table.rows()) {
    if (row.text("device") != device) continue;
    // DeepBench's words for products in fp16 with sums in fp32.
    if (table.has("precision") && row.text("precision") != options.precision &&
        row.text("precision") != options.precision + " in / fp32 accumulate (tensor cores)") {
      ++other_precisions[row.text("precision")];
    } else if (table.has("latest") && row.whole("latest", {0, 1}) == 0) {
      ++older;
    } else {
      chosen.push_back(&row);
    }
  }
  for (const auto& [precision, count] : other_precisions)
    left_out.push_back(fmt::format("{}: {} of precision '{}'", table.file(), counted(count, "row"), precision));
  if (older > 0)
    left_out.push_back(fmt::format("{}: {} of older software (latest = 0)", table.file(), counted(older, "row")));
  if (chosen.empty())
    throw table.error(table.columns_line(), "precision",
                      "device '" + device + "' has no rows of precision '" + options.precision + "'");
  return chosen;
}

KernelMeasurements import_layer_timings(const std::filesystem::path& file, const ImportOptions& options) {
  const TimingsFile timings = load_timings(file);
  if (options.model.empty())
    throw ConfigError(Location{timings.file, 1, 0}, "",
                      "names layers, whose shapes a model must tell; give it with --model");
  const Model model = load_model(options.model);
  std::map<std::string, const Layer*> layers;
  std::vector<std::string> names;
  for (const Layer& layer : model.layers) {
    layers[layer.name] = &layer;
    names.push_back(layer.name);
  }
  const auto header = [&](const char* key) {
    return timings.header.contains(key) ? timings.header.at(key) : std::string();
  };
  KernelMeasurements out;
  out.device = header("device");
  out.source = header("source");
  out.library = header("library");
  out.date = header("date");
  for (const TimingRow& row : timings.rows) {
    const auto found = layers.find(row.layer);
    if (found == layers.end())
      throw ConfigError(timings.where(row), "layer",
                        "model '" + model.name + "' has no layer '" + row.layer + "'" + name_hint(row.layer, names));
    if (found->second->kind != row.kind)
      throw ConfigError(timings.where(row), "kind", "is another in model '" + model.name + "'");
    const auto add = [&](KernelPass pass, Seconds time) {
      const auto kernel = layer_kernel(*found->second, row.batch, pass);
      if (kernel && time.value > 0) out.timings.push_back({*kernel, time, row.line});
    };
    add(KernelPass::forward, row.forward);
    add(KernelPass::backward_data, row.backward_data);
    add(KernelPass::backward_weights, row.backward_weights);
  }
  return out;
}

namespace {

KernelMeasurements import_csv(const std::filesystem::path& file, const ImportOptions& options) {
  const CsvTable table = CsvTable::load(file);
  if (is_kernel_measurements(table)) return read_kernel_measurements(table);
  if (table.has("layer") && table.has("forward_s")) return import_layer_timings(file, options);
  if (is_deepbench(table)) return import_deepbench(table, options);
  if (is_pipedream(table)) return import_pipedream_table(table, options);
  throw table.error(
      table.columns_line(), "",
      "has the columns of no known format (kernel measurements: operator, pass, shape, time_s; layer timings: layer, "
      "forward_s; "
      "DeepBench: W, H, C, ..., or M, N, K, ..., or hidden_units, ...; PipeDream: operator, forward_ms, backward_ms)");
}

}  // namespace

KernelMeasurements import_kernels(const std::filesystem::path& file, const ImportOptions& options) {
  const std::string text = read_input_file(file);
  const std::string_view first(text);
  KernelMeasurements out;
  if (file.extension() == ".json" || first.starts_with('{') || first.starts_with('[')) {
    out = import_profiler_trace(file, options);
  } else if (first.starts_with("node")) {
    out = import_pipedream_graph(file, options);
  } else {
    out = import_csv(file, options);
  }
  if (out.timings.empty())
    throw ConfigError(Location{file.string(), 1, 1}, "", "has no kernel that epocast knows how to model");
  if (out.device.empty())
    throw ConfigError(Location{file.string(), 1, 1}, "", "does not name the device; give it with --device");
  return out;
}

}  // namespace epocast
