#include "costmodels/software_stack.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "costmodels/framework_kernels.hpp"
#include "sim/config_word.hpp"
#include "sim/data_file.hpp"
#include "sim/text.hpp"

namespace epocast {
namespace {

constexpr double kCopyEfficiency = 0.8;  // share of the memory bandwidth that copies reach; as in the roofline model
constexpr double kFp32 = 4;              // bytes
constexpr double kMostInterference = 0.99;

double parameters_of(const LayerTrace& layer, Precision precision) {
  return layer.parameters.value / bytes_per_value(precision);
}

}  // namespace

double expected_maximum(std::int64_t n) {
  if (n <= 1) return 0;
  // The integral of x n f(x) F(x)^(n - 1), by the trapezoidal rule, which for such integrands is exact to rounding.
  constexpr double kReach = 12, kStep = 1.0 / 256;
  const auto count = static_cast<double>(n);
  double sum = 0;
  for (double x = -kReach; x <= kReach; x += kStep) {
    const double density = std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    const double below = std::erfc(-x / std::numbers::sqrt2) / 2;
    sum += x * count * density * std::pow(below, count - 1);
  }
  return sum * kStep;
}

SoftwareStack::SoftwareStack(const ConfigNode& root) : name_(root.at("stack").as_string()) {
  root.get("description", "");
  root.get("source", "");
  if (root.has("strategies")) {
    const ConfigNode strategies = root.at("strategies");
    for (const std::string& strategy : strategies.keys()) {
      const ConfigNode options = strategies.at(strategy);
      std::vector<Default> defaults;
      for (const std::string& option : options.keys()) defaults.push_back({option, options.at(option)});
      options.mark_all_read();
      strategies_.emplace_back(strategy, std::move(defaults));
    }
  }
  if (root.has("collectives")) {
    const std::string word = root.at("collectives").as_string();
    const std::vector<std::string> choices = collective_algorithm_choice_names();
    if (std::ranges::find(choices, word) == choices.end())
      throw root.at("collectives").error("unknown choice '" + word + "'" + name_hint(word, choices));
    collectives_ = parse_collective_algorithm(word);
  }
  if (root.has("gradients")) {
    const std::string word = root.at("gradients").as_string();
    if (word != "fp32" && word != "as_weights")
      throw root.at("gradients").error("unknown precision '" + word + "'" + name_hint(word, {"fp32", "as_weights"}));
    fp32_gradients_ = word == "fp32";
  }
  copies_ = root.get("copies", copies_, Range{0, 100});
  accumulation_ = root.get("accumulation", accumulation_, Range{0, 100});
  if (root.has("update_traffic")) {
    const ConfigNode traffic = root.at("update_traffic");
    for (const std::string& precision : traffic.keys())
      update_traffic_[parse_name(traffic.at(precision), precision, parse_precision)] =
          traffic.at(precision).as_double(Range{0, 1000});
  }
  if (root.has("processor_rate"))
    processor_time_ = 1 / root.at("processor_rate").as_bytes_per_second(Range{1e3, 1e18}).value;
  handshake_ = root.get("handshake", handshake_, Range{0, 10});
  if (root.has("window")) window_ = root.at("window").as_bytes(Range{16384, 1e15}).value;
  collective_overhead_ = root.get("collective_overhead", collective_overhead_, Range{0, 10});
  interference_ = root.get("interference", interference_, Range{0, kMostInterference});
  spread_ = root.get("spread", spread_, Range{0, 1});
  scale(root.get("scale", 1.0, Range{0, 100}));
  for (const std::string& key : framework_kernel_keys())
    if (root.has(key)) kernels_.push_back({key, root.at(key)});
  read_framework_kernels(root);
  if (root.has("update_accesses")) {
    update_accesses_ = root.at("update_accesses");
    read_update_accesses(*update_accesses_, Optimizer::sgd);
  }
  launch_ = root.get("launch", launch_, Range{0, 1});
  if (root.has("input")) {
    const ConfigNode input = root.at("input");
    worker_input_ = input.has("per_worker") ? input.at("per_worker").as_double(Range{1e-6, 1e15}) : 0;
    node_input_ = input.has("per_node") ? input.at("per_node").as_double(Range{1e-6, 1e15}) : 0;
  }
  unexplained_ = root.get("unexplained", unexplained_, Range{0, 0.9});
  unexplained_kernels_ = root.get("unexplained_kernels", unexplained_kernels_, Range{0, 0.9});
  if (root.has("ranges")) read_ranges(root.at("ranges"), root.without("ranges"));
  root.check_all_read();
}

void SoftwareStack::scale(double factor) {
  copies_ *= factor;
  processor_time_ *= factor;
  handshake_ *= factor;
  collective_overhead_ = collective_overhead_ * factor;
  interference_ = std::min(interference_ * factor, kMostInterference);
  spread_ *= factor;
}

void SoftwareStack::read_ranges(const ConfigNode& ranges, const ConfigNode& root) {
  const std::vector<std::string> uncertain{"copies",    "accumulation", "processor_rate", "collective_overhead",
                                           "handshake", "window",       "interference",   "spread",
                                           "launch"};
  for (const std::string& key : ranges.keys()) {
    const ConfigNode range = ranges.at(key);
    if (std::ranges::find(uncertain, key) == uncertain.end())
      throw range.error("'" + key + "' has no range" + name_hint(key, uncertain));
    if (!root.has(key)) throw range.error("is a range of a key that the stack does not have; add " + key);
    const std::vector<ConfigNode> ends = range.items();
    if (ends.size() != 2) throw range.error("must be [low, high]");
    const auto with = [&](const ConfigNode& end) {
      end.mark_all_read();
      return std::make_shared<const SoftwareStack>(root.with(key, end));
    };
    ends_.push_back({key, with(ends[0]), with(ends[1])});
  }
}

std::optional<double> SoftwareStack::input_rate(std::int64_t workers_on_node) const {
  const double share = node_input_ / static_cast<double>(workers_on_node);
  if (worker_input_ > 0 && node_input_ > 0) return std::min(worker_input_, share);
  if (worker_input_ > 0) return worker_input_;
  if (node_input_ > 0) return share;
  return std::nullopt;
}

std::vector<SoftwareStack::Default> SoftwareStack::defaults(const std::string& strategy) const {
  const auto found = std::ranges::find(strategies_, strategy, [](const auto& entry) { return entry.first; });
  return found == strategies_.end() ? std::vector<Default>{} : found->second;
}

Seconds SoftwareStack::streaming_time(const Device& device) {
  return Seconds(1 / (kCopyEfficiency * device.memory_bandwidth.value));
}

double SoftwareStack::copy_time(const Device& device) const { return copies_ * streaming_time(device).value; }

void SoftwareStack::accumulate(WorkloadTrace& trace, int micro_batches, const DeviceTime& per_byte) const {
  const double adds = 1 - 1.0 / micro_batches;
  for (LayerTrace& layer : trace.layers) {
    const double parameters = parameters_of(layer, trace.precision);
    if (parameters > 0) layer.times.backward_weights += per_byte * (parameters * accumulation_ * adds);
  }
}

void SoftwareStack::add_update_traffic(WorkloadTrace& trace, Seconds per_byte) const {
  const auto traffic = update_traffic_.find(trace.precision);
  if (traffic == update_traffic_.end()) return;
  for (LayerTrace& layer : trace.layers) {
    const double parameters = parameters_of(layer, trace.precision);
    if (parameters > 0) layer.times.update += per_byte * (parameters * traffic->second);
  }
}

void SoftwareStack::apply(WorkloadTrace& trace, std::int64_t workers, bool in_step) const {
  const bool alone = workers <= 1;
  const double fp32 = fp32_gradients_ && !alone ? kFp32 / bytes_per_value(trace.precision) : 1;
  const double slowest = in_step && spread_ > 0 ? 1 + spread_ * expected_maximum(workers) : 1;
  for (LayerTrace& layer : trace.layers) {
    for (GradientTensor& tensor : layer.gradients) tensor.bytes *= fp32;
    layer.times = each_pass([&](DeviceTime LayerTimes::*pass) { return (layer.times.*pass) * slowest; });
  }
}

std::vector<std::pair<std::string, SoftwareStack>> SoftwareStack::without_each() const {
  std::vector<std::pair<std::string, SoftwareStack>> out;
  const auto add = [&](bool on, const char* mechanism, auto switch_off) {
    if (!on) return;
    out.emplace_back(mechanism, *this);
    switch_off(out.back().second);
  };
  add(fp32_gradients_, "gradients", [](SoftwareStack& s) { s.fp32_gradients_ = false; });
  add(copies_ > 0, "copies", [](SoftwareStack& s) { s.copies_ = 0; });
  add(accumulation_ > 0, "accumulation", [](SoftwareStack& s) { s.accumulation_ = 0; });
  add(!update_traffic_.empty(), "update_traffic", [](SoftwareStack& s) { s.update_traffic_.clear(); });
  add(processor_time_ > 0, "processor_rate", [](SoftwareStack& s) { s.processor_time_ = 0; });
  add(handshake_ > 0, "handshake", [](SoftwareStack& s) { s.handshake_ = 0; });
  add(window_ > 0, "window", [](SoftwareStack& s) { s.window_ = 0; });
  add(launch_.value > 0, "launch", [](SoftwareStack& s) { s.launch_ = {}; });
  add(collective_overhead_.value > 0, "collective_overhead", [](SoftwareStack& s) { s.collective_overhead_ = {}; });
  add(interference_ > 0, "interference", [](SoftwareStack& s) { s.interference_ = 0; });
  add(spread_ > 0, "spread", [](SoftwareStack& s) { s.spread_ = 0; });
  add(worker_input_ > 0 || node_input_ > 0, "input", [](SoftwareStack& s) { s.worker_input_ = s.node_input_ = 0; });
  return out;
}

SoftwareStack load_stack(const ConfigNode& value, const std::filesystem::path& data_dir) {
  const auto file = [&](const ConfigNode& name) {
    if (name.as_string() == kIdealStack) return ConfigNode::load_text("stack: ideal", "ideal");
    return ConfigNode::load_file(find_data_file(name, {"stack", data_dir / "costmodels" / "stacks", ".yaml"}));
  };
  const auto check = [](const ConfigNode& root) {
    if (!root.is_map() || !root.has("stack"))
      throw root.error("no software stack; it begins with `stack: NAME`, see docs/stacks.md");
    return root;
  };
  if (!value.is_map()) return SoftwareStack(check(file(value)));
  ConfigNode root = check(file(value.at("name")));
  for (const std::string& key : value.keys()) {
    if (key == "name") continue;
    root = root.with(key, value.at(key));
    // What the study knows better is not as unsure as the file says.
    if (!value.has("ranges") && root.has("ranges") && root.at("ranges").has(key))
      root = root.with("ranges", root.at("ranges").without(key));
  }
  std::string name = root.at("stack").as_string();
  for (const std::string& key : value.keys()) {  // changes must show in results
    const ConfigNode changed = value.at(key);
    if (key != "name") name += " " + key + "=" + (changed.is_scalar() ? changed.as_string() : changed.flow_text());
  }
  std::string quoted;  // as YAML writes a text that holds anything
  for (const char c : printable(name)) quoted += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
  SoftwareStack stack(root.with("stack", ConfigNode::load_text('"' + quoted + '"', root.where().file)));
  value.mark_all_read();
  return stack;
}

}  // namespace epocast
