#include "costmodels/measured_table.hpp"

#include <algorithm>
#include <utility>

#include "costmodels/roofline.hpp"
#include "sim/config.hpp"

namespace epocast {

namespace {

constexpr double kUpdateMemoryEfficiency = 0.8;  // as the roofline's default

/// Every layer of the network needs a row but these: no kernel runs for them.
bool never_measured(const Layer& layer) { return layer.kind == LayerKind::input || layer.kind == LayerKind::flatten; }

/// Which of a layer's measured backward times this network has. All was trained when they were measured, but may not be
/// now: layers are frozen, or it is an evaluation.
bool makes_input_gradient(const Layer& layer) {
  // An embedding's or a sum's is that of its output, which may have been added up where branches part.
  const bool hands_back = layer.kind == LayerKind::add || layer.kind == LayerKind::embedding;
  return passes_gradients_on(layer) || (hands_back && layer.needs_gradient);
}
bool makes_weight_gradient(const Layer& layer) {
  return layer.backward_weights_flop > 0 || (layer.parameters.empty() && layer.needs_gradient);
}

}  // namespace

MeasuredTable::MeasuredTable(TimingsFile file, Optimizer optimizer, std::string device_model, UpdateKernels updates)
    : file_(std::move(file)), update_accesses_(updates.accesses(optimizer)), device_model_(std::move(device_model)) {
  for (const TimingRow& row : file_.rows) {
    auto [found, is_new] = layers_.try_emplace(row.layer);
    LayerTimes& layer = found->second;
    if (is_new) layer.first = row;
    if (row.kind != layer.first.kind)
      throw ConfigError(file_.where(row), "kind",
                        "differs from that of the same layer in line " + std::to_string(layer.first.line));
    const auto batch = static_cast<double>(row.batch);
    layer.forward[batch] = row.forward.value;
    layer.backward_data[batch] = row.backward_data.value;
    layer.backward_weights[batch] = row.backward_weights.value;
    layer.update[row.batch] = row.update;
  }
}

bool MeasuredTable::may_be_absent(const Layer& layer) const {
  return never_measured(layer) || (file_.other_layers_zero && layer.parameters.empty());
}

void MeasuredTable::fail_absent(const Layer& layer) const {
  throw ConfigError(file_.where(file_.rows.back()), "layer",  // where the row could follow
                    "has no row for layer '" + layer.name + "' (" + to_string(layer.kind) + "); measure it" +
                        (layer.parameters.empty()
                             ? std::string(", or write '# other_layers: zero' if its time is contained in other rows")
                             : std::string(", or check that the timings are of this model")));
}

void MeasuredTable::check_covers(const Model& model) const {
  std::vector<std::string> names;
  for (const Layer& layer : model.layers) {
    names.push_back(layer.name);
    const auto found = layers_.find(layer.name);
    if (found == layers_.end()) {
      if (!may_be_absent(layer)) fail_absent(layer);
      continue;
    }
    const TimingRow& row = found->second.first;
    if (row.kind != layer.kind)
      throw ConfigError(file_.where(row), "kind",
                        "layer '" + layer.name + "' is a " + to_string(layer.kind) + " in model '" + model.name +
                            "', not a " + to_string(row.kind));
    if (multiplies_weights(layer.kind) && layer.backward_data_flop > 0)
      for (const auto& [batch, time] : found->second.backward_data)
        if (time == 0)
          throw ConfigError(file_.where(row), "backward_data_s",
                            "is 0 for layer '" + layer.name + "' at batch " +
                                std::to_string(static_cast<std::int64_t>(batch)) +
                                ", whose input needs a gradient; give the measured time");
  }
  for (const auto& [name, layer] : layers_)
    if (std::ranges::find(names, name) == names.end())
      throw ConfigError(file_.where(layer.first), "layer",
                        "model '" + model.name + "' has no layer '" + name + "'" + name_hint(name, names));
}

PassTimes MeasuredTable::times(const Layer& layer, std::int64_t batch, const Device& device) const {
  const auto found = layers_.find(layer.name);
  if (found == layers_.end()) {
    if (!may_be_absent(layer)) fail_absent(layer);
    return {};
  }
  const LayerTimes& measured = found->second;
  const auto samples = static_cast<double>(batch);
  PassTimes times;
  times.forward = Seconds(time_at(measured.forward, samples));
  if (makes_input_gradient(layer)) times.backward_data = Seconds(time_at(measured.backward_data, samples));
  if (makes_weight_gradient(layer)) times.backward_weights = Seconds(time_at(measured.backward_weights, samples));
  // An update does not depend on the batch: take the one measured at the next smaller batch size.
  auto update = measured.update.upper_bound(batch);
  if (update != measured.update.begin()) --update;
  times.update =
      update->second ? *update->second : update_time(layer, device, update_accesses_, kUpdateMemoryEfficiency);
  return times;
}

std::vector<std::string> MeasuredTable::caveats(std::int64_t batch) const {
  // The narrowest range over layers decides.
  std::int64_t low = 0;
  std::int64_t high = INT64_MAX;
  for (const auto& [name, layer] : layers_) {
    low = std::max(low, layer.update.begin()->first);
    high = std::min(high, layer.update.rbegin()->first);
  }
  const std::string name = std::filesystem::path(file_.file).stem().string();
  std::vector<std::string> out;
  // Timings files may go on after the device's name, as in "V100 (DGX-1)".
  if (const std::string& measured = file_.header.at("device"); !measured.starts_with(device_model_))
    out.push_back("timings '" + name + "' are of " + measured + "; the platform's device is " + device_model_);
  if (batch < low || batch > high) {
    const std::string range = low >= high ? std::to_string(low) : std::to_string(low) + " to " + std::to_string(high);
    out.push_back("batch " + std::to_string(batch) + " is extrapolated: timings '" + name + "' are for batch " + range);
  }
  return out;
}

}  // namespace epocast
