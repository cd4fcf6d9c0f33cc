#include "costmodels/framework_kernels.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "sim/config_word.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

std::ptrdiff_t index_of(const std::string& key, const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) throw std::invalid_argument("unknown " + key + " '" + name + "'" + name_hint(name, names));
  return found - names.begin();
}

}  // namespace

LossKernels parse_loss_kernels(const std::string& name) {
  return static_cast<LossKernels>(index_of("loss", {"framework", "vocabulary_parallel", "fused"}, name));
}

AttentionKernels parse_attention_kernels(const std::string& name) {
  return static_cast<AttentionKernels>(index_of("attention", {"fused_softmax", "eager", "compiled"}, name));
}

GeluKernels parse_gelu_kernels(const std::string& name) {
  return static_cast<GeluKernels>(index_of("gelu", {"fused", "eager"}, name));
}

BatchNormKernels parse_batch_norm_kernels(const std::string& name) {
  return static_cast<BatchNormKernels>(index_of("batch_norm", {"separate", "fused"}, name));
}

std::vector<std::string> framework_kernel_keys() {
  return {"loss", "attention", "gelu", "batch_norm", "autocast", "metrics"};
}

FrameworkKernels read_framework_kernels(const ConfigNode& options) {
  FrameworkKernels out;
  if (options.has("loss")) out.loss = parse_name(options.at("loss"), parse_loss_kernels);
  if (options.has("attention")) out.attention = parse_name(options.at("attention"), parse_attention_kernels);
  if (options.has("gelu")) out.gelu = parse_name(options.at("gelu"), parse_gelu_kernels);
  if (options.has("batch_norm")) out.batch_norm = parse_name(options.at("batch_norm"), parse_batch_norm_kernels);
  out.autocast = options.get("autocast", out.autocast);
  out.metrics = static_cast<int>(options.get("metrics", std::int64_t{0}, Range{0, 100}));
  return out;
}

std::string in_words(const FrameworkKernels& kernels) {
  std::vector<std::string> out;
  if (kernels.loss == LossKernels::vocabulary_parallel) out.emplace_back("a loss by Megatron-LM's kernels");
  if (kernels.loss == LossKernels::fused) out.emplace_back("a fused loss");
  if (kernels.attention == AttentionKernels::eager) out.emplace_back("eager attention");
  if (kernels.attention == AttentionKernels::compiled) out.emplace_back("compiled attention");
  if (kernels.gelu == GeluKernels::eager) out.emplace_back("eager GELU");
  if (kernels.batch_norm == BatchNormKernels::fused) out.emplace_back("fused batch normalisation");
  if (kernels.autocast) out.emplace_back("autocast");
  if (kernels.metrics > 0) out.push_back(fmt::format("the loss {}", counted(kernels.metrics, "more time")));
  return fmt::format("{}", fmt::join(out, ", "));
}

int read_update_accesses(const ConfigNode& accesses, Optimizer optimizer) {
  const std::string word = accesses.is_scalar() ? accesses.as_string() : "";
  if (word == "fused") return 0;
  if (word == "foreach") return foreach_accesses(optimizer);
  if (word.empty() || std::isdigit(static_cast<unsigned char>(word.front())) == 0)
    throw accesses.error("give a count, as in `accesses: 33`, or one of fused and foreach");
  return static_cast<int>(accesses.as_int(Range{1, 1000}));
}

}  // namespace epocast
