#include "workloads/microbench/kernel.hpp"

#include <algorithm>

namespace epocast {

const char* to_string(StepPass pass) {
  constexpr const char* kNames[] = {"forward",  "backward_data", "backward_weights",
                                    "backward", "gradient_sum",  "update"};
  return kNames[static_cast<int>(pass)];
}

void Kernel::add(const std::string& what, std::function<void(dnnl::stream&)> action,
                 const std::vector<KernelTensor>& reads, const std::vector<KernelTensor>& writes) {
  key_ += what;
  for (const KernelTensor& tensor : reads) touch(tensor, false);
  for (const KernelTensor& tensor : writes) touch(tensor, true);
  key_ += ';';
  actions_.push_back(std::move(action));
}

void Kernel::allocate() const {
  for (const Operand& operand : operands_) operand.buffer->allocate();
}

void Kernel::touch(const KernelTensor& tensor, bool written) {
  key_ += (written ? " >" : " <") + to_string(tensor.desc);
  const std::size_t bytes = tensor.desc.get_size();
  const auto found = std::ranges::find(operands_, tensor.buffer, &Operand::buffer);
  if (found == operands_.end()) {
    operands_.push_back({tensor.buffer, bytes, written});
  } else {
    found->bytes = std::max(found->bytes, bytes);
    found->written = found->written || written;
  }
}

}  // namespace epocast
