// Chrome traces of the PyTorch profiler (Kineto), recorded with record_shapes=True. An operator's time is the sum of
// the kernels that it, or what it calls, launched (traced_kernels.hpp); on a CPU its own duration. Repeated calls of
// one shape count as their median. The same operators are found whether they are called from a forward pass or by
// autograd.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "experiments/calibrate/import.hpp"
#include "experiments/calibrate/trace_position.hpp"
#include "experiments/calibrate/traced_kernels.hpp"
#include "sim/input_file.hpp"
#include "sim/quantile.hpp"

namespace epocast {
namespace {

using Json = nlohmann::json;
using Dimensions = std::vector<std::int64_t>;
constexpr double kMicrosecond = 1e-6;

struct Operator : TracedCall {
  std::string name;
  std::vector<Dimensions> inputs;   ///< empty lists for scalars
  std::vector<std::string> values;  ///< "Concrete Inputs", if recorded
  std::string other_type;           ///< of the first input that is a tensor of another precision than fp32
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
    std::map<std::string, int> unknown, other_types;
    std::vector<bool> modelled(operators_.size(), false);  // itself, or part of one that is
    for (std::size_t i = 0; i < operators_.size(); ++i) {
      const Operator& op = operators_[i];
      const auto shape = shape_of(op);
      if (!shape) {
        if (op.name.starts_with("aten::")) ++unknown[op.name];
        continue;
      }
      if (!op.other_type.empty()) {
        ++other_types[op.other_type];
        continue;
      }
      const double time = kernels_.any() ? kernel_time(i, modelled) : op.duration;
      if (!(time > 0)) continue;
      auto& entry = times[{std::string(shape->family()) + to_string(shape->pass), shape->text()}];
      entry.first = *shape;
      entry.second.push_back(time * kMicrosecond);
    }
    for (auto& [key, entry] : times) out.timings.push_back({entry.first, Seconds(median(std::move(entry.second))), 0});
    if (!unknown.empty()) {
      int count = 0;
      for (const auto& [name, n] : unknown) count += n;
      out.left_out.push_back(fmt::format("{}: {} calls of {} operators that are parts of others or have no model",
                                         file_, count, unknown.size()));
    }
    for (const auto& [type, n] : other_types)
      out.left_out.push_back(fmt::format("{}: {} calls on {}; only fp32 is modelled", file_, n, type));
    if (kernels_.any()) note_gpu_time(out, modelled);
    if (out.timings.empty())
      fail("traceEvents",
           "no operator of a known kind has shapes and a time; record fp32 training steps with record_shapes=True");
    return out;
  }

 private:
  /// Of all events: at the line on which they begin, or of the whole file if it has none.
  [[noreturn]] void fail(const std::string& where, const std::string& what) const {
    throw ConfigError(Location{file_, std::max(1, line_of_event(text_, 0)), 0}, where, what);
  }
  [[noreturn]] void fail_event(const std::string& key, const std::string& what) const {
    const std::string where = fmt::format("traceEvents[{}]", event_);
    throw ConfigError(Location{file_, line_of_event(text_, event_), 0}, where + "." + key, what);
  }

  /// How much of the GPU's time has no model, and whose it is.
  void note_gpu_time(KernelMeasurements& out, const std::vector<bool>& modelled) const {
    std::map<std::string, double> by_name;
    double rest = unclaimed_, all = unclaimed_;
    for (std::size_t i = 0; i < operators_.size(); ++i) {
      all += operators_[i].launched;
      if (modelled[i] || operators_[i].launched <= 0) continue;
      rest += operators_[i].launched;
      by_name[operators_[i].name] += operators_[i].launched;
    }
    if (rest <= 0) return;
    std::vector<std::pair<std::string, double>> most(by_name.begin(), by_name.end());
    std::ranges::stable_sort(most, [](const auto& a, const auto& b) { return a.second > b.second; });
    std::string names;
    for (std::size_t i = 0; i < std::min<std::size_t>(most.size(), 3); ++i) names += ", " + most[i].first;
    out.left_out.push_back(fmt::format("{}: {:.1f} % of the GPU's time, of operators without a model{}{}", file_,
                                       100 * rest / all, names.empty() ? "" : ", most in ",
                                       names.empty() ? "" : names.substr(2)));
  }

  void load() {
    try {
      read_trace();
    } catch (const Json::exception& problem) {  // a number beyond all range, a text where a number is due
      throw ConfigError(Location{file_, std::max(1, line_of_event(text_, event_)), 0}, "",
                        std::string("is no trace that can be read: ") + problem.what());
    }
  }

  void read_trace() {
    text_ = read_input_file(file_);
    Json trace;
    try {
      trace = Json::parse(text_);
    } catch (const Json::parse_error& problem) {
      const auto read = static_cast<std::ptrdiff_t>(std::min(problem.byte, text_.size()));
      const auto line = 1 + std::count(text_.begin(), text_.begin() + read, '\n');
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
    for (const Json& event : *events) {
      read_event(event);
      ++event_;
    }
    std::ranges::stable_sort(operators_, comes_before);
    if (operators_.empty()) fail("traceEvents", "holds no operators with shapes; record with record_shapes=True");
    std::vector<TracedCall*> calls;
    for (Operator& op : operators_) calls.push_back(&op);
    unclaimed_ = kernels_.assign(calls);
  }

  static std::int64_t integer(const Json& args, std::initializer_list<const char*> keys) {
    for (const char* key : keys)
      if (args.contains(key) && args[key].is_number_integer()) return args[key].get<std::int64_t>();
    return -1;
  }
  static std::string name_of(const Json& event, const char* key) {
    if (!event.contains(key)) return "";
    return event[key].is_string() ? event[key].get<std::string>() : event[key].dump();
  }

  /// Times and durations are in microseconds whatever displayTimeUnit says (Chrome's trace event format).
  double microseconds(const Json& event, const char* key) const {
    if (!event.contains(key)) fail_event(key, "is missing; is the file cut off or from another program?");
    if (!event[key].is_number()) fail_event(key, "must be a number");
    const double value = event[key].get<double>();
    if (!std::isfinite(value) || value < 0 || value > 1e18) fail_event(key, "must be a time in microseconds");
    return value;
  }

  void read_event(const Json& event) {
    if (!event.is_object() || !event.contains("ph") || event["ph"] != "X" || !event.contains("cat")) return;
    const TraceEvent kind = trace_event(event["cat"].is_string() ? event["cat"].get<std::string>() : "");
    if (kind == TraceEvent::other) return;
    const Json args = event.contains("args") && event["args"].is_object() ? event["args"] : Json::object();
    Operator op;
    op.thread = {name_of(event, "pid"), name_of(event, "tid")};
    op.start = microseconds(event, "ts");
    op.duration = microseconds(event, "dur");
    op.id = integer(args, {"External id", "external id"});
    const std::int64_t correlation = integer(args, {"correlation"});
    if (kind == TraceEvent::kernel) return kernels_.add_kernel(op.id, correlation, op.duration);
    if (kind == TraceEvent::launch) return kernels_.add_launch(correlation, std::move(op));
    op.name = name_of(event, "name");
    if (args.contains("Input Dims") && args["Input Dims"].is_array())
      for (const Json& dims : args["Input Dims"]) op.inputs.push_back(dimensions(dims));
    for (const char* key : {"Input type", "Input Types"})
      if (args.contains(key) && args[key].is_array())
        for (const Json& type : args[key])
          if (const std::string name = type.is_string() ? type.get<std::string>() : "";
              op.other_type.empty() && (name == "c10::Half" || name == "c10::BFloat16" || name == "double"))
            op.other_type = name;
    if (args.contains("Concrete Inputs") && args["Concrete Inputs"].is_array())
      for (const Json& value : args["Concrete Inputs"])
        op.values.push_back(value.is_string() ? value.get<std::string>() : "");
    operators_.push_back(std::move(op));
  }

  Dimensions dimensions(const Json& dims) const {
    Dimensions out;
    if (!dims.is_array()) return out;
    for (const Json& d : dims) {
      if (!d.is_number_integer()) return {};  // a list of tensors
      const auto value = d.get<std::int64_t>();
      if (value < 0 || value > (1LL << 40)) fail_event("args.Input Dims", "holds a dimension out of range");
      out.push_back(value);
    }
    return out;
  }

  /// Time of kernels launched by an operator or by those that lie within it on the same thread.
  double kernel_time(std::size_t index, std::vector<bool>& modelled) const {
    const Operator& op = operators_[index];
    double sum = 0;
    // operators_ is sorted by thread and start: what lies within follows.
    for (std::size_t i = index; i < operators_.size(); ++i) {
      const Operator& inner = operators_[i];
      if (inner.thread != op.thread || inner.start > op.end()) break;
      if (inner.end() > op.end()) continue;
      sum += inner.launched;
      modelled[i] = true;
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
                                                std::size_t stride_at, KernelPass pass) {
    if (input.size() != 4 || weight.size() != 4 || std::min(std::ranges::min(input), std::ranges::min(weight)) < 1 ||
        input[1] % weight[1] != 0)
      return std::nullopt;
    // Arguments follow one another: stride, padding, dilation, transposed, output padding, groups.
    const std::size_t padding_at = stride_at + 1;
    if (stride_at + 3 < op.values.size() && op.values[stride_at + 3] == "True") return std::nullopt;
    Dimensions stride = numbers(op, stride_at);
    Dimensions padding = numbers(op, padding_at);
    Dimensions dilation = numbers(op, stride_at + 2);
    if (stride.empty() || stride.front() < 1) return std::nullopt;  // without it the output's size is unknown
    stride.resize(2, stride.front());
    padding.resize(2, padding.empty() ? 0 : padding.front());
    dilation.resize(2, dilation.empty() ? 1 : dilation.front());
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
    s.out_height = (s.height + 2 * padding[0] - dilation[0] * (s.kernel_height - 1) - 1) / stride[0] + 1;
    s.out_width = (s.width + 2 * padding[1] - dilation[1] * (s.kernel_width - 1) - 1) / stride[1] + 1;
    if (std::min(dilation[0], dilation[1]) < 1 || s.out_height < 1 || s.out_width < 1) return std::nullopt;
    return KernelShape{s, pass};
  }

  static double values_of(const Dimensions& tensor) {
    double values = tensor.empty() ? 0 : 1;  // a scalar is none
    for (const std::int64_t d : tensor) values *= static_cast<double>(d);
    return values;
  }

  /// Values that a pooling writes: its arguments are input, window, stride, padding, of maxima dilation, ceil_mode.
  /// None where they were not recorded.
  static std::optional<double> pooled_values(const Operator& op) {
    const bool is_maximum = op.name == "aten::max_pool2d_with_indices";
    const Dimensions& input = op.inputs[0];
    Dimensions window = numbers(op, 1), stride = numbers(op, 2), padding = numbers(op, 3), dilation;
    if (is_maximum) dilation = numbers(op, 4);
    const std::size_t ceil_at = is_maximum ? 5 : 4;
    if (input.size() < 2 || window.empty()) return std::nullopt;
    if (stride.empty()) stride = window;
    const bool up = ceil_at < op.values.size() && op.values[ceil_at] == "True";
    double out = values_of(input);
    for (std::size_t i = 0; i < 2; ++i) {  // height and width
      const auto of = [&](const Dimensions& list, double otherwise) {
        return list.empty() ? otherwise : static_cast<double>(list[std::min(i, list.size() - 1)]);
      };
      const auto size = static_cast<double>(input[input.size() - 2 + i]);
      const double padded = size + of(padding, 0), step = of(stride, 1);
      const double steps = (padded + of(padding, 0) - of(dilation, 1) * (of(window, 1) - 1) - 1) / step;
      if (!(size >= 1) || !(step >= 1) || !(steps >= 0)) return std::nullopt;
      // Rounded up, the last window still begins in the input or the padding before it.
      const double last = up ? std::min(std::ceil(steps), std::ceil(padded / step) - 1) : std::floor(steps);
      out *= (last + 1) / size;
    }
    return out;
  }

  /// What a layer of this kind reads and writes, its parameters included, as the cost model counts it in fp32
  /// (layer_kernel() and the softmax of attention in costmodels/layer_kernels.cpp).
  static std::optional<double> values_moved(const Operator& op, LayerKind kind, KernelPass pass) {
    const double input = values_of(op.inputs[0]);
    const auto others = [&](std::size_t first, std::size_t last) {
      double values = 0;
      for (std::size_t i = first; i <= last && i < op.inputs.size(); ++i) values += values_of(op.inputs[i]);
      return values;
    };
    switch (kind) {
      case LayerKind::pooling: {
        const auto output = pooled_values(op);
        return output ? std::optional(input + *output) : std::nullopt;
      }
      case LayerKind::add: return 2 * input + others(1, 1);
      case LayerKind::batch_norm: return 2 * input + others(1, 2);  // scale and shift
      case LayerKind::layer_norm: return 2 * input + others(2, 3);  // behind the shape that is normalised
      case LayerKind::softmax: return (pass == KernelPass::forward ? 2 : 3) * input;
      default: return 2 * input;
    }
  }

  static std::optional<KernelShape> product(const Dimensions& a, const Dimensions& b) {
    if (a.size() != 2 || b.size() != 2 || a[1] != b[0] || std::min({a[0], a[1], b[1]}) < 1) return std::nullopt;
    // Row by row, a is samples x inputs: column by column as BLAS sees it, n x k. Transposition is not in the trace.
    return KernelShape{GemmShape{b[1], a[0], a[1], true, false}, KernelPass::forward};
  }

  static std::optional<KernelShape> batched_product(const Dimensions& a, const Dimensions& b) {
    if (a.size() != 3 || b.size() != 3 || a[0] != b[0] || a[2] != b[1] || std::min({a[0], a[1], a[2], b[2]}) < 1)
      return std::nullopt;
    return KernelShape{GemmShape{b[2], a[1], a[2], true, false, a[0]}, KernelPass::forward};
  }

  /// Both gradients are one operator, unless its mask [input, weight, bias] leaves one out.
  static KernelPass backward_pass(const Operator& op) {
    constexpr std::size_t kMask = 10;
    const std::string mask = kMask < op.values.size() ? op.values[kMask] : "";
    if (mask.starts_with("[False, True")) return KernelPass::backward_weights;
    if (mask.starts_with("[True, False")) return KernelPass::backward_data;
    return KernelPass::backward;
  }

  /// The kernel that an operator amounts to; none for those that call others, and for what has no model.
  static std::optional<KernelShape> shape_of(const Operator& op) {
    constexpr KernelPass kForward = KernelPass::forward, kBackward = KernelPass::backward_data;
    static const std::map<std::string, std::pair<LayerKind, KernelPass>> memory{
        {"aten::relu_", {LayerKind::activation, kForward}},
        {"aten::relu", {LayerKind::activation, kForward}},
        {"aten::gelu", {LayerKind::activation, kForward}},
        {"aten::threshold_backward", {LayerKind::activation, kBackward}},
        {"aten::gelu_backward", {LayerKind::activation, kBackward}},
        {"aten::max_pool2d_with_indices", {LayerKind::pooling, kForward}},
        {"aten::avg_pool2d", {LayerKind::pooling, kForward}},
        {"aten::native_batch_norm", {LayerKind::batch_norm, kForward}},
        {"aten::cudnn_batch_norm", {LayerKind::batch_norm, kForward}},
        {"aten::native_layer_norm", {LayerKind::layer_norm, kForward}},
        {"aten::_softmax", {LayerKind::softmax, kForward}},
        {"aten::_softmax_backward_data", {LayerKind::softmax, kBackward}},
        {"aten::add_", {LayerKind::add, kForward}}};
    const auto& in = op.inputs;
    if (op.name == "aten::convolution" && in.size() > 1) return convolution(op, in[0], in[1], 3, kForward);
    if (op.name == "aten::convolution_backward" && in.size() > 2)
      return convolution(op, in[1], in[2], 4, backward_pass(op));
    if (op.name == "aten::mm" && in.size() > 1) return product(in[0], in[1]);
    if (op.name == "aten::addmm" && in.size() > 2) return product(in[1], in[2]);
    if (op.name == "aten::bmm" && in.size() > 1) return batched_product(in[0], in[1]);
    if (op.name == "aten::baddbmm" && in.size() > 2) return batched_product(in[1], in[2]);
    const auto found = memory.find(op.name);
    if (found == memory.end() || in.empty() || in[0].empty()) return std::nullopt;
    const auto [kind, pass] = found->second;
    const std::optional<double> values = values_moved(op, kind, pass);
    if (!values || *values < 1 || *values > 1e12) return std::nullopt;
    MemoryShape memory_shape{to_string(kind), std::llround(*values)};
    if (kind == LayerKind::batch_norm && in[0].size() > 1) {
      memory_shape.channels = in[0][1];
      if (in[0].size() == 5) memory_shape.op = "batch_norm_3d";
    }
    return KernelShape{memory_shape, pass};
  }

  std::string file_;
  ImportOptions options_;
  std::string text_;
  std::size_t event_ = 0;  ///< the one being read
  std::vector<Operator> operators_;
  TracedKernels kernels_;
  double unclaimed_ = 0;  ///< [us] of kernels that no operator launched
};

}  // namespace

KernelMeasurements import_profiler_trace(const std::filesystem::path& file, const ImportOptions& options) {
  return TraceReader(file, options).read();
}

}  // namespace epocast
