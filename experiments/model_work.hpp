#pragma once
// Tokens and FLOP by which training of language models is compared.

#include <cstdint>

#include "experiments/memory_settings.hpp"
#include "sim/model.hpp"

namespace epocast {

/// Tokens of a sample: positions that tables of words look up; 0 for a network without one.
std::int64_t tokens_per_sample(const Model& model);

/// FLOP of matrix products and convolutions in one sample's step: its forward pass, and twice that for its backward
/// pass, as model FLOPs utilisation counts it (Chowdhery et al. 2022, arXiv 2204.02311, appendix B); causal attention
/// counts the half that it needs. In `recomputed`, the second forward passes that `memory` asks for.
struct ProductFlop {
  double model = 0;
  double recomputed = 0;
};
ProductFlop product_flop(const Model& model, const MemorySettings& memory);

}  // namespace epocast
