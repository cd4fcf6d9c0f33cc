#include "experiments/usual_stack.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "costmodels/software_stack.hpp"

namespace epocast {
namespace {

bool is_accelerator(const Device& device) { return device.node != device.name || !device.other_rates.empty(); }

bool is_processor(const Device& device) {
  static constexpr std::array<std::string_view, 13> kNames{
      "Xeon",   "EPYC",     "Opteron",  "Ryzen",        "Threadripper", "Core i", "POWER8",
      "POWER9", "Graviton", "Neoverse", "Ampere Altra", "A64FX",        "CPU"};
  return std::ranges::any_of(kNames,
                             [&](std::string_view name) { return device.model.find(name) != std::string::npos; });
}

struct UsualStack {
  std::string_view strategy, stack;
};

/// On accelerators; all else is ideal.
constexpr std::array<UsualStack, 8> kOnAccelerators{{
    // clang-format off
    {"data_parallel",         "pytorch_ddp"},
    {"ddp",                   "pytorch_ddp"},
    {"horovod",               "horovod"},
    {"sharded_data_parallel", "pytorch_fsdp"},
    {"fsdp",                  "pytorch_fsdp"},
    {"zero1",                 "pytorch_fsdp"},
    {"zero2",                 "pytorch_fsdp"},
    {"zero3",                 "pytorch_fsdp"},
    // clang-format on
}};

/// On processors; all else is gloo: whatever sends messages costs the cores that compute. Compositions are as ideal as
/// on accelerators, so that one study means the same on both.
constexpr std::array<UsualStack, 5> kOnProcessors{{
    // clang-format off
    {"single",               kIdealStack},
    {"hogwild",              kIdealStack},
    {"collective_benchmark", kIdealStack},
    {"operators",            kIdealStack},
    {"composition",          kIdealStack},
    // clang-format on
}};

template <std::size_t N>
std::string_view find(const std::array<UsualStack, N>& table, std::string_view strategy, std::string_view otherwise) {
  const auto found = std::ranges::find(table, strategy, &UsualStack::strategy);
  return found == table.end() ? otherwise : found->stack;
}

}  // namespace

std::string usual_stack(const std::string& strategy, const Device& device) {
  if (is_accelerator(device)) return std::string(find(kOnAccelerators, strategy, kIdealStack));
  if (is_processor(device)) return std::string(find(kOnProcessors, strategy, "gloo"));
  return kIdealStack;
}

}  // namespace epocast
