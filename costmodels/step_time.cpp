#include "costmodels/step_time.hpp"

#include <fmt/format.h>

#include <utility>

namespace epocast {

StepTimeAnchored::StepTimeAnchored(std::unique_ptr<CostModel> inner, const Model& model, const Device& device,
                                   TimeByBatch steps)
    : inner_(std::move(inner)), model_(model), device_(device), steps_(std::move(steps)) {
  factor(static_cast<std::int64_t>(steps_.begin()->first));  // fails early
}

/// By the inner model.
StepTimeAnchored::Sums StepTimeAnchored::sums(std::int64_t batch) const {
  Sums out;
  for (const LayerTrace& layer : make_trace(model_, *inner_, batch, device_).layers) {
    out.update += layer.times.update.longest();
    out.passes += layer.times.total().longest() - layer.times.update.longest();
  }
  return out;
}

/// On the passes of a batch, so that with the updates they take `step` seconds.
double StepTimeAnchored::factor(std::int64_t batch, double step) const {
  const auto [update, passes] = sums(batch);
  if (!(passes.value > 0))
    throw ConfigError("step_time cannot be split among the layers of '" + model_.name +
                      "': the cost model gives their passes no time at all");
  if (!(step > update.value))
    throw ConfigError(fmt::format(
        "step_time of {} for batch {} leaves no time for passes: updating the parameters of '{}' alone takes {}; check "
        "its unit, or use another cost model or optimizer",
        to_string(Seconds(step)), batch, model_.name, to_string(update)));
  return (step - update.value) / passes.value;
}

double StepTimeAnchored::factor(std::int64_t batch) const {
  const std::lock_guard lock(mutex_);
  if (const auto found = factors_.find(batch); found != factors_.end()) return found->second;
  const auto& [anchor, step] = *steps_.begin();
  if (steps_.size() > 1) return factors_[batch] = factor(batch, time_at(steps_, static_cast<double>(batch)));
  const auto measured = static_cast<std::int64_t>(anchor);
  double scale = factor(measured, step);
  if (model_.opaque) scale *= sums(measured).passes / sums(batch).passes * (static_cast<double>(batch) / anchor);
  return factors_[batch] = scale;
}

PassTimes StepTimeAnchored::times(const Layer& layer, std::int64_t batch, const Device& device) const {
  PassTimes times = inner_->times(layer, batch, device);
  const double scale = factor(batch);
  for (Seconds* t : {&times.forward, &times.backward_data, &times.backward_weights}) *t *= scale;
  return times;
}

std::vector<std::string> StepTimeAnchored::caveats(std::int64_t batch) const {
  std::vector<std::string> out = inner_->caveats(batch);
  const auto samples = static_cast<double>(batch);
  const double low = steps_.begin()->first;
  const double high = steps_.rbegin()->first;
  if (samples >= low && samples <= high) return out;
  const auto text = [](double x) { return std::to_string(static_cast<std::int64_t>(x)); };
  out.push_back("batch " + std::to_string(batch) + " is extrapolated: step_time is given for batch " + text(low) +
                (low < high ? " to " + text(high) : ""));
  return out;
}

std::vector<std::string> StepTimeAnchored::device_caveats(const Device& device) const {
  std::vector<std::string> out = inner_->device_caveats(device);
  if (!same_kind(device, device_))
    out.push_back("step_time is taken for one of " + device_.model + "; times on " + device.model +
                  " follow from it by the cost model's ratio, not from a measurement");
  return out;
}

TimeByBatch read_step_times(const ConfigNode& node) {
  constexpr Range kBatch{1, 1e9};
  constexpr Range kTime{1e-9, 1e6};  // a whole step; outside, a unit was mistaken
  TimeByBatch steps;
  const auto add = [&](const ConfigNode& point) {
    const auto batch = point.at("batch").as_int(kBatch);
    if (!steps.emplace(static_cast<double>(batch), point.at("time").as_seconds(kTime).value).second)
      throw point.error("there is already a step time for batch " + std::to_string(batch) + "; remove one");
  };
  if (!node.is_list()) {
    add(node);
    return steps;
  }
  for (const ConfigNode& point : node.items()) add(point);
  if (steps.empty()) throw node.error("must be {batch: 32, time: 1.9 s} or a list of such");
  return steps;
}

}  // namespace epocast
