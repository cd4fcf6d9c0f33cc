#pragma once
// Context parallelism: the positions of every sequence divided over a team, whose devices pass keys and values on.
//
// Attention reads the keys and values of all positions. In a ring (Liu et al. 2023, "Ring attention with blockwise
// transformers", section 3) each device computes with the block that it has while the next one comes; backward, blocks
// and their gradients go round once more. Or they are gathered before (Grattafiori et al. 2024, "The Llama 3 herd of
// models", section 3.3.2), and again for the backward pass, behind which their gradients are summed. Every other layer
// works position by position. All devices have all parameters.
//
// Limits: causal attention is taken to be balanced, each device having early and late positions, so that all have equal
// shares of the pairs; it is timed as one kernel over all keys, not one for each block; the gradients of the last block
// make one hop more than is counted; layers that read several positions at once, other than attention, are refused.

#include "strategies/bodies/body.hpp"

namespace epocast {

class ContextBody final : public Body {
 public:
  explicit ContextBody(const ConfigNode& options);
  std::string axis() const override { return "context"; }
  DividedModel divide(DividedModel model, int parts, const ConfigNode& place) const override;
  static EntryInfo info();

 private:
  bool ring_;
};

}  // namespace epocast
