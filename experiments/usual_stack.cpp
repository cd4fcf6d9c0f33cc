#include "experiments/usual_stack.hpp"

#include <utility>
#include <vector>

#include "costmodels/software_stack.hpp"

namespace epocast {
namespace {

/// It shares a machine with others of its kind, or multiplies faster in another precision than fp32.
bool is_accelerator(const Device& device) { return device.node != device.name || !device.other_rates.empty(); }

const std::vector<std::pair<std::string, std::string>>& on_accelerators() {
  static const std::vector<std::pair<std::string, std::string>> all{
      {"data_parallel", "pytorch_ddp"}, {"ddp", "pytorch_ddp"},
      {"horovod", "horovod"},           {"sharded_data_parallel", "pytorch_fsdp"},
      {"fsdp", "pytorch_fsdp"},         {"zero1", "pytorch_fsdp"},
      {"zero2", "pytorch_fsdp"},        {"zero3", "pytorch_fsdp"}};
  return all;
}

}  // namespace

std::string usual_stack(const std::string& strategy, const Device& device) {
  if (is_accelerator(device))
    for (const auto& [name, stack] : on_accelerators())
      if (name == strategy) return stack;
  return kIdealStack;
}

}  // namespace epocast
