#include "costmodels/operator_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "costmodels/kernel_formula.hpp"
#include "costmodels/layer_kernels.hpp"
#include "sim/error.hpp"

namespace epocast {
namespace {

constexpr double kBytesPerOperand = 4;
constexpr double kOperatorMemoryEfficiency = 0.8;  // as fitted.cpp
constexpr double kOperatorOverhead = 5e-6;         // s a kernel; engineering estimate, as fitted.cpp

std::int64_t whole(double x) { return std::max<std::int64_t>(1, std::llround(x)); }

class Times {
 public:
  Times(const OperatorGraph& graph, const Model& model, const ComputeCalibration& calibration)
      : graph_(graph), model_(model), calibration_(calibration) {}

  double of(std::size_t n) {
    if (!runs(graph_.phase[n])) return 0;
    const std::string_view type = graph_.operation_of(n);
    const bool is_product = type == "MatMul" || type == "BatchMatMul";
    const bool is_convolution = type.starts_with("Conv2D") || type.starts_with("Conv3D");
    if (is_product || is_convolution) {
      if (graph_.flop[n] <= 0) return 0;
      return kernel_time(is_product ? product(n, type == "MatMul") : convolution(n, type));
    }
    const double bytes = graph_.bytes_read[n] + graph_.bytes_written[n];
    if (bytes < kHostBytes || graph_.bytes_written[n] == 0) return 0;
    return kOperatorOverhead + bytes / (kOperatorMemoryEfficiency * calibration_.rates.memory_bandwidth.value);
  }

 private:
  struct Operands {
    double first = 1, second = 1, result = 1;  ///< values
  };

  /// Of the inputs that carry data, the largest two in their order; gradients of convolutions read shapes too.
  Operands operands(std::size_t n) const {
    std::array<double, 2> size{0, 0};
    std::array<std::uint32_t, 2> at{0, 0};
    for (std::uint32_t i = graph_.in_begin[n]; i < graph_.in_begin[n + 1]; ++i) {
      const double bytes = graph_.edge_bytes[i];
      const std::size_t smaller = size[0] < size[1] ? 0 : 1;
      if (bytes <= size[smaller]) continue;
      size[smaller] = bytes;
      at[smaller] = i;
    }
    if (at[0] > at[1]) std::swap(size[0], size[1]);
    return {std::max(1.0, size[0] / kBytesPerOperand), std::max(1.0, size[1] / kBytesPerOperand),
            std::max(1.0, graph_.output_bytes[n] / kBytesPerOperand)};
  }

  KernelShape product(std::size_t n, bool is_single) const {
    const Operands o = operands(n);
    const double all = o.first * o.second * o.result;
    const double count = is_single ? 1 : std::max(1.0, std::round(4 * all / (graph_.flop[n] * graph_.flop[n])));
    // Row by row, as TensorFlow has it: samples x inputs times inputs x outputs. Column by column n and m change
    // places.
    const double rows = std::sqrt(o.first * o.result / o.second / count);
    const double inner = std::sqrt(o.first * o.second / o.result / count);
    const double columns = std::sqrt(o.second * o.result / o.first / count);
    GemmShape shape{whole(columns), whole(rows), whole(inner), false, false, whole(count)};
    const bool is_backward = graph_.phase[n] == OperatorPhase::backward;
    shape.transpose_a = !is_backward;  // weights as layer_kernels.cpp has them
    const bool is_weights = is_backward && makes_parameters(n);
    shape.transpose_b = is_weights;
    return {shape, !is_backward ? KernelPass::forward
                                : (is_weights ? KernelPass::backward_weights : KernelPass::backward_data)};
  }

  /// Whether a product of the backward pass does not depend on what the other gradient made: the second of the pair.
  bool makes_parameters(std::size_t n) const {
    const Operands o = operands(n);
    return o.result < o.first && o.result < o.second;
  }

  KernelShape convolution(std::size_t n, std::string_view type) const {
    const Layer& layer = model_.layers[graph_.layer[n]];
    const Operands o = operands(n);
    KernelPass pass = KernelPass::forward;
    double in = o.first, weights = o.second, out = o.result;
    if (type.ends_with("BackpropInput")) {
      pass = KernelPass::backward_data;  // reads weights, gradient
      in = o.result;
      weights = o.first;
      out = o.second;
    } else if (type.ends_with("BackpropFilter")) {
      pass = KernelPass::backward_weights;  // reads input, gradient
      in = o.first;
      weights = o.result;
      out = o.second;
    }
    if (layer.kind == LayerKind::convolution) return {convolution_shape(layer, graph_.batch), pass};
    ConvolutionShape shape;
    shape.groups = layer.groups;
    shape.stride = layer.stride;
    // One of several convolutions of a cell, which keep the size: in / out = channels / filters, weights = taps
    // channels filters, with the cell's taps or one.
    const double cell_taps = static_cast<double>(layer.kernel_depth) * layer.kernel_height * layer.kernel_width;
    const double inner = graph_.flop[n] / (2 * out);  // taps x channels, up to the cell's share of other work
    const double by_size = std::sqrt(weights * in / out);
    const bool one_tap =
        std::abs(std::log(inner / by_size)) < std::abs(std::log(inner / (by_size * std::sqrt(cell_taps))));
    const double taps = one_tap ? 1 : cell_taps;
    const double channels = std::sqrt(weights / taps * in / out);
    const double filters = std::sqrt(weights / taps * out / in);
    const double plane = static_cast<double>(layer.output.height) * layer.output.width;
    shape.height = shape.out_height = layer.output.height;
    shape.width = shape.out_width = layer.output.width;
    shape.batch = whole(in / (channels * plane));
    shape.channels = whole(channels * (one_tap ? 1 : layer.kernel_depth));
    shape.filters = whole(filters);
    shape.kernel_height = one_tap ? 1 : layer.kernel_height;
    shape.kernel_width = one_tap ? 1 : layer.kernel_width;
    return {shape, pass};
  }

  double kernel_time(const KernelShape& shape) {
    const auto [found, is_new] =
        known_.try_emplace(std::string(to_string(shape.pass)) + shape.family() + shape.text(), 0);
    if (!is_new) return found->second;
    const KernelFit* fit = calibration_.find(shape.family(), shape.pass);
    double share = 1;
    if (fit == nullptr && shape.pass != KernelPass::forward) {
      fit = calibration_.find(shape.family(), KernelPass::backward);
      share = 0.5;
    }
    if (fit == nullptr)
      throw ConfigError(fmt::format("the calibration of {} has no {} times of operator {}", calibration_.device,
                                    to_string(shape.pass), shape.family()));
    return found->second = share * fit->time(kernel_work(shape), calibration_.rates);
  }

  const OperatorGraph& graph_;
  const Model& model_;
  const ComputeCalibration& calibration_;
  std::map<std::string, double> known_;  ///< graphs repeat few shapes many times
};

}  // namespace

std::vector<double> operator_times(const OperatorGraph& graph, const Model& model,
                                   const ComputeCalibration& calibration) {
  Times times(graph, model, calibration);
  std::vector<double> out(graph.size());
  for (std::size_t n = 0; n < out.size(); ++n) out[n] = times.of(n);
  return out;
}

void anchor_to_layers(const OperatorGraph& graph, const WorkloadTrace& trace, std::vector<double>& times) {
  constexpr std::size_t kPassesOfOperator = 3;
  const auto pass = [&](std::size_t n) {
    switch (graph.phase[n]) {
      case OperatorPhase::forward: return 0U;
      case OperatorPhase::backward: return 1U;
      default: return 2U;
    }
  };
  std::vector<std::array<double, kPassesOfOperator>> sum(graph.layers.size()), scale(graph.layers.size());
  for (std::size_t n = 0; n < times.size(); ++n) sum[graph.layer[n]][pass(n)] += times[n];
  for (auto& each : scale) each.fill(1);
  for (std::size_t l = 0; l < trace.layers.size() && l < graph.layers.size(); ++l) {
    const LayerTimes& wanted = trace.layers[l].times;
    const double target[kPassesOfOperator] = {
        wanted.forward.longest().value, wanted.backward_data.longest().value + wanted.backward_weights.longest().value,
        wanted.update.longest().value};
    for (std::size_t p = 0; p < kPassesOfOperator; ++p)
      if (sum[l][p] > 0 && target[p] > 0) scale[l][p] = target[p] / sum[l][p];
  }
  for (std::size_t n = 0; n < times.size(); ++n) times[n] *= scale[graph.layer[n]][pass(n)];
}

}  // namespace epocast
