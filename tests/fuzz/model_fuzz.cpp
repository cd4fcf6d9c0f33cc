// Fuzz target: any bytes either load as a model or throw ConfigError; what loads keeps the invariants that everything
// after relies on. Links with clang's -fsanitize=fuzzer or with driver.cpp; seeds are small
// files of every layer type; the shipped models may be given too.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/error.hpp"
#include "tests/fuzz/property.hpp"
#include "workloads/model_reader.hpp"

using namespace epocast;
using fuzz::require;

namespace {

void check_layer(const Layer& layer, int index) {
  require((index == 0) == layer.inputs.empty(), "the input layer alone has no inputs");
  for (int input : layer.inputs) require(input >= 0 && input < index, "inputs come before their readers");
  require(layer.output.channels > 0 && layer.output.height > 0 && layer.output.width > 0 && layer.output.depth > 0,
          "shapes are positive");
  require(layer.steps >= 1 && layer.inner_values >= 0, "recurrent layers have steps");
  require(layer.tied_to < index, "a weight is shared with an earlier layer");
  for (double flop : {layer.forward_flop, layer.backward_data_flop, layer.backward_weights_flop})
    require(std::isfinite(flop) && flop >= 0, "FLOP counts are finite");
  for (const auto& tensor : layer.parameters) require(tensor.values > 0, "tensors have values");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const Model model = parse_model({reinterpret_cast<const char*>(data), size}, "fuzz.yaml");
    require(model.layers.size() >= 2, "a model has a layer beside its input");
    for (std::size_t i = 0; i < model.layers.size(); ++i) check_layer(model.layers[i], static_cast<int>(i));
    require(model.parameter_count() >= 0, "the parameter count does not overflow");
    require(model.activation_values() > 0, "the activation count does not overflow");
  } catch (const ConfigError& error) {
    require(!std::string_view(error.what()).empty(), "errors say something");
  }
  return 0;
}
