#pragma once
// Tokens and FLOP by which training of language models is compared.

#include <cstdint>

#include "experiments/memory_settings.hpp"
#include "sim/model.hpp"

namespace epocast {

/// Tokens of a sample: positions of what tables of words look up, once for all tables that read the same; 0 for a
/// network without a table. Of two texts that the network reads by one input, one.
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
