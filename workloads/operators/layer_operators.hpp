#pragma once
// Which operations each kind of layer becomes, as the usual TensorFlow 1 programs write it. Only the forward pass is
// listed here: gradients and updates follow from the operations.

#include <vector>

#include "sim/model.hpp"
#include "workloads/operators/dataflow.hpp"

namespace epocast {

/// What a layer hands on: one tensor, or one per step of an unrolled sequence.
struct LayerValue {
  Tensor whole;
  Tensors steps;
  bool is_unrolled = false;  ///< made step by step, not just cut into steps for a reader
};

/// Adds a model's layers one by one.
class LayerOperators {
 public:
  LayerOperators(Dataflow& graph, const Model& model, double batch, bool fused_norms);
  /// Adds layer `index`. REQUIRES that all before it have been added.
  void add(std::size_t index);
  /// Adds a loss on each result, which is a layer that no other reads; gives their sum, from which gradients start.
  /// REQUIRES that all layers were added. `with_decay`: half the squares of all weights of convolutions and products
  /// too, scaled, as research/resnet has it.
  Tensor add_losses(bool with_decay);

 private:
  Tensor loss_on(std::size_t index);
  Tensor weight_decay();
  Tensor scalar(Tensor t);
  // Simple layers: convolutions, pooling, activations, joins.
  void convolution(const Layer& layer);
  Tensor filters(const Layer& layer);
  void fully_connected(const Layer& layer);
  void pooling(const Layer& layer);
  void batch_norm(const Layer& layer);
  void layer_norm(const Layer& layer);
  void rearrange(const Layer& layer);
  void embedding(const Layer& layer);
  void linear(const Layer& layer);
  void attention(const Layer& layer);
  void lstm(const Layer& layer);
  void e3d_lstm(const Layer& layer);
  /// Layers that work position by position are unrolled with the layers that they read.
  void elementwise(const Layer& layer);
  Tensor elementwise(const Layer& layer, const Tensors& in);

  Tensor activation(const Layer& layer, const Tensor& in);
  Tensor dropout(const Tensor& in);
  /// Normalisation over some dimensions that leaves so many means and variances.
  Tensor normalize(const Tensor& in, double means, const Tensor& scale, const Tensor& shift, bool with_averages);
  /// FusedBatchNorm, with the same averages.
  Tensor normalize_fused(const Tensor& in, const Tensor& scale, const Tensor& shift);
  void moving_average(const Tensor& value);
  Tensor softmax(const Tensor& in, double rows);
  /// tf.layers.dense on a sequence: a product over the last dimension of any tensor.
  Tensor sequence_product(const Tensor& in, const Tensor& weight, double out_values, double work);
  Tensor split_heads(const Tensor& in, int heads);
  Tensor key_mask(const Tensor& scores);
  Tensor zero_state(double values);  ///< before the first step

  /// What the model's inputs feed.
  Tensor fed(const Layer& layer);
  void regions(const Layer& layer);

  /// A layer's own parameter tensor number `p`.
  Variable parameter(const Layer& layer, std::size_t p, bool is_random);
  /// The output of input number `i` as one tensor, or as a tensor for each of so many steps.
  Tensor whole(const Layer& layer, std::size_t i = 0);
  Tensors unrolled(const Layer& layer, std::size_t i, int steps);
  double values(const Shape& shape) const { return batch_ * static_cast<double>(shape.values()); }

  Dataflow& graph_;
  const Model& model_;
  double batch_;
  bool fused_norms_;
  std::vector<LayerValue> out_;
  std::vector<Variable> weights_;  ///< by layer: its first parameter
  Tensors biases_;                 ///< by layer, of convolutions
  std::vector<bool> is_read_;      ///< by layer: whether another layer reads it
  LayerValue* current_ = nullptr;
  std::size_t index_ = 0;
};

}  // namespace epocast
