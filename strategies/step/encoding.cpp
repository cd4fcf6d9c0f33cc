#include "strategies/step/encoding.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "strategies/step/options.hpp"

namespace epocast {
namespace {

constexpr double kIndex = 4, kScale = 4, kHalf = 2;  // bytes

Seconds memory_time(double bytes, const Device& device) {
  if (!(device.memory_bandwidth.value > 0))
    throw ConfigError("device '" + device.name +
                      "' has no memory bandwidth, which the time of compression needs; add it to the platform file");
  return Bytes(bytes) / device.memory_bandwidth;
}

}  // namespace

Encoding::Encoding(const ConfigNode& options)
    : options_(options),
      method_(choose(options, "compression",
                     {{"none", Method::none},
                      {"fp16", Method::fp16},
                      {"int8", Method::int8},
                      {"one_bit", Method::one_bit},
                      {"top_k", Method::top_k}},
                     Method::none)),
      share_(options.get("top_k", 0.01, Range{1e-9, 1})) {
  if (options.has("top_k") && method_ != Method::top_k)
    throw options.at("top_k").error("a share of values has no effect with this compression; use compression: top_k");
}

std::vector<ParameterInfo> Encoding::parameters() {
  return {
      {"compression", "", "none | fp16 | int8 | one_bit | top_k", "none", "what gradients are turned into to travel"},
      {"top_k", "", "1e-9 .. 1", "0.01", "share of the values that compression: top_k sends"}};
}

EntryInfo Encoding::added_to(EntryInfo info) {
  for (ParameterInfo& parameter : parameters()) info.parameters.push_back(std::move(parameter));
  return info;
}

Encoding Encoding::of(Precision precision) const { return of_values(bytes_per_value(precision), precision); }

Encoding Encoding::of_gradients(const WorkloadTrace& trace) const {
  return of_values(trace.gradient_value_bytes(), trace.precision);
}

Encoding Encoding::of_values(double bytes, Precision precision) const {
  Encoding out = *this;
  out.value_bytes_ = bytes;
  if (method_ == Method::fp16 && out.value_bytes_ <= kHalf)
    throw options_->at("compression")
        .error(std::string("gradients of precision ") + to_string(precision) +
               " have 2 bytes already; leave the compression out, or choose a stronger one");
  return out;
}

Bytes Encoding::compressed(Bytes gradients) const {
  const double values = gradients.value / value_bytes_;
  switch (method_) {
    case Method::none: return gradients;
    case Method::fp16: return Bytes(values * kHalf);
    case Method::int8: return Bytes(values + kScale);
    case Method::one_bit: return Bytes(values / 8 + 2 * kScale);
    case Method::top_k: return Bytes(std::max(1.0, std::ceil(values * share_)) * (value_bytes_ + kIndex));
  }
  return gradients;
}

Collective Encoding::sum(Bytes gradients, const CollectiveSettings& settings, GroupId group, int workers) const {
  Collective out = settings.all_reduce(compressed(gradients), group);
  if (sums_on_the_way()) return out;
  out.op = CollectiveOp::all_gather;
  if (!supports(out.algorithm, out.op)) out.algorithm = default_algorithm(out.op);
  out.bytes = out.bytes * static_cast<double>(workers);  // of an all-gather: what every rank ends up with
  out.gamma = 0;
  return out;
}

Seconds Encoding::encode_time(Bytes gradients, const Device& device) const {
  if (!any()) return {};
  const double rest = keeps_rest() ? 2 * gradients.value : 0;
  return memory_time(gradients.value + rest + compressed(gradients).value, device);
}

Seconds Encoding::decode_time(Bytes gradients, const Device& device, int workers) const {
  if (!any()) return {};
  const double codes = sums_on_the_way() ? 1 : workers;
  return memory_time(codes * compressed(gradients).value + gradients.value, device);
}

Seconds Encoding::decode_share_time(Bytes gradients, const Device& device, int workers) const {
  return decode_time(gradients, device, workers) / static_cast<double>(workers);
}

}  // namespace epocast
