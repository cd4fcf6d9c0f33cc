#pragma once
// Steps of training that oneDNN has no primitive for: loops of ours, threaded with OpenMP.

#include <cstdint>

#include "sim/memory.hpp"
#include "workloads/microbench/executed_step.hpp"

namespace epocast {

/// p -= rate * step(gradient), elementwise over the whole buffer. Momentum: Polyak 1964, as in common frameworks
/// (v = 0.9 v + g). Adam: Kingma and Ba 2015, Algorithm 1, without its bias correction, which is two scalars.
void add_update(Kernel& kernel, const Parameters& parameters, Optimizer optimizer);

/// Gradient of the mean cross-entropy of `batch` samples: (probability - 1 at the label) / batch.
void add_cross_entropy_gradient(Kernel& kernel, const KernelTensor& probabilities, const KernelTensor& labels,
                                const KernelTensor& gradient);

/// Zeroes half of the values, chosen by a hash of place and a count of calls, and doubles the others; remembers which.
void add_dropout(Kernel& kernel, const KernelTensor& from, const KernelTensor& mask, const KernelTensor& to);
void add_dropout_gradient(Kernel& kernel, const KernelTensor& gradient, const KernelTensor& mask,
                          const KernelTensor& to);

/// to = a * b.
void add_product(Kernel& kernel, const KernelTensor& a, const KernelTensor& b, const KernelTensor& to);

/// Copies the rows of `table` (units values each) that `indices` names.
void add_gather(Kernel& kernel, const KernelTensor& table, const KernelTensor& indices, std::int64_t units,
                const KernelTensor& to);
/// Adds the rows of `gradient` to those of `table` that `indices` names.
void add_scatter(Kernel& kernel, const KernelTensor& gradient, const KernelTensor& indices, std::int64_t units,
                 const KernelTensor& table);
void add_clear(Kernel& kernel, const KernelTensor& tensor);
/// to = from + table, the table once for each sample; and its gradient, the sum over samples.
void add_positions(Kernel& kernel, const KernelTensor& from, const KernelTensor& table, const KernelTensor& to);
void add_positions_gradient(Kernel& kernel, const KernelTensor& gradient, const KernelTensor& table);

}  // namespace epocast
