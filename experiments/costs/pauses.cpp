#include "experiments/costs/pauses.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "costmodels/host_offload.hpp"
#include "sim/quantity_unit.hpp"

namespace epocast {
namespace {

constexpr Range kRate{1, 1e18};
constexpr double kMost = 1e15;

PauseInterval read_interval(const ConfigNode& node) {
  const std::string text = node.as_string();
  using enum PauseInterval::Of;
  const auto ends = [&](const char* unit) { return text.ends_with(unit) || text.ends_with(std::string(unit) + "s"); };
  PauseInterval out{seconds, 0};
  if (!ends("step") && !ends("epoch")) {
    out.count = node.as_seconds(Range{1e-3, kMost}).value;
    return out;
  }
  out.of = ends("step") ? steps : epochs;
  const char* singular = out.of == steps ? "step" : "epoch";
  try {
    out.count = parse_quantity(text, "a number of steps or epochs", {{singular, 1}, {std::string(singular) + "s", 1}});
  } catch (const std::invalid_argument& problem) {
    throw node.error(problem.what());
  }
  if (!(out.count > 0) || out.count > kMost) throw node.error("must be more than nothing, as in `500 steps`");
  return out;
}

EvaluationPause read_evaluation(const ConfigNode& node) {
  return {.every = node.has("every") ? read_interval(node.at("every")) : PauseInterval{},
          .samples = node.at("samples").as_int(Range{1, 1e12}),
          .place = node};
}

CheckpointPause read_checkpoint(const ConfigNode& node) {
  CheckpointPause out{.every = node.has("every") ? read_interval(node.at("every")) : PauseInterval{},
                      .rate = node.at("rate").as_bytes_per_second(kRate).value};
  if (node.has("node_rate")) out.node_rate = node.at("node_rate").as_bytes_per_second(kRate).value;
  out.background = node.get("background", false);
  out.copy_rate = HostOffload().link.value;
  if (node.has("copy_rate")) {
    out.copy_rate = node.at("copy_rate").as_bytes_per_second(kRate).value;
    if (!out.background)
      throw node.at("copy_rate")
          .error("nothing is copied to the hosts first without background: true; add it, or leave this out");
  }
  return out;
}

}  // namespace

double PauseInterval::times_in(double seconds, double steps, double epochs) const {
  constexpr double kRounding = 1e-9;
  return std::floor(intervals_in(seconds, steps, epochs) * (1 + kRounding));
}

double PauseInterval::intervals_in(double seconds, double steps, double epochs) const {
  return (of == Of::seconds ? seconds : of == Of::steps ? steps : epochs) / count;
}

double CheckpointPause::seconds(double bytes, double nodes, double devices, double between) const {
  const double write = std::max(bytes / rate, node_rate ? bytes / (nodes * *node_rate) : 0);
  if (!background) return write;
  return bytes / (devices * copy_rate) + std::max(0.0, write - between);
}

Pauses read_pauses(const ConfigNode& node) {
  if (!node.is_map() || (!node.has("evaluation") && !node.has("checkpoint")))
    throw node.error(
        "write `pauses: {evaluation: {every: 1 epoch, samples: 50000}}`, or `{checkpoint: {every: 1 h, rate: 10 "
        "GB/s}}`, or both");
  Pauses out;
  if (node.has("evaluation")) out.evaluation = read_evaluation(node.at("evaluation"));
  if (node.has("checkpoint")) out.checkpoint = read_checkpoint(node.at("checkpoint"));
  return out;
}

}  // namespace epocast
