#pragma once
// The distinct kernels of models: what any program that measures for epocast has to time.

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "costmodels/kernel_shape.hpp"
#include "sim/memory.hpp"
#include "sim/model.hpp"
#include "sim/precision.hpp"

namespace epocast {

/// The kernel of one layer in one pass of a training step: a pass of KernelPass, or "gradient_sum" (the gradients of
/// all readers of the layer's output) or "update". None if there is no such kernel.
std::optional<KernelShape> step_kernel(const Model& model, int layer, std::int64_t batch, const std::string& pass,
                                       Optimizer optimizer);

/// Writes a table with a row for each distinct kernel: operator, pass and shape as measurements have them, then all
/// that a program needs to run it. Layers that differ only in what their shape does not tell (padding, which function)
/// have rows of their own. In fp32 a layer is one kernel in each pass; in other formats it is the kernels that training
/// on matrix units runs (layer_kernels.hpp, Traffic::kernels, fused attention).
void write_kernel_list(std::ostream& out, const std::vector<Model>& models, const std::vector<std::int64_t>& batches,
                       Optimizer optimizer, Precision precision = Precision::fp32);

}  // namespace epocast
