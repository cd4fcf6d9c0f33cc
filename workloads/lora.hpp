#pragma once
// Fine-tuning by low-rank adapters: a network whose parameters stay as they are, with small products beside some of its
// linear layers that are trained.
//
// A layer y = W x becomes y = W x + B (A x), with A of rank x inputs and B of outputs x rank values. So the weights'
// gradients, the optimizer's state and the inputs that only those gradients read fall away for all but A and B;
// gradients of activations are computed back to the first adapter, and no further.
//
// Source: Hu et al. 2021, "LoRA: Low-rank adaptation of large language models" (arXiv 2106.09685), section 4.1.
// Scope and limits: adapters without dropout; nothing but adapters is trained; layers of experts get none.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/config.hpp"
#include "workloads/layer_reader.hpp"

namespace epocast {

struct LoraSettings {
  std::int64_t rank = 0;
  std::vector<ConfigNode> layers;  ///< names of layers, whole or their last part; empty: all linear layers in blocks
  ConfigNode place;
};

/// Reads `16`, or `{rank: 16, layers: [qkv, projection]}`. Throws ConfigError.
LoraSettings read_lora(const ConfigNode& node);

/// Freezes all layers and puts adapters beside those that the settings name. Throws ConfigError for names that no
/// linear layer has, and for ranks that are no smaller than a layer's sides.
void add_adapters(std::vector<LayerSpec>& layers, const LoraSettings& settings);

/// What both products of an adapter have as their variant.
inline constexpr const char* kAdapter = "adapter";

}  // namespace epocast
