// The shipped models against published sizes, row by row of model_zoo.csv: parameters exactly where the source is
// exact, else within the tolerance (relative) that its rounding or its known inconsistency asks for.
//
// multiply_adds: of convolutions, fully connected layers, LSTMs and attention, which is what published figures count.
// forward_over_formula: FLOP of one sequence over 24 s l h^2 (1 + s/6h) + 2 s h V; what is left is normalisation, GELU
// and softmax. forward_per_parameter_token: FLOP of one sequence over tokens and parameters.
#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "sim/data_file.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::model_zoo_test {

namespace {

const std::filesystem::path kRoot = EPOCAST_SOURCE_DIR;
const std::filesystem::path kModels = kRoot / "workloads" / "models";

/// The fields of a line of CSV; a field in quotes may contain commas.
std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> out{""};
  bool quoted = false;
  for (char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

std::vector<std::vector<std::string>> rows() {
  std::ifstream in(kRoot / "tests" / "published" / "model_zoo.csv");
  std::vector<std::vector<std::string>> out;
  std::string line;
  while (std::getline(in, line)) out.push_back(fields(line));
  REQUIRE(out.size() > 1);
  out.erase(out.begin());
  return out;
}

Model load(const std::string& name, const std::string& settings) {
  const std::string text = "model: {name: " + name + (settings.empty() ? "" : ", " + settings) + "}";
  return load_model_named(ConfigNode::load_text(text, "study.yaml").at("model"), kRoot);
}

double multiply_adds(const Model& model) {
  double flop = 0;
  for (const Layer& each : model.layers)
    if (multiplies_weights(each.kind) || each.kind == LayerKind::attention) flop += each.forward_flop;
  return flop / 2;
}

/// Narayanan et al. 2021, equation 3 without backward: layers, width and length read off the model.
double transformer_flop(const Model& model) {
  double layers = 0;
  for (const Layer& each : model.layers)
    if (each.kind == LayerKind::attention) ++layers;
  const Layer& head = model.layers[model.layers.size() - 2];
  const auto length = static_cast<double>(head.output.width);
  const auto width = static_cast<double>(head.input.channels);
  const auto vocabulary = static_cast<double>(head.output.channels);
  return 24 * length * layers * width * width * (1 + length / (6 * width)) + 2 * length * width * vocabulary;
}

double quantity(const Model& model, const std::string& name) {
  if (name == "parameters") return static_cast<double>(model.parameter_count());
  if (name == "multiply_adds") return multiply_adds(model);
  if (name == "forward_over_formula") return model.forward_flop() / transformer_flop(model);
  if (name == "forward_per_parameter_token")
    return model.forward_flop() / static_cast<double>(model.parameter_count()) /
           static_cast<double>(model.layers.back().output.width);
  FAIL("unknown quantity " << name);
  return 0;
}

}  // namespace

TEST_CASE("the zoo has the published sizes") {
  for (const auto& row : rows()) {
    REQUIRE(row.size() == 7);
    INFO(row[0] << " {" << row[1] << "} " << row[2] << ", source: " << row[6]);
    const double unit = row[3].empty() || row[3] == "FLOP" ? 1 : std::stod(row[3]);
    const double published = std::stod(row[4]) * unit;
    const double found = quantity(load(row[0], row[1]), row[2]);
    CHECK(std::abs(found - published) <= std::stod(row[5]) * published);
    CHECK(!row[6].empty());
  }
}

TEST_CASE("every shipped model has a published size, a description and a source") {
  std::set<std::string> checked;
  for (const auto& row : rows()) checked.insert(row[0]);
  checked.insert("edsr_restoration");  // nobody published its size
  for (const std::string& name : data_file_names(kModels, ".yaml")) {
    INFO(name);
    CHECK(checked.contains(name));
    const Model model = load_model(kModels / (name + ".yaml"));
    CHECK(model.name == name);
    CHECK(!model.description.empty());
    CHECK(!model.source.empty());
  }
}

TEST_CASE("convolutions that DeePa times: its Table 1, C3 to C8") {
  struct Row {
    const char* model;
    const char* layer;
    Shape input;
    std::int64_t filters;
    int kernel;
  };
  const std::vector<Row> table{
      {"inception_v3", "a1.bpool.c.conv", {192, 35, 35}, 32, 1},  // its C3 has 64 filters: b1x1
      {"inception_v3", "a1.b1x1.c.conv", {192, 35, 35}, 64, 1},
      {"inception_v3", "a1.b5x5_2.conv", {48, 35, 35}, 64, 5},
      {"alexnet_owt", "conv2", {64, 27, 27}, 192, 5},
      {"alexnet_owt", "conv5", {256, 13, 13}, 256, 3},
      {"inception_v3", "stem3.c.conv", {32, 147, 147}, 64, 3},
      {"inception_v3", "e2.bdbl_2.c.conv", {448, 8, 8}, 384, 3},
  };
  for (const Row& row : table) {
    INFO(row.model << " " << row.layer);
    bool found = false;
    for (const Layer& each : load(row.model, "").layers) {
      if (each.name != row.layer) continue;
      found = true;
      CHECK(each.input == row.input);
      CHECK(each.output.channels == row.filters);
      CHECK(each.kernel_height == row.kernel);
    }
    CHECK(found);
  }
}

TEST_CASE("Inception-v3 has the 120 nodes of DeePa's graph") {
  int nodes = 0;
  for (const Layer& each : load("inception_v3", "").layers)
    if (each.kind == LayerKind::convolution || each.kind == LayerKind::pooling || each.kind == LayerKind::concat ||
        each.kind == LayerKind::fully_connected)
      ++nodes;
  CHECK(nodes - 4 == 120);  // modules e1 and e2 concatenate twice more inside, which DeePa need not count
}

}  // namespace epocast::model_zoo_test
