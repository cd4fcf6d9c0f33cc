#include "experiments/memory_settings.hpp"

#include <map>
#include <utility>
#include <vector>

namespace epocast {
namespace {

constexpr Range kSegments{2, 1e5};
constexpr const char* kRecomputeWords = "none, sqrt, blocks, or a number of segments";
constexpr const char* kWorkspaceWords = "im2col, none, or a size such as 32 MiB";

bool starts_like_a_number(const std::string& text) {
  return !text.empty() && (text.front() == '-' || text.front() == '+' || (text.front() >= '0' && text.front() <= '9'));
}

Recompute read_recompute(const ConfigNode& node) {
  using enum Recompute::Segments;
  const std::string word = node.as_string();
  if (word == "none") return {none};
  if (word == "sqrt") return {sqrt};
  if (word == "blocks") return {blocks};
  if (starts_like_a_number(word)) return {count, static_cast<int>(node.as_int(kSegments))};
  throw node.error("unknown way to recompute '" + word + "'; use " + kRecomputeWords +
                   name_hint(word, {"none", "sqrt", "blocks"}));
}

std::optional<Bytes> read_workspace(const ConfigNode& node) {
  const std::string word = node.as_string();
  if (word == "im2col") return std::nullopt;
  if (word == "none") return Bytes(0);
  if (starts_like_a_number(word)) return node.as_bytes(Range{0, 1e15});
  throw node.error("unknown workspace '" + word + "'; use " + kWorkspaceWords + name_hint(word, {"im2col", "none"}));
}

}  // namespace

void MemorySettings::apply(WorkloadTrace& trace) const {
  if (workspace)
    for (LayerTrace& layer : trace.layers) layer.workspace = multiplies_weights(layer.kind) ? *workspace : Bytes(0);
  apply_recompute(trace, recompute);
}

void MemorySettings::apply(TrainingStep& step, const Cluster& cluster) const {
  std::vector<DeviceMemory> all;
  for (const DeviceMemory& memory : step.memory) {
    std::map<Bytes, std::vector<DeviceId>> by_size;
    for (const DeviceId device : memory.devices)
      by_size[cluster.devices[static_cast<std::size_t>(device)].memory].push_back(device);
    for (auto& [size, devices] : by_size) {
      all.push_back({memory.holder, std::move(devices), memory.use});
      all.back().use.reserve = reserve + size * reserve_share;
    }
  }
  step.memory = std::move(all);
}

MemorySettings read_memory_settings(const ConfigNode& node) {
  MemorySettings settings;
  if (node.has("recompute")) settings.recompute = read_recompute(node.at("recompute"));
  if (node.has("workspace")) settings.workspace = read_workspace(node.at("workspace"));
  settings.reserve = node.get("reserve", Bytes(0), Range{0, 1e15});
  settings.reserve_share = node.get("reserve_share", 0.0, Range{0, 1});
  return settings;
}

void check_recompute(const MemorySettings& settings, const WorkloadTrace& trace, const ConfigNode& node) {
  if (settings.recompute.segments != Recompute::Segments::blocks) return;
  if (segment_starts(trace, settings.recompute).empty())
    throw node.error("network '" + trace.model +
                     "' has no place where branches join and nothing else goes on, so no blocks; use sqrt or a number "
                     "of segments");
}

}  // namespace epocast
