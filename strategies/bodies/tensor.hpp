#pragma once
// Tensor parallelism: layers divided over a team by columns and rows (Shoeybi et al. 2019, Megatron-LM).
//
// Every tensor between layers is whole on each device, divided by channels or divided by positions. A linear or fully
// connected layer that reads a whole tensor is divided by columns, and its output by channels, if all that read it can
// go on with that: activations, dropout, products, attention (by heads), softmax (by vocabulary, with three small
// all-reduces for the largest value, the sum and the wanted one), and linear layers, which are then divided by rows and
// add up their parts. Of an embedding's table each device has a range of rows. Everything else is computed on all
// devices. Per transformer layer that makes two all-reduces of batch x sequence x hidden in each direction.
//
// Sequence parallelism (Korthikanti et al. 2022, section 4.2.2) divides by positions what is whole otherwise, wherever
// it is a sequence: an all-reduce becomes a reduce-scatter behind rows and an all-gather before columns, and backward
// the other way round. What was gathered is kept for the backward pass, or gathered again there.
//
// Backward, as in Megatron-LM, the sum of the gradients of a column-parallel layer's input hides behind the gradients
// of its weights, and what is gathered again behind those of its input.
//
// Heads of keys and values that are fewer than devices are copied: each device has one, with its weights, their
// gradients and its product.
//
// Limits: dimensions and heads that do not divide are rounded up, as if padded; devices must not outnumber heads of
// queries. Positions are divided along the width. The small all-reduces of norms' gradients under sequence parallelism
// are left out, and so are those of the weights' gradients of copied heads over the devices that have the same, once
// a step: of hidden x head size values for keys and as many for values.

#include "strategies/bodies/body.hpp"

namespace epocast {

class TensorBody final : public Body {
 public:
  explicit TensorBody(const ConfigNode& options);
  std::string axis() const override { return "tensor"; }
  DividedModel divide(DividedModel model, int parts, const ConfigNode& place) const override;
  static EntryInfo info();

 private:
  bool sequence_parallel_;
  bool gather_again_;  ///< gathered inputs of columns are not kept for the backward pass
  bool overlap_;       ///< exchanges of columns' backward passes go on beside their computation
};

}  // namespace epocast
