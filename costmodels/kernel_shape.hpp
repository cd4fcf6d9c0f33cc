#pragma once
// What a kernel computes, apart from the device that computes it: the work measures that its time depends on.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/model.hpp"

namespace epocast {

enum class KernelPass {
  forward,
  backward_data,
  backward_weights,
  backward,  ///< both gradients, where a profile does not tell them apart
};
const char* to_string(KernelPass pass);
std::vector<std::string> kernel_pass_names();
/// Throws std::invalid_argument with the nearest name as a hint.
KernelPass parse_kernel_pass(std::string_view name);

/// Direct convolution of a batch.
struct ConvolutionShape {
  std::int64_t batch = 1, channels = 1, height = 1, width = 1, filters = 1, kernel_height = 1, kernel_width = 1;
  std::int64_t out_height = 1, out_width = 1, stride = 1, groups = 1;
};

/// C (m x n) = A (m x k) B (k x n), column by column as BLAS has it. A fully connected layer's forward pass has m
/// outputs, n samples and k inputs. `count` independent ones of the same shape run side by side, as the heads of
/// attention do.
struct GemmShape {
  std::int64_t m = 1, n = 1, k = 1;
  bool transpose_a = false, transpose_b = false;
  std::int64_t count = 1;
};

/// A recurrent layer over a whole sequence, without the product with its inputs. gates: 1 vanilla, 3 GRU, 4 LSTM.
struct RecurrentShape {
  std::int64_t gates = 1, hidden = 1, batch = 1, steps = 1;
};

/// A layer that moves data rather than computing: pooling, normalisation, activation, ...
struct MemoryShape {
  std::string op;             ///< layer kind
  std::int64_t values = 1;    ///< read and written, each counted once, for the batch
  std::int64_t channels = 0;  ///< of batch normalisation, over which its kernels are divided; 0: unknown
};

/// Attention in one kernel (Dao et al. 2022): scores, mask, softmax and weighted sum of every head, whose scores never
/// reach memory. Fewer heads of keys and values than of queries: each is read by several (Ainslie et al. 2023). The
/// backward pass is one kernel too.
struct AttentionShape {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1;
  std::int64_t key_features = 1, value_features = 1;  ///< of one head
  /// Position i reads positions up to i only. Fewer queries than keys are a device's share of as many queries as keys,
  /// dealt out so that all shares are equal in work: a query reads (keys + 1) / 2 positions on average.
  bool causal = false;
  bool cached = false;  ///< writes keys and values once more, to an inference engine's cache, as some were measured
};

struct KernelShape {
  std::variant<ConvolutionShape, GemmShape, RecurrentShape, MemoryShape, AttentionShape> of;
  KernelPass pass = KernelPass::forward;

  /// "convolution", "gemm", "recurrent", "memory" or "attention".
  const char* family() const;
  /// "n=8 c=64 h=56 w=56 k=64 r=3 s=3 oh=56 ow=56 stride=1", "m=1760 n=16 k=1760 ta=0 tb=0" and so on.
  std::string text() const;
};

/// Parses what text() writes. Throws std::invalid_argument naming the wrong or missing key.
KernelShape parse_kernel_shape(std::string_view family, std::string_view pass, std::string_view text);

/// Work of a kernel seen as `repeats` matrix products of m x k by k x n (an implicit product for a convolution).
struct KernelWork {
  double m = 1, n = 1, k = 1;
  double repeats = 1;        ///< launches one after the other
  double count = 1;          ///< products side by side in each of them
  double flop = 0;           ///< in total, by the direct algorithm; a multiply-add counts 2
  double bytes = 0;          ///< operands and result once each, fp32; narrower formats scale it
  double scores = 0;         ///< of attention: pairs of query and key, over all heads
  double longest_row = 1;    ///< of attention: keys of the last query over those of a mean one; almost 2 if causal
  double copied_bytes = 0;   ///< moved before or after the rest, not at the same time; fp32
  std::string kernel_class;  ///< kernels that share code: "1x1", "3x3 stride 2", "tn", "lstm"
  double row_unit = 16;      ///< of products: each matrix's rows hold a multiple of so many values: 1, 2, 4, 8 or 16
  std::vector<double> features;      ///< coordinates for interpolation among measured kernels; mostly log2 of sizes
  std::string kind;                  ///< one of which measured kernels of another say nothing: of memory, the operation
  std::vector<std::size_t> amounts;  ///< which of them say how much of a layer is computed, not which layer
};
KernelWork kernel_work(const KernelShape& shape);

/// Names of the operator families, as KernelShape::family() gives them.
std::vector<std::string> kernel_families();

/// The product of one step of a recurrent layer, for devices on which recurrent layers were not measured. Gradients of
/// weights are one product over all steps, with 1 in `repeats`.
struct RepeatedGemm {
  GemmShape shape;
  double repeats = 1;
};
RepeatedGemm as_products(const RecurrentShape& shape, KernelPass pass);

/// The kernel that a layer as a whole amounts to in one pass (not KernelPass::backward), by which it is measured; none
/// if it runs none. Defined in layer_kernels.cpp; see layer_kernels.hpp for layers of several kernels.
std::optional<KernelShape> layer_kernel(const Layer& layer, std::int64_t batch, KernelPass pass);

}  // namespace epocast
