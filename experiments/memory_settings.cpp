#include "experiments/memory_settings.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "sim/memory_timeline.hpp"

namespace epocast {
namespace {

constexpr Range kSegments{2, 1e5};
constexpr const char* kRecomputeWords = "none, selective, full, sqrt, blocks, or a number of segments";
constexpr const char* kWorkspaceWords = "im2col, none, or a size such as 32 MiB";

bool starts_like_a_number(const std::string& text) {
  return !text.empty() && (text.front() == '-' || text.front() == '+' || (text.front() >= '0' && text.front() <= '9'));
}

/// "layer.3." of "layer.3.norm_1": the repeated block that a layer is in; "" for none.
std::string block_of(const std::string& layer) {
  for (std::size_t dot = layer.find('.'); dot != std::string::npos; dot = layer.find('.', dot + 1)) {
    const std::size_t end = layer.find('.', dot + 1);
    if (end == std::string::npos) return "";
    const bool number = end > dot + 1 && layer.find_first_not_of("0123456789", dot + 1) >= end;
    if (number) return layer.substr(0, end + 1);
  }
  return "";
}

/// Segments of single attention layers, or of whole blocks; whether there are any.
bool mark_layers(WorkloadTrace& trace, LayerRecompute what) {
  int segment = -1;
  std::string block;
  for (LayerTrace& layer : trace.layers) {
    const std::string own = what == LayerRecompute::layers ? block_of(layer.name) : "";
    const bool forgets = what == LayerRecompute::layers ? !own.empty() : layer.kind == LayerKind::attention;
    if (!forgets) continue;
    if (what == LayerRecompute::attention || own != block) ++segment;
    block = own;
    layer.segment = segment;
    layer.times.recompute = layer.times.forward_again();
  }
  return segment >= 0;
}

void forget_marked(WorkloadTrace& trace) {
  const std::vector<Bytes> kept = kept_by_layer(trace);
  for (std::size_t l = 0; l < trace.layers.size(); ++l) {
    LayerTrace& layer = trace.layers[l];
    if (layer.segment >= 0) layer.recomputed = std::max(Bytes(0), layer.kept_activations - kept[l]);
    layer.kept_activations = kept[l];
  }
}

LayerRecompute read_layer_recompute(const ConfigNode& node) {
  const std::string word = node.as_string();
  if (word == "selective") return LayerRecompute::attention;
  return word == "full" ? LayerRecompute::layers : LayerRecompute::none;
}

Recompute read_recompute(const ConfigNode& node) {
  using enum Recompute::Segments;
  const std::string word = node.as_string();
  if (word == "none" || word == "selective" || word == "full") return {none};
  if (word == "sqrt") return {sqrt};
  if (word == "blocks") return {blocks};
  if (starts_like_a_number(word)) return {count, static_cast<int>(node.as_int(kSegments))};
  throw node.error("unknown way to recompute '" + word + "'; use " + kRecomputeWords +
                   name_hint(word, {"none", "selective", "full", "sqrt", "blocks"}));
}

std::optional<Bytes> read_workspace(const ConfigNode& node) {
  const std::string word = node.as_string();
  if (word == "im2col") return std::nullopt;
  if (word == "none") return Bytes(0);
  if (starts_like_a_number(word)) return node.as_bytes(Range{0, 1e15});
  throw node.error("unknown workspace '" + word + "'; use " + kWorkspaceWords + name_hint(word, {"im2col", "none"}));
}

void read_offloaded(const ConfigNode& node, HostOffload& offload) {
  if (node.is_list()) {
    for (const ConfigNode& item : node.items()) read_offloaded(item, offload);
    return;
  }
  const std::string word = node.as_string();
  bool& chosen = word == "optimizer" ? offload.optimizer : offload.activations;
  if (word != "optimizer" && word != "activations" && word != "none")
    throw node.error("unknown thing to offload '" + word + "'" + name_hint(word, {"none", "optimizer", "activations"}));
  if (word != "none") chosen = true;
}

HostOffload read_offload(const ConfigNode& node) {
  HostOffload offload;
  if (!node.is_map()) {
    read_offloaded(node, offload);
    return offload;
  }
  read_offloaded(node.at("what"), offload);
  if (node.has("link")) offload.link = node.at("link").as_bytes_per_second(Range{1, 1e15});
  offload.devices_per_link =
      static_cast<int>(node.get("devices_per_link", std::int64_t{offload.devices_per_link}, Range{1, 1000}));
  if (node.has("host_memory")) offload.host_memory = node.at("host_memory").as_bytes_per_second(Range{1, 1e15});
  offload.overlap = node.get("overlap", offload.overlap);
  offload.buffer = node.get("buffer", offload.buffer, Range{0, 1e15});
  offload.capacity = node.get("capacity", offload.capacity, Range{1, 1e18});
  if (node.has("buffer") && !offload.activations)
    throw node.at("buffer").error("is for activations on their way; leave it out, or offload them too");
  if (node.has("host_memory") && !offload.optimizer)
    throw node.at("host_memory")
        .error("is what the host updates parameters with; leave it out, or offload the optimizer too");
  node.check_all_read();
  return offload;
}

}  // namespace

void MemorySettings::apply(WorkloadTrace& trace) const {
  if (workspace)
    for (LayerTrace& layer : trace.layers) layer.workspace = multiplies_weights(layer.kind) ? *workspace : Bytes(0);
  apply_recompute(trace, recompute);
  if (of_layers != LayerRecompute::none && mark_layers(trace, of_layers)) forget_marked(trace);
}

void MemorySettings::apply(TrainingStep& step, const Cluster& cluster) const {
  std::vector<DeviceMemory> all;
  for (const DeviceMemory& memory : step.memory) {
    std::map<Bytes, std::vector<DeviceId>> by_size;
    for (const DeviceId device : memory.devices)
      by_size[cluster.devices[static_cast<std::size_t>(device)].memory].push_back(device);
    for (auto& [size, devices] : by_size) {
      all.push_back({memory.holder, std::move(devices), memory.use, memory.layers});
      all.back().use.reserve = reserve + size * reserve_share;
    }
  }
  step.memory = std::move(all);
}

MemorySettings read_memory_settings(const ConfigNode& node) {
  MemorySettings settings;
  if (node.has("recompute")) {
    settings.recompute = read_recompute(node.at("recompute"));
    settings.of_layers = read_layer_recompute(node.at("recompute"));
  }
  if (node.has("workspace")) settings.workspace = read_workspace(node.at("workspace"));
  if (node.has("offload")) settings.offload = read_offload(node.at("offload"));
  settings.reserve = node.get("reserve", Bytes(0), Range{0, 1e15});
  settings.reserve_share = node.get("reserve_share", 0.0, Range{0, 1});
  return settings;
}

void check_recompute(const MemorySettings& settings, const WorkloadTrace& trace, const ConfigNode& node) {
  if (WorkloadTrace marked = trace;
      settings.of_layers != LayerRecompute::none && !mark_layers(marked, settings.of_layers))
    throw node.error("network '" + trace.model + "' has no " +
                     (settings.of_layers == LayerRecompute::attention ? "attention" : "repeated layers") +
                     " to compute again; use blocks, sqrt or a number of segments");
  if (settings.recompute.segments != Recompute::Segments::blocks) return;
  if (segment_starts(trace, settings.recompute).empty())
    throw node.error("network '" + trace.model +
                     "' has no place where branches join and nothing else goes on, so no blocks; use sqrt or a number "
                     "of segments");
}

}  // namespace epocast
