// Chrome traces of the PyTorch profiler, recorded with record_shapes=True. An operator's time is the sum of the GPU
// kernels that it, or what it calls, launched; on a CPU its own duration. Repeated calls of one shape count as their
// median.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "experiments/calibrate/import.hpp"

namespace epocast {
namespace {

using Json = nlohmann::json;
using Dimensions = std::vector<std::int64_t>;
constexpr double kMicrosecond = 1e-6;

struct Operator {
  std::string name;
  std::vector<Dimensions> inputs;   ///< empty lists for scalars
  std::vector<std::string> values;  ///< "Concrete Inputs", if recorded
  double start = 0, duration = 0;   ///< [us]
  std::int64_t thread = 0, id = -1;
};

class TraceReader {
 public:
  TraceReader(const std::filesystem::path& file, const ImportOptions& options)
      : file_(file.string()), options_(options) {}

  KernelMeasurements read() {
    load();
    KernelMeasurements out;
    out.device = options_.device;
    out.source = "PyTorch profiler trace " + file_;
    std::map<std::pair<std::string, std::string>, std::pair<KernelShape, std::vector<double>>> times;
    std::map<std::string, int> unknown;
    for (const Operator& op : operators_) {
      const auto shape = shape_of(op);
      if (!shape) {
        if (op.name.starts_with("aten::")) ++unknown[op.name];
        continue;
      }
      const double time = kernels_.empty() ? op.duration : kernel_time(op);
      if (!(time > 0)) continue;
      auto& entry = times[{std::string(shape->family()) + to_string(shape->pass), shape->text()}];
      entry.first = *shape;
      entry.second.push_back(time * kMicrosecond);
    }
    for (auto& [key, entry] : times) {
      std::vector<double>& all = entry.second;
      std::ranges::sort(all);
      out.timings.push_back({entry.first, Seconds(all[all.size() / 2]), 0});
    }
    if (!unknown.empty()) {
      int count = 0;
      for (const auto& [name, n] : unknown) count += n;
      out.left_out.push_back(fmt::format("{}: {} calls of {} operators that are parts of others or have no model",
                                         file_, count, unknown.size()));
    }
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& where, const std::string& what) const {
    throw ConfigError(Location{file_, 0, 0}, where, what);
  }

  void load() {
    std::ifstream in(file_, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    Json trace;
    try {
      trace = Json::parse(text);
    } catch (const Json::parse_error& problem) {
      const auto read = static_cast<std::ptrdiff_t>(std::min(problem.byte, text.size()));
      const auto line = 1 + std::count(text.begin(), text.begin() + read, '\n');
      throw ConfigError(Location{file_, static_cast<int>(line), 0}, "",
                        std::string("is not whole JSON; is the file cut off? ") + problem.what());
    }
    const Json* events = trace.is_array()                                     ? &trace
                         : trace.is_object() && trace.contains("traceEvents") ? &trace["traceEvents"]
                                                                              : nullptr;
    if (events == nullptr || !events->is_array())
      fail("traceEvents", "is missing; is this a Chrome trace of the PyTorch profiler?");
    if (options_.device.empty() && trace.is_object() && trace.contains("deviceProperties") &&
        trace["deviceProperties"].is_array() && !trace["deviceProperties"].empty() &&
        trace["deviceProperties"][0].is_object())
      options_.device = trace["deviceProperties"][0].value("name", "");
    std::size_t index = 0;
    for (const Json& event : *events) read_event(event, index++);
    std::ranges::stable_sort(operators_, {}, place);
    if (operators_.empty()) fail("traceEvents", "holds no operators with shapes; record with record_shapes=True");
  }

  void read_event(const Json& event, std::size_t index) {
    if (!event.is_object() || !event.contains("ph") || event["ph"] != "X" || !event.contains("cat")) return;
    const bool kernel = event["cat"] == "kernel";
    if (!kernel && event["cat"] != "cpu_op") return;
    const std::string where = fmt::format("traceEvents[{}]", index);
    const auto number = [&](const char* key) {
      if (!event.contains(key) || !event[key].is_number()) fail(where + "." + key, "must be a number");
      const double value = event[key].get<double>();
      if (!std::isfinite(value) || value < 0 || value > 1e18) fail(where + "." + key, "must be a time in microseconds");
      return value;
    };
    const Json args = event.contains("args") && event["args"].is_object() ? event["args"] : Json::object();
    std::int64_t id = -1;
    for (const char* key : {"External id", "external id"})
      if (args.contains(key) && args[key].is_number_integer()) id = args[key].get<std::int64_t>();
    if (kernel) {
      kernels_[id] += number("dur");
      return;
    }
    Operator op;
    op.start = number("ts");
    op.duration = number("dur");
    op.id = id;
    if (event.contains("name") && event["name"].is_string()) op.name = event["name"].get<std::string>();
    if (event.contains("tid") && event["tid"].is_number_integer()) op.thread = event["tid"].get<std::int64_t>();
    if (args.contains("Input Dims") && args["Input Dims"].is_array())
      for (const Json& dims : args["Input Dims"]) op.inputs.push_back(dimensions(dims, where));
    if (args.contains("Concrete Inputs") && args["Concrete Inputs"].is_array())
      for (const Json& value : args["Concrete Inputs"])
        op.values.push_back(value.is_string() ? value.get<std::string>() : "");
    operators_.push_back(std::move(op));
  }

  Dimensions dimensions(const Json& dims, const std::string& where) const {
    Dimensions out;
    if (!dims.is_array()) return out;
    for (const Json& d : dims) {
      if (!d.is_number_integer()) return {};  // a list of tensors
      const auto value = d.get<std::int64_t>();
      if (value < 0 || value > (1LL << 40)) fail(where + ".args.Input Dims", "holds a dimension out of range");
      out.push_back(value);
    }
    return out;
  }

  static std::pair<std::int64_t, double> place(const Operator& op) { return {op.thread, op.start}; }

  /// Time of kernels launched by an operator or by those that lie within it on the same thread.
  double kernel_time(const Operator& op) const {
    double sum = 0;
    std::set<std::int64_t> counted;
    const double end = op.start + op.duration;
    // operators_ is sorted by thread and start: what lies within follows.
    auto at = std::ranges::lower_bound(operators_, std::pair(op.thread, op.start), {}, place);
    for (; at != operators_.end() && at->thread == op.thread && at->start <= end; ++at) {
      const Operator& inner = *at;
      if (inner.start + inner.duration > end) continue;
      const auto found = kernels_.find(inner.id);
      if (inner.id >= 0 && found != kernels_.end() && counted.insert(inner.id).second) sum += found->second;
    }
    return sum;
  }

  /// The value of the n-th argument as numbers: "[2, 2]".
  static Dimensions numbers(const Operator& op, std::size_t n) {
    Dimensions out;
    if (n >= op.values.size()) return out;
    std::int64_t value = -1;
    for (const char c : op.values[n]) {
      if (c >= '0' && c <= '9' && value < (1LL << 40)) {
        value = std::max<std::int64_t>(value, 0) * 10 + (c - '0');
      } else if (value >= 0) {
        out.push_back(value);
        value = -1;
      }
    }
    if (value >= 0) out.push_back(value);
    return out;
  }

  static std::optional<KernelShape> convolution(const Operator& op, const Dimensions& input, const Dimensions& weight,
                                                std::size_t stride_at, std::size_t padding_at, KernelPass pass) {
    if (input.size() != 4 || weight.size() != 4 || std::min(std::ranges::min(input), std::ranges::min(weight)) < 1 ||
        input[1] % weight[1] != 0)
      return std::nullopt;
    Dimensions stride = numbers(op, stride_at);
    Dimensions padding = numbers(op, padding_at);
    if (stride.empty() || stride.front() < 1) return std::nullopt;  // without it the output's size is unknown
    stride.resize(2, stride.front());
    padding.resize(2, padding.empty() ? 0 : padding.front());
    if (stride[1] < 1) return std::nullopt;
    ConvolutionShape s{input[0],
                       input[1],
                       input[2],
                       input[3],
                       weight[0],
                       weight[2],
                       weight[3],
                       1,
                       1,
                       std::max(stride[0], stride[1]),
                       input[1] / weight[1]};
    s.out_height = (s.height + 2 * padding[0] - s.kernel_height) / stride[0] + 1;
    s.out_width = (s.width + 2 * padding[1] - s.kernel_width) / stride[1] + 1;
    if (s.out_height < 1 || s.out_width < 1) return std::nullopt;
    return KernelShape{s, pass};
  }

  static std::optional<KernelShape> product(const Dimensions& a, const Dimensions& b) {
    if (a.size() != 2 || b.size() != 2 || a[1] != b[0] || std::min({a[0], a[1], b[1]}) < 1) return std::nullopt;
    // Row by row, a is samples x inputs: column by column as BLAS sees it, n x k. Transposition is not in the trace.
    return KernelShape{GemmShape{b[1], a[0], a[1], true, false}, KernelPass::forward};
  }

  /// The kernel that an operator amounts to; none for those that call others, and for what has no model.
  static std::optional<KernelShape> shape_of(const Operator& op) {
    static const std::map<std::string, LayerKind> memory{{"aten::relu_", LayerKind::activation},
                                                         {"aten::relu", LayerKind::activation},
                                                         {"aten::max_pool2d_with_indices", LayerKind::pooling},
                                                         {"aten::avg_pool2d", LayerKind::pooling},
                                                         {"aten::native_batch_norm", LayerKind::batch_norm},
                                                         {"aten::cudnn_batch_norm", LayerKind::batch_norm},
                                                         {"aten::add_", LayerKind::add}};
    const auto& in = op.inputs;
    if (op.name == "aten::convolution" && in.size() > 1)
      return convolution(op, in[0], in[1], 3, 4, KernelPass::forward);
    if (op.name == "aten::convolution_backward" && in.size() > 2)
      return convolution(op, in[1], in[2], 4, 5, KernelPass::backward);
    if (op.name == "aten::mm" && in.size() > 1) return product(in[0], in[1]);
    if (op.name == "aten::addmm" && in.size() > 2) return product(in[1], in[2]);
    const auto found = memory.find(op.name);
    if (found == memory.end() || in.empty() || in[0].empty()) return std::nullopt;
    double values = 2;  // read and written
    for (const std::int64_t d : in[0]) values *= static_cast<double>(d);
    if (values < 2 || values > 1e12) return std::nullopt;
    return KernelShape{MemoryShape{to_string(found->second), static_cast<std::int64_t>(values)}, KernelPass::forward};
  }

  std::string file_;
  ImportOptions options_;
  std::vector<Operator> operators_;
  std::map<std::int64_t, double> kernels_;  ///< [us] by the operator that launched them
};

}  // namespace

KernelMeasurements import_profiler_trace(const std::filesystem::path& file, const ImportOptions& options) {
  return TraceReader(file, options).read();
}

}  // namespace epocast
