#pragma once
// What is timed: the work of one layer in one pass of a training step.

#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <utility>
#include <vector>

#include "workloads/microbench/buffer.hpp"

namespace epocast {

enum class StepPass {
  forward,
  backward_data,     ///< gradient of the inputs
  backward_weights,  ///< gradient of the parameters
  backward,          ///< both in one kernel: normalisations
  gradient_sum,      ///< adds the gradients that several readers of a layer's output hand back
  update,            ///< applies the gradients to the parameters
};
const char* to_string(StepPass pass);

/// Something that a kernel touches.
struct Operand {
  Buffer* buffer = nullptr;
  std::size_t bytes = 0;
  bool written = false;
};

/// One or more oneDNN primitives or loops of ours (reorders where layouts differ, then the work) on fixed operands.
class Kernel {
 public:
  Kernel(int layer, StepPass pass) : layer_(layer), pass_(pass) {}

  int layer() const { return layer_; }  ///< index in the model
  StepPass pass() const { return pass_; }
  const std::vector<Operand>& operands() const { return operands_; }
  /// Kernels with the same key do the same work on data of the same sizes and layouts.
  const std::string& key() const { return key_; }

  /// Adds a step. `what` tells it from others that have operands of the same shapes.
  void add(const std::string& what, std::function<void(dnnl::stream&)> action, const std::vector<KernelTensor>& reads,
           const std::vector<KernelTensor>& writes);
  void allocate() const;  ///< all operands
  void run(dnnl::stream& stream) const {
    for (const auto& action : actions_) action(stream);
  }

 private:
  void touch(const KernelTensor& tensor, bool written);

  int layer_;
  StepPass pass_;
  std::vector<Operand> operands_;
  std::vector<std::function<void(dnnl::stream&)>> actions_;
  std::string key_;
};

}  // namespace epocast
