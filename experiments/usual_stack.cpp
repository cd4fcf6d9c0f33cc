#include "experiments/usual_stack.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "costmodels/software_stack.hpp"
#include "strategies/register.hpp"

namespace epocast {
namespace {

bool is_accelerator(const Device& device) { return device.node != device.name || !device.other_rates.none(); }

bool is_processor(const Device& device) {
  static constexpr std::array<std::string_view, 13> kNames{
      "Xeon",   "EPYC",     "Opteron",  "Ryzen",        "Threadripper", "Core i", "POWER8",
      "POWER9", "Graviton", "Neoverse", "Ampere Altra", "A64FX",        "CPU"};
  return std::ranges::any_of(
      kNames, [&](std::string_view name) { return device.model.text().find(name) != std::string::npos; });
}

bool is_tpu(const Device& device) { return device.model.text().find("TPU") != std::string::npos; }

struct UsualStack {
  std::string_view strategy, stack;
};

/// On accelerators; all else is ideal.
constexpr std::array<UsualStack, 19> kOnAccelerators{{
    // clang-format off
    {"data_parallel",         "pytorch_ddp"},
    {"ddp",                   "pytorch_ddp"},
    {"local_sgd",             "pytorch_ddp"},
    {"average",               "pytorch_ddp"},
    {"gossip",                "pytorch_ddp"},
    {"horovod",               "horovod"},
    {"sharded_data_parallel", "pytorch_fsdp"},
    {"fsdp",                  "pytorch_fsdp"},
    {"zero1",                 "deepspeed"},
    {"zero2",                 "deepspeed"},
    {"zero3",                 "deepspeed"},
    {"megatron",              "megatron"},
    {"pipeline",              "megatron"},
    {"gpipe",                 "megatron"},
    {"pipedream",             "megatron"},
    {"layerwise",             "megatron"},
    {"parameter_server",      "tensorflow1"},
    {"distributed_replicated", "tensorflow1"},
    {"dist_device_sync",      "mxnet"},
    // clang-format on
}};

/// On processors; all else is gloo: whatever sends messages costs the cores that compute.
constexpr std::array<UsualStack, 4> kOnProcessors{{
    // clang-format off
    {"single",               kIdealStack},
    {"hogwild",              kIdealStack},
    {"collective_benchmark", kIdealStack},
    {"operators",            kIdealStack},
    // clang-format on
}};

template <std::size_t N>
std::string_view find(const std::array<UsualStack, N>& table, std::string_view strategy, std::string_view otherwise) {
  const auto found = std::ranges::find(table, strategy, &UsualStack::strategy);
  return found == table.end() ? otherwise : found->stack;
}

/// The name of a part of a composition, which may be a map of options.
std::string name_of_part(const ConfigNode& strategy, const std::string& part, const std::string& otherwise) {
  if (!strategy.has(part)) return otherwise;
  const ConfigNode value = strategy.at(part);
  const ConfigNode name = value.is_map() && value.has("name") ? value.at("name") : value;
  return name.is_scalar() ? name.as_string() : otherwise;
}

/// The strategy whose software a composition is run with.
std::string strategy_like(const ConfigNode& composition) {
  if (std::string strategy = strategy_of_body(composition); !strategy.empty()) return strategy;
  const ConfigNode mesh = composition.at("mesh");
  if (!mesh.is_map()) return "composition";
  for (const std::string& axis : mesh.keys())
    if (axis != "data" && !(mesh.at(axis).is_scalar() && mesh.at(axis).as_string() == "1")) return "megatron";
  const std::string synchronisation = name_of_part(composition, "synchronisation", "all_reduce");
  if (synchronisation == "all_reduce") return "data_parallel";
  return synchronisation == "sharded" ? "sharded_data_parallel" : synchronisation;
}

/// The name of a strategy in a study; "" if it has none.
std::string name_of(const ConfigNode& strategy) {
  if (strategy.is_scalar()) return strategy.as_string();
  if (!strategy.is_map()) return "";
  if (strategy.has("name")) return strategy.at("name").is_scalar() ? strategy.at("name").as_string() : "";
  return strategy.has("mesh") ? strategy_like(strategy) : "";
}

}  // namespace

std::string usual_stack(const ConfigNode& strategy, const Device& device) {
  const std::string name = name_of(strategy);
  if (name.empty()) return kIdealStack;
  const std::string_view on_accelerators = find(kOnAccelerators, name, kIdealStack);
  if (is_tpu(device)) return on_accelerators == kIdealStack ? kIdealStack : "xla";
  if (is_accelerator(device)) return std::string(on_accelerators);
  if (is_processor(device)) return std::string(find(kOnProcessors, name, "gloo"));
  return kIdealStack;
}

}  // namespace epocast
