#pragma once
// A training step of a network on this machine, executed with oneDNN: forward, loss, backward, update.
//
// Activations and gradients are fp32, in the layouts that oneDNN asks for; where neighbours disagree, the kernel that
// needs another layout reorders first, and that is part of its time. Weights stay in the layout of the forward pass.
// Every activation and gradient has memory of its own. The gradient of an output with several readers is summed by a
// kernel of its own. All updates follow after the backward pass, as in an optimizer's step().
//
// Scope and limits: fp32, one socket. Attention and recurrent layers other than LSTM are not executed: see left_out().

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

#include "sim/memory.hpp"
#include "sim/model.hpp"
#include "workloads/microbench/kernel.hpp"

namespace epocast {

/// Parameters of a layer, with what training keeps beside them.
struct Parameters {
  int layer = 0;
  KernelTensor value, gradient;
  std::vector<KernelTensor> state;
};

class ExecutedStep {
 public:
  /// Plans the kernels; takes no memory for data yet. Throws dnnl::error if a layer is beyond the library.
  ExecutedStep(const Model& model, std::int64_t batch, Optimizer optimizer);
  ~ExecutedStep();
  ExecutedStep(const ExecutedStep&) = delete;
  ExecutedStep& operator=(const ExecutedStep&) = delete;

  const Model& model() const { return *model_; }
  std::int64_t batch() const { return batch_; }
  const std::vector<Kernel>& kernels() const { return kernels_; }  ///< in the order of the step
  /// Layers that have kernels in reality but not here: "attention layer 'h.0.attn'".
  const std::vector<std::string>& left_out() const { return left_out_; }
  std::size_t bytes() const;  ///< of all buffers

  void allocate();  ///< everything
  void release();

  // For tests.
  const std::vector<Parameters>& parameters() const { return parameters_; }
  const KernelTensor& output(int layer) const { return outputs_[static_cast<std::size_t>(layer)]; }
  const KernelTensor& labels() const { return labels_; }  ///< class of each sample, if the last layer is a softmax

 private:
  friend class StepBuilder;

  const Model* model_;
  std::int64_t batch_;
  std::deque<Buffer> buffers_;
  std::vector<Kernel> kernels_;
  std::vector<Parameters> parameters_;
  std::vector<KernelTensor> outputs_;
  KernelTensor labels_;
  std::vector<std::string> left_out_;
};

/// The device that kernels run on.
const dnnl::engine& cpu_engine();

}  // namespace epocast
