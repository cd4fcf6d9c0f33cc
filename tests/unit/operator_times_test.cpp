// Times of single operations: on a device that takes one second for an operation, a product or a convolution takes as
// many seconds as the graph counts operations, whatever shape was recovered from its operands.
#include "costmodels/operator_times.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>

#include "costmodels/fitted.hpp"
#include "costmodels/kernel_formula.hpp"
#include "sim/cost_model.hpp"
#include "sim/data_file.hpp"
#include "workloads/model_reader.hpp"
#include "workloads/operators/operator_graph_builder.hpp"

namespace epocast::operator_times_test {

namespace {

const std::filesystem::path kRoot = EPOCAST_SOURCE_DIR;

/// Operations at 1 FLOP/s and nothing else: no launches, no half sizes, memory without limit.
ComputeCalibration counting() {
  ComputeCalibration out;
  out.device = "counting";
  out.rates = {FlopPerSecond(1), BytesPerSecond(1e30), 1, Precision::fp32};
  for (const std::string family : {"gemm", "convolution"})
    for (const KernelPass pass : {KernelPass::forward, KernelPass::backward_data, KernelPass::backward_weights}) {
      KernelFit fit;
      fit.family = family;
      fit.pass = pass;
      for (const FitParameter& parameter : kernel_parameters(family, Precision::fp32))
        fit.parameters.push_back(
            {parameter.name, parameter.unit, parameter.name.find("efficiency") == std::string::npos ? 0.0 : 1.0, 0, 0});
      out.fits.push_back(fit);
    }
  return out;
}

}  // namespace

TEST_CASE("a product takes the operations that its graph counts") {
  // A layer's operations are shared out over its nodes: 2 k - 1 a value of a product where 2 k are timed, which is
  // 54 / 53 in VGG-16's first layer (k = 27); of a cell's, gates get up to 6 % (LSTM) and 1.3 % too few (E3D-LSTM).
  for (const auto& [network, most] : {std::pair{"e3d_lstm", 1.001},
                                      {"resnet50", 1.01},
                                      {"vgg16", 54. / 53 + 1e-6},
                                      {"gpt2", 1.01},
                                      {"word_rnn", 1.07}}) {
    INFO(network);
    const Model model =
        load_model_named(ConfigNode::load_text("model: " + std::string(network), "study.yaml").at("model"), kRoot);
    const OperatorGraph graph = build_operator_graph(model, 4, {});
    const std::vector<double> times = operator_times(graph, model, counting());
    int products = 0;
    double least_seen = 1, most_seen = 1;
    for (std::size_t n = 0; n < graph.size(); ++n) {
      const std::string type(graph.operation_of(n));
      if (graph.flop[n] <= 0 || !(type == "MatMul" || type == "BatchMatMul" || type.starts_with("Conv"))) continue;
      ++products;
      least_seen = std::min(least_seen, times[n] / graph.flop[n]);
      most_seen = std::max(most_seen, times[n] / graph.flop[n]);
    }
    CHECK(products > 20);
    CHECK(least_seen > 0.987);
    CHECK(most_seen < most);
  }
}

TEST_CASE("kernels of operations take as long together as the layers do") {
  // The cost model `fitted` has a kernel for each layer without products; so do fused kernels. What remains is what it
  // leaves out: biases' additions, heads that are split and joined, gradients that meet, three accesses of a
  // derivative where two are counted.
  const ComputeCalibration v100 = load_compute_calibration(kRoot / "costmodels" / "calibrations" / "v100.yaml");
  Device device;
  device.peak_rate = v100.rates.peak_rate;
  device.memory_bandwidth = v100.rates.memory_bandwidth;
  for (const auto& [network, batch] : {std::pair{"resnet50", 64}, {"vgg16", 64}, {"wrn", 16}, {"gpt2", 4}}) {
    INFO(network);
    const Model model =
        load_model_named(ConfigNode::load_text("model: " + std::string(network), "study.yaml").at("model"), kRoot);
    const OperatorGraph graph = build_operator_graph(
        model, batch,
        {.optimizer = Optimizer::sgd, .gradients = GradientUse::direct, .fused_norms = true, .fused_kernels = true});
    double operations = 0, layers = 0;
    for (const double seconds : operator_times(graph, model, v100)) operations += seconds;
    const Fitted fitted(v100, "v100", Optimizer::sgd, model, device);
    for (const Layer& layer : model.layers) {
      const PassTimes times = fitted.times(layer, batch, device);
      layers += (times.forward + times.backward_data + times.backward_weights + times.update).value;
    }
    CHECK(operations == Approx(layers).epsilon(0.1));
  }
}

}  // namespace epocast::operator_times_test
