#include "costmodels/im2col.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace epocast {
namespace {

constexpr double kBytesPerValue = 4;  // fp32

/// The kernels of other layers: a calibration without convolutions will do.
Model without_convolutions(const Model& model) {
  Model out = model;
  std::erase_if(out.layers, [](const Layer& layer) { return layer.kind == LayerKind::convolution; });
  return out;
}

/// The calibration itself, if it can tell the time of a matrix product.
ComputeCalibration with_products(ComputeCalibration calibration, const ConfigNode& name) {
  if (calibration.find("gemm", KernelPass::forward) != nullptr) return calibration;
  throw name.error(fmt::format("calibration '{}' has no times of matrix products (operator gemm); use one that has",
                               name.as_string()));
}

bool needs_columns(const Layer& layer) {
  return layer.kernel_height * layer.kernel_width * layer.kernel_depth > 1 || layer.stride > 1;
}

}  // namespace

Im2col::Im2col(ComputeCalibration calibration, const ConfigNode& name, const Im2colOptions& options, const Model& model,
               const Device& device)
    : calibration_(with_products(std::move(calibration), name)),
      name_(name.as_string()),
      others_(calibration_, name_, options.optimizer, without_convolutions(model), device, options.update_kernels),
      options_(options) {}

Seconds Im2col::products(const Layer& layer, const GemmShape& shape, KernelPass pass) const {
  const KernelFit& fit = *calibration_.find("gemm", KernelPass::forward);
  return Seconds(fit.time(kernel_work({shape, pass}), calibration_.rates) * layer.groups);
}

/// At least how long it takes to move so much when the images are shared out among the cores.
Seconds Im2col::loop_over_images(Bytes moved, std::int64_t batch, const Device& device) const {
  if (!(options_.core_bandwidth.value > 0)) return Seconds(0);
  const auto busy_cores = static_cast<double>(std::min<std::int64_t>(batch, device.cores));
  return moved / (options_.core_bandwidth * busy_cores);
}

Seconds Im2col::loop_over_images(const Layer& layer, std::int64_t batch, KernelPass pass, const Device& device) const {
  const auto kernel = layer_kernel(layer, batch, pass);
  if (!kernel || std::string(kernel->family()) != "memory") return Seconds(0);
  return loop_over_images(Bytes(kernel_work(*kernel).bytes), batch, device);
}

PassTimes Im2col::times(const Layer& layer, std::int64_t batch, const Device& device) const {
  PassTimes times;
  if (layer.kind != LayerKind::convolution) {
    times = others_.times(layer, batch, device);
    times.forward = std::max(times.forward, loop_over_images(layer, batch, KernelPass::forward, device));
    times.backward_data =
        std::max(times.backward_data, loop_over_images(layer, batch, KernelPass::backward_data, device));
    return times;
  }
  // In a transposed convolution input and output change places, and so do forward and backward.
  const bool transposed = is_transposed(layer);
  const Shape& read = transposed ? layer.output : layer.input;
  const Shape& made = transposed ? layer.input : layer.output;
  const std::int64_t filters = made.channels / layer.groups;
  const std::int64_t window =
      read.channels / layer.groups * layer.kernel_height * layer.kernel_width * layer.kernel_depth;
  const std::int64_t positions = batch * made.positions();
  const double values = needs_columns(layer) ? static_cast<double>(batch * read.values()) +
                                                   static_cast<double>(layer.groups * window * positions)
                                             : 0;
  const Bytes moved(kBytesPerValue * values);
  const Seconds layout = std::max(moved / (calibration_.rates.memory_bandwidth * options_.memory_efficiency),
                                  loop_over_images(moved, batch, device));

  // Row-major matrices as the paper has them: activations are channels x positions, weights filters x window.
  const Seconds gathers = layout + products(layer, {filters, positions, window, false, false}, KernelPass::forward);
  const Seconds spreads =
      products(layer, {window, positions, filters, true, false}, KernelPass::backward_data) + layout;
  times.forward = transposed ? spreads : gathers;
  if (layer.backward_data_flop > 0) times.backward_data = transposed ? gathers : spreads;
  if (layer.backward_weights_flop > 0)
    times.backward_weights =
        layout + products(layer, {filters, window, positions, false, true}, KernelPass::backward_weights);
  times.update = others_.update(layer);
  return times;
}

std::vector<std::string> Im2col::caveats(std::int64_t batch) const { return others_.caveats(batch); }

}  // namespace epocast
