#include "sim/precision.hpp"

#include <stdexcept>

#include "sim/config.hpp"

namespace epocast {

const char* to_string(Precision precision) {
  switch (precision) {
    case Precision::fp32: return "fp32";
    case Precision::tf32: return "tf32";
    case Precision::fp16: return "fp16";
    case Precision::bf16: return "bf16";
    case Precision::fp8: return "fp8";
  }
  return "unknown";
}

std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const Precision precision : kPrecisions) names.push_back(to_string(precision));
  return names;
}

Precision parse_precision(const std::string& name) {
  for (const Precision precision : kPrecisions)
    if (name == to_string(precision)) return precision;
  if (name == "amp" || name.starts_with("mixed"))
    throw std::invalid_argument("unknown precision '" + name +
                                "'; fp16 and bf16 mean mixed precision, with weights kept in fp32, too");
  throw std::invalid_argument("unknown precision '" + name + "'" + name_hint(name, precision_names()));
}

double bytes_per_value(Precision precision) {
  return precision == Precision::fp32 || precision == Precision::tf32 ? 4 : 2;
}

double master_bytes_per_value(Precision precision) { return bytes_per_value(precision) == 4 ? 0 : 4; }

}  // namespace epocast
