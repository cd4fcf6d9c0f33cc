// Chakra execution traces as operator graphs. Two schemas: nodes of PyTorch's ExecutionTraceObserver, which call each
// other and name the tensors that they read and write, with durations from a linked profiler trace; and Chakra's own
// (et_def.proto) as JSON, whose nodes name the nodes that they wait for.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "experiments/calibrate/trace_position.hpp"
#include "experiments/place/graph_draft.hpp"
#include "sim/text.hpp"

namespace epocast {
namespace {

using TraceJson = nlohmann::json;

constexpr int kMostNesting = 8;  // of lists of tensors
constexpr double kMostMicroseconds = 1e12, kMostTensorBytes = 1e15;

struct TraceTensor {
  std::int64_t storage = 0;
  double bytes = 0;
};

/// A tensor is a tuple [tensor, storage, offset, values, bytes of a value, device], in a list of arguments or deeper.
void find_tensors(const TraceJson& value, std::vector<TraceTensor>& out, int depth = 0) {
  if (!value.is_array() || depth > kMostNesting) return;
  const bool is_tensor = value.size() == 6 && value.back().is_string() &&
                         std::all_of(value.begin(), value.begin() + 5, [](const TraceJson& v) {
                           return v.is_number_integer() || v.is_number_unsigned();
                         });
  if (!is_tensor) {
    for (const TraceJson& part : value) find_tensors(part, out, depth + 1);
    return;
  }
  const double bytes = value[3].get<double>() * value[4].get<double>();
  if (bytes > 0 && bytes < kMostTensorBytes) out.push_back({value[1].get<std::int64_t>(), bytes});
}

/// Lists come as JSON, or as text in Python's notation.
std::vector<TraceTensor> tensors_of(const TraceJson& io) {
  std::vector<TraceTensor> out;
  const TraceJson* values = &io;
  if (io.is_object()) {
    const auto found = io.find("values");
    if (found == io.end()) return out;
    values = &*found;
  }
  if (!values->is_string()) {
    find_tensors(*values, out);
    return out;
  }
  std::string text = values->get<std::string>();
  std::replace(text.begin(), text.end(), '\'', '"');
  std::replace(text.begin(), text.end(), '(', '[');
  std::replace(text.begin(), text.end(), ')', ']');
  for (const auto& [python, json] : {std::pair("None", "null"), std::pair("True", "true"), std::pair("False", "false")})
    for (std::size_t at = text.find(python); at != std::string::npos; at = text.find(python, at + 1))
      if (at == 0 || !std::isalpha(static_cast<unsigned char>(text[at - 1])))
        text.replace(at, std::string(python).size(), json);
  find_tensors(TraceJson::parse(text, nullptr, false), out);
  return out;
}

struct TraceNode {
  std::int64_t id = 0;
  std::string name;
  std::vector<std::int64_t> parents, waits_for;
  std::optional<double> microseconds;
  bool on_device = false;
  std::vector<TraceTensor> inputs, outputs;
  Location where;
};

class ChakraTrace {
 public:
  ChakraTrace(const std::string& text, const std::string& file) : text_(text), file_(file) { read(); }

  NamedGraph graph() const {
    const bool calls = std::any_of(nodes_.begin(), nodes_.end(), [](const TraceNode& n) { return !n.parents.empty(); });
    return calls ? by_tensors() : by_nodes();
  }

 private:
  [[noreturn]] void fail(const TraceNode& node, const std::string& key, const std::string& problem) const {
    throw ConfigError(node.where, key, problem);
  }

  /// One document with a list of nodes; or documents one after the other, the first about the trace, the others nodes.
  void read() {
    std::istringstream in(text_);
    std::vector<TraceJson> documents;
    try {
      while (in >> std::ws && !in.eof()) {
        documents.emplace_back();
        in >> documents.back();
      }
    } catch (const TraceJson::exception& problem) {
      const auto at = std::max<std::streamoff>(0, in.rdbuf()->pubseekoff(0, std::ios_base::cur, std::ios_base::in));
      const std::size_t read = std::min(static_cast<std::size_t>(at), text_.size());
      const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(read), '\n');
      throw ConfigError(Location{file_, static_cast<int>(line), 0}, "", std::string("not JSON: ") + problem.what());
    }
    const TraceJson* list = documents.size() == 1 ? &documents.front() : nullptr;
    if (list != nullptr && list->is_object()) {
      const auto found = list->find("nodes");
      list = found == list->end() ? nullptr : &*found;
    }
    if (list != nullptr && list->is_array()) {
      const std::vector<int> lines = lines_of_events(text_, "nodes");
      for (std::size_t i = 0; i < list->size(); ++i)
        add((*list)[i], Location{file_, i < lines.size() ? lines[i] : 0, 0});
    } else {
      for (const TraceJson& one : documents) add(one, Location{file_, 0, 0});
    }
    if (nodes_.empty()) throw ConfigError(Location{file_, 1, 0}, "nodes", "there are none; is this a Chakra trace?");
  }

  std::int64_t number(const TraceNode& node, const char* key, const TraceJson& value) const {
    if (value.is_number_integer() || value.is_number_unsigned()) return value.get<std::int64_t>();
    if (value.is_string()) {  // protobuf writes 64 bits as text
      const std::string digits = value.get<std::string>();
      if (!digits.empty() && digits.size() < 19 && digits.find_first_not_of("0123456789") == std::string::npos)
        return std::stoll(digits);
    }
    fail(node, key,
         fmt::format("{} is not a node's number", value.is_string()
                                                      ? '\'' + abridged(printable(value.get<std::string>())) + '\''
                                                      : std::string("a ") + value.type_name()));
  }

  static const TraceJson* field(const TraceJson& of, std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (const auto found = of.find(name); found != of.end()) return &*found;
    return nullptr;
  }

  void add(const TraceJson& one, const Location& where) {
    if (!one.is_object()) throw ConfigError(where, "nodes", "a node is an object");
    const TraceJson* id = field(one, {"id"});
    if (id == nullptr) return;  // what is said of the whole trace
    TraceNode node;
    node.where = where;
    node.id = number(node, "id", *id);
    if (const TraceJson* name = field(one, {"name"}); name != nullptr && name->is_string()) node.name = *name;
    if (const TraceJson* type = field(one, {"type"}); type != nullptr && *type == "METADATA_NODE") return;
    if (const TraceJson* cat = field(one, {"cat"}); cat != nullptr && cat->is_string())
      node.on_device = cat->get<std::string>() == "kernel" || cat->get<std::string>().starts_with("gpu_");
    const auto collect = [&](std::initializer_list<const char*> keys, std::vector<std::int64_t>& to) {
      const TraceJson* list = field(one, keys);
      if (list == nullptr) return;
      if (!list->is_array()) {
        to.push_back(number(node, *keys.begin(), *list));
        return;
      }
      for (const TraceJson& each : *list) to.push_back(number(node, *keys.begin(), each));
    };
    const TraceJson* control = field(one, {"ctrl_deps", "ctrlDeps", "parent"});
    if (control != nullptr && !control->is_array())
      collect({"ctrl_deps", "ctrlDeps", "parent"}, node.parents);
    else
      collect({"ctrl_deps", "ctrlDeps"}, node.waits_for);
    collect({"data_deps", "dataDeps"}, node.waits_for);
    if (const TraceJson* took = field(one, {"exclusive_dur", "dur", "durationMicros", "duration_micros"})) {
      node.microseconds = took->is_number() ? took->get<double>() : static_cast<double>(number(node, "dur", *took));
      if (!(*node.microseconds >= 0 && *node.microseconds < kMostMicroseconds))
        fail(node, "dur", fmt::format("{} us is no duration", *node.microseconds));
    }
    if (const TraceJson* inputs = field(one, {"inputs"})) node.inputs = tensors_of(*inputs);
    if (const TraceJson* outputs = field(one, {"outputs"})) node.outputs = tensors_of(*outputs);
    if (node.outputs.empty()) add_size(one, node);
    if (!ids_.insert(node.id).second) fail(node, "id", fmt::format("there is a node {} already", node.id));
    nodes_.push_back(std::move(node));
  }

  /// Chakra's attributes: a tensor without a number.
  static void add_size(const TraceJson& one, TraceNode& node) {
    const TraceJson* list = field(one, {"attr", "attrs"});
    if (list == nullptr || !list->is_array()) return;
    for (const TraceJson& attribute : *list) {
      if (!attribute.is_object()) continue;
      const TraceJson* name = field(attribute, {"name"});
      if (name == nullptr || (*name != "tensor_size" && *name != "comm_size")) continue;
      const TraceJson* value = field(attribute, {"uint64Val", "int64Val", "uint64_val", "int64_val", "value"});
      if (value == nullptr) continue;
      double bytes = -1;
      if (value->is_number()) bytes = value->get<double>();
      if (value->is_string()) bytes = std::strtod(value->get<std::string>().c_str(), nullptr);
      if (bytes > 0 && bytes < kMostTensorBytes) node.outputs.push_back({-1, bytes});
    }
  }

  void need_durations() const {
    if (std::none_of(nodes_.begin(), nodes_.end(), [](const TraceNode& n) { return n.microseconds.has_value(); }))
      throw ConfigError(Location{file_, 1, 0}, "nodes",
                        "no node has a duration; link the trace with the profiler's (chakra_trace_link)");
  }

  static std::string name_of(const TraceNode& node) { return fmt::format("{}/{}", node.name, node.id); }

  /// Nodes that call no others are what runs; who wrote a storage last comes before who reads it.
  NamedGraph by_tensors() const {
    need_durations();
    std::set<std::int64_t> callers;
    bool has_device = false;
    for (const TraceNode& node : nodes_) {
      callers.insert(node.parents.begin(), node.parents.end());
      has_device = has_device || node.on_device;
    }
    struct Storage {
      std::string owner, writer;
    };
    std::map<std::int64_t, Storage> storages;
    GraphDraft draft;
    for (const TraceNode& node : nodes_) {
      if (callers.contains(node.id) || (node.inputs.empty() && node.outputs.empty())) continue;
      DraftNode made;
      made.name = name_of(node);
      made.where = node.where;
      if (node.on_device || !has_device) made.seconds = node.microseconds.value_or(0) * 1e-6;
      const bool in_place = node.name.ends_with("_") || node.name.ends_with("_out");
      for (const TraceTensor& in : node.inputs) {
        Storage& storage = storages[in.storage];
        if (storage.owner.empty()) {  // there before the trace: a parameter, or data
          storage.owner = storage.writer = fmt::format("storage/{}", in.storage);
          draft.add({storage.owner, 0, in.bytes, Lifetime::residual, "", node.where});
        }
        draft.add_edge(storage.owner, made.name, in.bytes, node.where);
        if (storage.writer != storage.owner) draft.add_edge(storage.writer, made.name, 0, node.where);
      }
      for (const TraceTensor& out : node.outputs) {
        Storage& storage = storages[out.storage];
        if (storage.owner.empty()) {
          storage.owner = made.name;
          made.bytes += out.bytes;
        } else if (in_place && storage.owner != made.name) {
          made.with = storage.owner;
          made.lifetime = Lifetime::reference;
        }
        storage.writer = made.name;
      }
      draft.add(std::move(made));
    }
    return draft.finish(file_);
  }

  /// Nodes wait for each other; what one reads of another is what their lists of tensors share, else all of its output.
  NamedGraph by_nodes() const {
    need_durations();
    std::map<std::int64_t, const TraceNode*> by_id;
    for (const TraceNode& node : nodes_) by_id[node.id] = &node;
    GraphDraft draft;
    for (const TraceNode& node : nodes_) {
      DraftNode made{name_of(node), node.microseconds.value_or(0) * 1e-6, 0, Lifetime::normal, "", node.where};
      for (const TraceTensor& out : node.outputs) made.bytes += out.bytes;
      for (const std::int64_t id : std::set<std::int64_t>(node.waits_for.begin(), node.waits_for.end())) {
        const auto found = by_id.find(id);
        if (found == by_id.end()) fail(node, "data_deps", fmt::format("there is no node {}", id));
        double all = 0, shared = 0;
        for (const TraceTensor& out : found->second->outputs) {
          all += out.bytes;
          for (const TraceTensor& in : node.inputs)
            if (in.storage == out.storage && out.storage >= 0) {
              shared += out.bytes;
              break;
            }
        }
        draft.add_edge(name_of(*found->second), made.name, node.inputs.empty() ? all : shared, node.where);
      }
      draft.add(std::move(made));
    }
    return draft.finish(file_);
  }

  const std::string& text_;
  std::string file_;
  std::vector<TraceNode> nodes_;
  std::set<std::int64_t> ids_;
};

}  // namespace

NamedGraph read_chakra_trace(const std::string& text, const std::string& file) {
  return ChakraTrace(text, file).graph();
}

}  // namespace epocast
