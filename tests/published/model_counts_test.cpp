// The shipped models against published counts: parameters and weights exactly, activations and multiply-adds to the
// digits that were printed.
#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "workloads/model_reader.hpp"

namespace epocast::model_counts_test {

namespace {

Model shipped(const std::string& name) {
  return load_model(std::filesystem::path(EPOCAST_SOURCE_DIR) / "workloads" / "models" / (name + ".yaml"));
}

const Layer& layer(const Model& model, const std::string& name) {
  for (const Layer& candidate : model.layers)
    if (candidate.name == name) return candidate;
  FAIL("no layer " << name);
  return model.layers.front();
}

bool is_product(const Layer& each) {
  return each.kind == LayerKind::convolution || each.kind == LayerKind::fully_connected;
}

/// Multiply-adds of convolutions and fully connected layers, which is what published figures count.
double giga_macs(const Model& model) {
  double flop = 0;
  for (const Layer& each : model.layers)
    if (is_product(each)) flop += each.forward_flop;
  return flop / 2 / 1e9;
}

std::size_t tensors(const Model& model) {
  std::size_t count = 0;
  for (const Layer& each : model.layers) count += each.parameters.size();
  return count;
}

}  // namespace

TEST_CASE("parameters and multiply-adds of whole networks") {
  struct Published {
    std::string model;
    std::int64_t parameters;
    std::size_t tensors;
    double giga_macs;  ///< two digits after the point
  };
  const std::vector<Published> rows{
      // Simonyan and Zisserman 2015, Table 2: 138 M and 133 M; exact figures and GMAC: torchvision vgg16 and vgg11.
      {"vgg16", 138'357'544, 32, 15.47},
      {"vgg_a", 132'863'336, 22, 7.61},
      // torchvision resnet50; 53 convolutions, 53 x 2 of batch normalisation, weight and bias of fc: 161 tensors.
      {"resnet50", 25'557'032, 161, 4.09},
      // Sum over Eserol 2019, Table 2.2, with biases: conv 34,944 + 614,656 + 885,120 + 1,327,488 + 884,992,
      // fc 37,752,832 + 16,781,312 + 4,097,000. Multiply-adds: weights x positions, 1.135 G.
      {"alexnet", 62'378'344, 16, 1.14},
      // 784 x 512 + 512 + 512 x 512 + 512 + 512 x 10 + 10, as Keras' summary prints.
      {"mlp_mnist", 669'706, 6, 0.00},
  };
  for (const Published& row : rows) {
    INFO(row.model);
    const Model model = shipped(row.model);
    CHECK(model.parameter_count() == row.parameters);
    CHECK(tensors(model) == row.tensors);
    CHECK(std::abs(giga_macs(model) - row.giga_macs) <= 0.005);  // half of the last digit
  }
}

TEST_CASE("VGG-16 layer by layer: Eserol 2019, Table 5.13") {
  struct Row {
    std::string layer;
    Shape output;
    double printed_activations;  ///< values per image
    std::int64_t weights;        ///< biases excluded
  };
  const std::vector<Row> rows{
      {"input", {3, 224, 224}, 150e3, 0},
      {"conv1_1", {64, 224, 224}, 3.2e6, 1728},
      {"conv1_2", {64, 224, 224}, 3.2e6, 36864},
      {"pool1", {64, 112, 112}, 800e3, 0},
      {"conv2_1", {128, 112, 112}, 1.6e6, 73728},
      {"conv2_2", {128, 112, 112}, 1.6e6, 147456},
      {"pool2", {128, 56, 56}, 400e3, 0},
      {"conv3_1", {256, 56, 56}, 800e3, 294912},
      {"conv3_2", {256, 56, 56}, 800e3, 589824},
      {"conv3_3", {256, 56, 56}, 800e3, 589824},
      {"pool3", {256, 28, 28}, 200e3, 0},
      {"conv4_1", {512, 28, 28}, 400e3, 1179648},
      {"conv4_2", {512, 28, 28}, 400e3, 2359296},
      {"conv4_3", {512, 28, 28}, 400e3, 2359296},
      {"pool4", {512, 14, 14}, 100e3, 0},
      {"conv5_1", {512, 14, 14}, 100e3, 2359296},
      {"conv5_2", {512, 14, 14}, 100e3, 2359296},
      {"conv5_3", {512, 14, 14}, 100e3, 2359296},
      {"pool5", {512, 7, 7}, 25e3, 0},
      {"fc6", {4096, 1, 1}, 4096, 102760448},
      {"fc7", {4096, 1, 1}, 4096, 16777216},
      {"fc8", {1000, 1, 1}, 1000, 4096000},
  };
  const Model model = shipped("vgg16");
  std::int64_t activations = 0;
  for (const Row& row : rows) {
    INFO(row.layer);
    const Layer& each = layer(model, row.layer);
    CHECK(each.output == row.output);
    // Printed in round numbers: 802,816 as 800K, 150,528 as 150K.
    CHECK(each.output.values() == Approx(row.printed_activations).epsilon(0.004));
    CHECK((each.parameters.empty() ? 0 : each.parameters.front().values) == row.weights);
    activations += each.output.values();
  }
  // Ours keeps the outputs of the two dropouts and of softmax (in place of fc8's) beside the table's rows.
  CHECK(model.activation_values() == activations + 2 * 4096);
  // The table's total, 93 MB per image, is 24 M values; its rows sum to 15.2 M values = 60.9 MB (61.0e6 B / 2^20 = 58.1
  // MiB).
  CHECK(4e-6 * static_cast<double>(activations) == Approx(60.95).epsilon(1e-3));
}

TEST_CASE("VGG-16 convolutions that DeePa times: its Table 1, C1 and C2") {
  const Model model = shipped("vgg16");
  const Layer& c1 = layer(model, "conv2_2");  // its "Conv4"
  CHECK(c1.input == Shape{128, 112, 112});
  CHECK(c1.output.channels == 128);
  for (const char* name : {"conv4_2", "conv4_3"}) {  // its "Conv9, Conv10"; it also lists conv8, which has 256 inputs
    CHECK(layer(model, name).input == Shape{512, 28, 28});
    CHECK(layer(model, name).output.channels == 512);
  }
}

TEST_CASE("AlexNet layer by layer: Eserol 2019, Table 2.2") {
  const Model model = shipped("alexnet");
  const std::vector<std::pair<std::string, Shape>> rows{
      {"input", {3, 227, 227}}, {"conv1", {96, 55, 55}},         {"pool1", {96, 27, 27}},  {"conv2", {256, 27, 27}},
      {"pool2", {256, 13, 13}}, {"conv3", {384, 13, 13}},        {"conv4", {384, 13, 13}}, {"conv5", {256, 13, 13}},
      {"pool5", {256, 6, 6}},   {"pool5.flatten", {9216, 1, 1}}, {"fc6", {4096, 1, 1}},    {"fc7", {4096, 1, 1}},
      {"fc8", {1000, 1, 1}},
  };
  for (const auto& [name, shape] : rows) {
    INFO(name);
    CHECK(layer(model, name).output == shape);
  }
}

}  // namespace epocast::model_counts_test
