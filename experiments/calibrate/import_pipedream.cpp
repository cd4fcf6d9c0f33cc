// PipeDream layer profiles, as graph.txt or as a table: PyTorch layers with forward and backward milliseconds and the
// bytes of their output and parameters. Shapes are pieced together from the layer's text and those bytes.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "sim/input_file.hpp"

#include "experiments/calibrate/import.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

struct ProfiledLayer {
  std::string text;                  ///< "Conv2d(64, 128, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))"
  double forward = 0, backward = 0;  ///< [s]
  double output_values = 0;
  int line = 0;
};

/// The whole numbers in `text` from `at` on, as long as only brackets, spaces and commas part them.
std::vector<std::int64_t> numbers_at(const std::string& text, std::size_t at) {
  std::vector<std::int64_t> out;
  while (at < text.size()) {
    if (text[at] == '(' || text[at] == ' ' || text[at] == ',') {
      ++at;
      continue;
    }
    std::int64_t value = 0;
    const auto [end, failed] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (failed != std::errc{} || (end != text.data() + text.size() && *end == '=')) break;
    out.push_back(value);
    const auto next = static_cast<std::size_t>(end - text.data());
    if (next < text.size() && text[next] == ')') break;
    at = next;
  }
  return out;
}

std::vector<std::int64_t> setting(const std::string& text, const std::string& key) {
  const auto at = text.find(key + "=");
  return at == std::string::npos ? std::vector<std::int64_t>{} : numbers_at(text, at + key.size() + 1);
}

ConfigError problem_at(const std::string& file, const ProfiledLayer& layer, const std::string& what) {
  return ConfigError(Location{file, layer.line, 0}, layer.text.substr(0, 40), what);
}

std::optional<std::int64_t> whole_ratio(double a, double b) {
  const double ratio = std::round(a / b);
  if (ratio < 1 || ratio > 1e9 || std::abs(a / b - ratio) > 1e-6 * ratio) return std::nullopt;
  return static_cast<std::int64_t>(ratio);
}

std::int64_t find_batch(const std::string& file, const std::vector<ProfiledLayer>& layers,
                        const ImportOptions& options) {
  if (options.batch > 0) return options.batch;
  for (const ProfiledLayer& layer : layers) {
    const auto outputs = setting(layer.text, "out_features");
    if (!layer.text.starts_with("Linear(") || outputs.size() != 1 || outputs[0] < 1) continue;
    if (const auto batch = whole_ratio(layer.output_values, static_cast<double>(outputs[0]))) return *batch;
  }
  throw ConfigError(Location{file, 1, 0}, "",
                    "the batch size cannot be told, as there is no fully connected layer; give it with --batch");
}

KernelShape convolution_of(const std::string& file, const ProfiledLayer& layer, std::int64_t batch) {
  const std::vector<std::int64_t> channels = numbers_at(layer.text, 7);
  std::vector<std::int64_t> kernel = setting(layer.text, "kernel_size");
  std::vector<std::int64_t> stride = setting(layer.text, "stride");
  std::vector<std::int64_t> padding = setting(layer.text, "padding");
  const std::vector<std::int64_t> groups = setting(layer.text, "groups");
  if (stride.empty()) stride = {1, 1};
  if (padding.empty()) padding = {0, 0};
  for (auto* pair : {&kernel, &stride, &padding})
    if (pair->size() == 1) pair->push_back(pair->front());
  if (channels.size() < 2 || kernel.size() != 2 || stride.size() != 2 || padding.size() != 2 || channels[0] < 1 ||
      channels[1] < 1 || std::min({kernel[0], kernel[1], stride[0], stride[1]}) < 1)
    throw problem_at(file, layer, "is not a Conv2d with channels, kernel_size, stride and padding");
  const auto pixels = whole_ratio(layer.output_values, static_cast<double>(batch) * static_cast<double>(channels[1]));
  if (!pixels)
    throw problem_at(
        file, layer,
        fmt::format("its output is no whole number of pixels at batch {}; give the right one with --batch", batch));
  // Only the product of height and width is known; nearly square, it costs the same.
  auto height = static_cast<std::int64_t>(std::sqrt(static_cast<double>(*pixels)));
  while (*pixels % height != 0) --height;
  const std::int64_t width = *pixels / height;
  const auto input = [&](std::int64_t out, std::size_t axis) {
    return std::max<std::int64_t>(1, (out - 1) * stride[axis] + kernel[axis] - 2 * padding[axis]);
  };
  return {ConvolutionShape{batch, channels[0], input(height, 0), input(width, 1), channels[1], kernel[0], kernel[1],
                           height, width, std::max(stride[0], stride[1]),
                           groups.empty() ? 1 : std::max<std::int64_t>(1, groups[0])},
          KernelPass::forward};
}

std::optional<KernelShape> memory_kernel(const ProfiledLayer& layer) {
  const std::map<std::string, LayerKind> kinds{
      {"ReLU", LayerKind::activation},   {"Sigmoid", LayerKind::activation}, {"Tanh", LayerKind::activation},
      {"MaxPool2d", LayerKind::pooling}, {"AvgPool2d", LayerKind::pooling},  {"BatchNorm2d", LayerKind::batch_norm},
      {"Add", LayerKind::add},           {"Concat", LayerKind::concat},      {"Dropout", LayerKind::dropout}};
  const auto found = kinds.find(layer.text.substr(0, layer.text.find('(')));
  if (found == kinds.end() || layer.output_values < 1) return std::nullopt;
  // What is read is taken to be as large as what is written; pooling by a window reads window times stride more.
  double read = layer.output_values;
  if (const auto stride = setting(layer.text, "stride"); found->second == LayerKind::pooling && !stride.empty())
    read *= static_cast<double>(stride.front() * stride.back());
  return KernelShape{MemoryShape{to_string(found->second), static_cast<std::int64_t>(read + layer.output_values)},
                     KernelPass::forward};
}

KernelMeasurements import_layers(const std::string& file, const std::vector<ProfiledLayer>& layers,
                                 const ImportOptions& options) {
  const std::int64_t batch = find_batch(file, layers, options);
  KernelMeasurements out;
  out.device = options.device;
  out.source = "PipeDream profile " + file;
  std::map<std::string, int> unknown;
  int products = 0;
  for (const ProfiledLayer& layer : layers) {
    std::optional<KernelShape> shape;
    if (layer.text.starts_with("Conv2d(")) {
      shape = convolution_of(file, layer, batch);
    } else if (layer.text.starts_with("Linear(")) {
      const auto inputs = setting(layer.text, "in_features");
      const auto outputs = setting(layer.text, "out_features");
      if (inputs.size() != 1 || outputs.size() != 1 || inputs[0] < 1 || outputs[0] < 1)
        throw problem_at(file, layer, "is not a Linear with in_features and out_features");
      shape = KernelShape{GemmShape{outputs[0], batch, inputs[0], true, false}, KernelPass::forward};
    } else {
      shape = memory_kernel(layer);
    }
    if (!shape) {
      if (layer.forward > 0) ++unknown[layer.text.substr(0, layer.text.find('('))];
      continue;
    }
    if (layer.forward > 0) out.timings.push_back({*shape, Seconds(layer.forward), layer.line});
    if (!(layer.backward > 0)) continue;
    if (std::string(shape->family()) == "gemm") {
      ++products;  // one fit serves all passes of products, and this time is of two different ones
      continue;
    }
    shape->pass = KernelPass::backward;
    out.timings.push_back({*shape, Seconds(layer.backward), layer.line});
  }
  for (const auto& [name, count] : unknown)
    out.left_out.push_back(fmt::format("{}: {} {}", file, counted(count, "layer"), name));
  if (products > 0)
    out.left_out.push_back(
        fmt::format("{}: {} backward times of fully connected layers (two products in one)", file, products));
  return out;
}

/// Profiles print times to a microsecond: 0 means less than that, and the layer is not used.
double milliseconds(double value) { return value * 1e-3; }

double first_number(const std::string& file, int line, const std::string& key, std::string text) {
  if (text.starts_with('[')) text = text.substr(1);  // several outputs: the first is the layer's own
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool ends = end == text.data() + text.size() || *end == ';' || *end == ']';
  if (failed != std::errc{} || !ends || !std::isfinite(value) || value < 0 || value > 1e15)
    throw ConfigError(Location{file, line, 0}, key,
                      "must be a number that is not negative, not '" + text.substr(0, 40) + "'");
  return value;
}

}  // namespace

bool is_pipedream(const CsvTable& table) { return table.has("operator") && table.has("forward_ms"); }

KernelMeasurements import_pipedream_table(const CsvTable& table, const ImportOptions& options) {
  table.check_columns({"model", "node", "operator", "forward_ms", "backward_ms", "activation_bytes", "parameter_bytes"},
                      {});
  std::string model = options.model.stem().string();
  std::vector<std::string> models;
  for (const CsvRow& row : table.rows())
    if (std::ranges::find(models, row.text("model")) == models.end()) models.push_back(row.text("model"));
  if (model.empty() && models.size() > 1)
    throw table.error(table.columns_line(), "model",
                      "the file has several models; choose one with --model" + name_hint("", models));
  if (model.empty()) model = models.front();
  if (std::ranges::find(models, model) == models.end())
    throw table.error(table.columns_line(), "model",
                      "there are no rows of model '" + model + "'" + name_hint(model, models));
  std::set<std::string> seen;
  std::vector<ProfiledLayer> layers;
  for (const CsvRow& row : table.rows()) {
    if (row.text("model") != model) continue;
    if (!seen.insert(row.text("node")).second)
      throw row.error("node", "there is already a row for '" + row.text("node") + "'; remove one");
    layers.push_back({row.text("operator"), milliseconds(row.number("forward_ms", {0, 1e9})),
                      milliseconds(row.number("backward_ms", {0, 1e9})),
                      first_number(table.file(), row.line(), "activation_bytes", row.text("activation_bytes")) / 4,
                      row.line()});
  }
  return import_layers(table.file(), layers, options);
}

KernelMeasurements import_pipedream_graph(const std::filesystem::path& path, const ImportOptions& options) {
  const std::string file = path.string();
  std::istringstream in(read_input_file(path));
  std::vector<ProfiledLayer> layers;
  std::set<std::string> nodes;
  std::string line;
  int number = 0;
  const auto fail = [&](const std::string& what) { return ConfigError(Location{file, number, 0}, "", what); };
  while (std::getline(in, line)) {
    ++number;
    if (line.empty()) continue;
    const auto dash = line.find(" -- ");
    if (dash == std::string::npos) throw fail("is neither a node nor an edge; is the file cut off?");
    if (line.front() == '\t') {
      for (const std::string& end : {line.substr(1, dash - 1), line.substr(dash + 4)})
        if (!nodes.contains(end))
          throw fail("names node '" + end.substr(0, 40) + "', which there is not; is the file cut off?");
      continue;
    }
    const auto figures = line.rfind(" -- ");
    if (figures == dash)
      throw fail("a node must read 'NAME -- LAYER -- forward_compute_time=..., ...'; is the file cut off?");
    if (!nodes.insert(line.substr(0, dash)).second)
      throw fail("node '" + line.substr(0, dash) + "' is described twice");
    const std::string settings = line.substr(figures + 4) + ",";
    const auto value = [&](const std::string& key) {
      const auto at = settings.find(key + "=");
      if (at == std::string::npos) throw fail("'" + key + "' is missing; is the file cut off?");
      const auto start = at + key.size() + 1;
      return first_number(file, number, key, settings.substr(start, settings.find(',', start) - start));
    };
    value("parameter_size");  // the last one: the line is whole
    layers.push_back({line.substr(dash + 4, figures - dash - 4), milliseconds(value("forward_compute_time")),
                      milliseconds(value("backward_compute_time")), value("activation_size") / 4, number});
  }
  if (layers.empty()) throw fail("has no nodes");
  return import_layers(file, layers, options);
}

}  // namespace epocast
