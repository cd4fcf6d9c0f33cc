#include "workloads/microbench/loops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace epocast {
namespace {

// Small, so that a step repeated thousands of times on the same data stays in the range of ordinary numbers.
constexpr float kLearningRate = 1e-6F;
constexpr float kMomentum = 0.9F;
constexpr float kBeta1 = 0.9F, kBeta2 = 0.999F, kEpsilon = 1e-8F;

using Index = std::int64_t;

Index values_of(const KernelTensor& tensor) { return static_cast<Index>(tensor.desc.get_size() / sizeof(float)); }

/// Places differ in all bits after this (Wang's integer hash).
std::uint32_t hash(std::uint32_t x) {
  x = (x ^ 61U) ^ (x >> 16U);
  x *= 9U;
  x ^= x >> 4U;
  x *= 0x27d4eb2dU;
  return x ^ (x >> 15U);
}

}  // namespace

void add_update(Kernel& kernel, const Parameters& p, Optimizer optimizer) {
  const Index n = values_of(p.value);
  std::vector<KernelTensor> reads{p.gradient};
  std::vector<KernelTensor> writes{p.value};
  writes.insert(writes.end(), p.state.begin(), p.state.end());
  Buffer* value = p.value.buffer;
  Buffer* gradient = p.gradient.buffer;
  Buffer* first = p.state.empty() ? nullptr : p.state[0].buffer;
  Buffer* second = p.state.size() < 2 ? nullptr : p.state[1].buffer;
  kernel.add(
      fmt::format("update {}", to_string(optimizer)),
      [=](dnnl::stream&) {
        float* __restrict w = value->floats();
        const float* __restrict g = gradient->floats();
        if (optimizer == Optimizer::sgd) {
#pragma omp parallel for simd
          for (Index i = 0; i < n; ++i) w[i] -= kLearningRate * g[i];
        } else if (optimizer == Optimizer::momentum) {
          float* __restrict v = first->floats();
#pragma omp parallel for simd
          for (Index i = 0; i < n; ++i) {
            v[i] = kMomentum * v[i] + g[i];
            w[i] -= kLearningRate * v[i];
          }
        } else {
          float* __restrict m = first->floats();
          float* __restrict v = second->floats();
#pragma omp parallel for simd
          for (Index i = 0; i < n; ++i) {
            m[i] = kBeta1 * m[i] + (1 - kBeta1) * g[i];
            v[i] = kBeta2 * v[i] + (1 - kBeta2) * g[i] * g[i];
            w[i] -= kLearningRate * m[i] / (std::sqrt(v[i]) + kEpsilon);
          }
        }
      },
      reads, writes);
}

void add_cross_entropy_gradient(Kernel& kernel, const KernelTensor& probabilities, const KernelTensor& labels,
                                const KernelTensor& gradient) {
  const Index batch = probabilities.desc.dims()[0];
  const Index classes = values_of(probabilities) / batch;
  kernel.add("cross entropy gradient",
             [=, p = probabilities.buffer, l = labels.buffer, g = gradient.buffer](dnnl::stream&) {
               const float scale = 1.0F / static_cast<float>(batch);
               const float* from = p->floats();
               float* to = g->floats();
#pragma omp parallel for simd
               for (Index i = 0; i < batch * classes; ++i) to[i] = scale * from[i];
               for (Index i = 0; i < batch; ++i) to[i * classes + l->integers()[i]] -= scale;
             },
             {probabilities, labels}, {gradient});
}

void add_dropout(Kernel& kernel, const KernelTensor& from, const KernelTensor& mask, const KernelTensor& to) {
  const Index n = values_of(from);
  kernel.add("dropout",
             [=, x = from.buffer, m = mask.buffer, y = to.buffer, calls = std::uint32_t{0}](dnnl::stream&) mutable {
               const std::uint32_t key = hash(++calls);
               const float* in = x->floats();
               float* out = y->floats();
               char* keep = m->data();
#pragma omp parallel for simd
               for (Index i = 0; i < n; ++i) {
                 const std::uint32_t bit = hash(static_cast<std::uint32_t>(i) ^ key) & 1U;
                 keep[i] = static_cast<char>(bit);
                 out[i] = 2 * in[i] * static_cast<float>(bit);
               }
             },
             {from}, {mask, to});
}

void add_dropout_gradient(Kernel& kernel, const KernelTensor& gradient, const KernelTensor& mask,
                          const KernelTensor& to) {
  const Index n = values_of(gradient);
  kernel.add("dropout gradient",
             [=, x = gradient.buffer, m = mask.buffer, y = to.buffer](dnnl::stream&) {
               const float* in = x->floats();
               const char* keep = m->data();
               float* out = y->floats();
#pragma omp parallel for simd
               for (Index i = 0; i < n; ++i) out[i] = 2 * in[i] * static_cast<float>(keep[i]);
             },
             {gradient, mask}, {to});
}

void add_product(Kernel& kernel, const KernelTensor& a, const KernelTensor& b, const KernelTensor& to) {
  const Index n = values_of(to);
  kernel.add("product",
             [=, x = a.buffer, y = b.buffer, z = to.buffer](dnnl::stream&) {
               const float* p = x->floats();
               const float* q = y->floats();
               float* out = z->floats();
#pragma omp parallel for simd
               for (Index i = 0; i < n; ++i) out[i] = p[i] * q[i];
             },
             {a, b}, {to});
}

void add_gather(Kernel& kernel, const KernelTensor& table, const KernelTensor& indices, std::int64_t units,
                const KernelTensor& to) {
  const Index rows = values_of(to) / units;
  kernel.add("gather",
             [=, t = table.buffer, at = indices.buffer, out = to.buffer](dnnl::stream&) {
#pragma omp parallel for
               for (Index i = 0; i < rows; ++i)
                 std::copy_n(t->floats() + at->integers()[i] * units, units, out->floats() + i * units);
             },
             {table, indices}, {to});
}

void add_scatter(Kernel& kernel, const KernelTensor& gradient, const KernelTensor& indices, std::int64_t units,
                 const KernelTensor& table) {
  const Index rows = values_of(gradient) / units;
  kernel.add("scatter",
             [=, g = gradient.buffer, at = indices.buffer, t = table.buffer](dnnl::stream&) {
               float* to = t->floats();
    // Each thread has its columns, so that no two add to the same value.
#pragma omp parallel for
               for (Index part = 0; part < 16; ++part)
                 for (Index i = 0; i < rows; ++i)
                   for (Index u = units * part / 16; u < units * (part + 1) / 16; ++u)
                     to[at->integers()[i] * units + u] += g->floats()[i * units + u];
             },
             {gradient, indices}, {table});
}

void add_clear(Kernel& kernel, const KernelTensor& tensor) {
  const Index n = values_of(tensor);
  kernel.add("clear",
             [=, t = tensor.buffer](dnnl::stream&) {
               float* to = t->floats();
#pragma omp parallel for simd
               for (Index i = 0; i < n; ++i) to[i] = 0;
             },
             {}, {tensor});
}

void add_positions(Kernel& kernel, const KernelTensor& from, const KernelTensor& table, const KernelTensor& to) {
  const Index n = values_of(to);
  const Index period = n / to.desc.dims()[0];
  kernel.add("positions",
             [=, x = from.buffer, t = table.buffer, y = to.buffer](dnnl::stream&) {
#pragma omp parallel for simd
               for (Index i = 0; i < n; ++i) y->floats()[i] = x->floats()[i] + t->floats()[i % period];
             },
             {from, table}, {to});
}

void add_positions_gradient(Kernel& kernel, const KernelTensor& gradient, const KernelTensor& table) {
  const Index samples = gradient.desc.dims()[0];
  const Index period = values_of(gradient) / samples;
  kernel.add("positions gradient",
             [=, g = gradient.buffer, t = table.buffer](dnnl::stream&) {
#pragma omp parallel for simd
               for (Index i = 0; i < period; ++i) {
                 float sum = 0;
                 for (Index s = 0; s < samples; ++s) sum += g->floats()[s * period + i];
                 t->floats()[i] = sum;
               }
             },
             {gradient}, {table});
}

}  // namespace epocast
