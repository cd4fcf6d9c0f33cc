#pragma once
// Turns the layers of a model into kernels; the kinds of layers are in layers_*.cpp.

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "workloads/microbench/executed_step.hpp"

namespace epocast {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
inline constexpr auto kFloat = dnnl::memory::data_type::f32;

class StepBuilder {
 public:
  StepBuilder(ExecutedStep& step, Optimizer optimizer);
  void build();

  // For the kinds of layers.

  const Model& model() const { return step_.model(); }
  const Layer& layer(int index) const { return step_.model().layers[static_cast<std::size_t>(index)]; }
  std::int64_t batch() const { return step_.batch(); }
  KernelTensor& output(int index) { return step_.outputs_[static_cast<std::size_t>(index)]; }
  bool needs_gradient(int index) const { return needs_gradient_[static_cast<std::size_t>(index)]; }
  bool is_last(int index) const { return index + 1 == static_cast<int>(step_.model().layers.size()); }

  /// Batch x channels (x depth) x height x width.
  Dims dims(const Shape& shape) const;
  /// The same, each sample a plain array, and with the channels of a position next to each other.
  Desc plain(const Shape& shape) const;
  Desc channels_last(const Shape& shape) const;

  KernelTensor make(const Desc& desc, Buffer::Fill fill);
  /// Trained parameters. `fan_in` scales their first values.
  Parameters& parameters(int layer, const Desc& desc, Buffer::Fill fill);
  Kernel& kernel(int layer, StepPass pass);

  /// `tensor` in another layout: itself, or a copy, made by `kernel` unless an earlier one of the step made it.
  KernelTensor in_layout(const KernelTensor& tensor, const Desc& desc, Kernel& kernel);

  /// `tensor` with other dimensions, through a copy in row-major order if its layout does not allow it.
  KernelTensor reshaped(const KernelTensor& tensor, const Dims& dims, Kernel& kernel);
  /// Copies between layouts.
  void reorder(const KernelTensor& from, const KernelTensor& to, Kernel& kernel);

  struct Argument {
    int slot;
    KernelTensor tensor;
  };
  /// Adds a primitive with its scratch memory. `what` names settings that operands do not show.
  template <class PrimitiveDesc>
  void run(Kernel& kernel, const PrimitiveDesc& pd, const std::string& what, const std::vector<Argument>& reads,
           const std::vector<Argument>& writes) {
    run(kernel, dnnl::primitive(pd.get()), pd.scratchpad_desc(), what + " " + pd.impl_info_str(), reads, writes);
  }

  /// `tensor`'s values handed back to `input`, one of the inputs of a layer.
  void hand_back(int input, const KernelTensor& gradient);
  /// What a layer does when the gradient of its output is known.
  using Backward = std::function<void(const KernelTensor& gradient)>;
  void on_backward(int layer, Backward backward) { backward_[static_cast<std::size_t>(layer)] = std::move(backward); }
  void leave_out(int layer);
  /// The kernel planned last.
  Kernel& last_kernel() { return kernels_.back(); }
  const std::deque<Parameters>& all_parameters() const { return parameters_; }
  /// The right class of each sample.
  void make_labels(std::int64_t classes);
  const KernelTensor& labels() const { return step_.labels_; }

  static dnnl::primitive_attr attributes();

 private:
  void run(Kernel& kernel, const dnnl::primitive& primitive, const Desc& scratch, const std::string& what,
           const std::vector<Argument>& reads, const std::vector<Argument>& writes);
  void forward(int layer);
  void backward(int layer);
  KernelTensor gradient_of(int layer);
  void update();

  ExecutedStep& step_;
  Optimizer optimizer_;
  std::deque<Kernel> kernels_;  // references stay good
  std::deque<Parameters> parameters_;
  Buffer* scratch_;
  std::vector<bool> needs_gradient_;
  std::vector<Backward> backward_;                               // by layer
  std::vector<std::vector<KernelTensor>> gradients_;             // by layer, from its readers
  std::vector<std::pair<KernelTensor, KernelTensor>> reorders_;  // made so far: from, to
};

// Kinds of layers. Each plans the forward pass, sets output(index), and says what to do in the backward pass.
void build_convolution(StepBuilder& builder, int index);
void build_fully_connected(StepBuilder& builder, int index);
void build_linear(StepBuilder& builder, int index);
void build_pooling(StepBuilder& builder, int index);
void build_batch_norm(StepBuilder& builder, int index);
void build_layer_norm(StepBuilder& builder, int index);
void build_local_response_norm(StepBuilder& builder, int index);
void build_activation(StepBuilder& builder, int index);
void build_softmax(StepBuilder& builder, int index);
void build_add(StepBuilder& builder, int index);
void build_concat(StepBuilder& builder, int index);
void build_dropout(StepBuilder& builder, int index);
void build_flatten(StepBuilder& builder, int index);
void build_embedding(StepBuilder& builder, int index);
void build_lstm(StepBuilder& builder, int index);
void build_multiply(StepBuilder& builder, int index);

}  // namespace epocast
