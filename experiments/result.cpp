#include "experiments/result.hpp"

#include <nlohmann/json.hpp>

namespace epocast {
namespace {

using nlohmann::ordered_json;

template <class T>
ordered_json value_or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

template <class T>
void read(const ordered_json& from, const char* key, std::optional<T>& out) {
  out = from.at(key).is_null() ? std::nullopt : std::optional(from.at(key).get<T>());
}

/// Calls visit(name, member) for every column after the axes, in the documented order.
template <class Result, class Visit>
void for_each_column(Result& r, Visit visit) {
  visit("workers", r.workers);
  visit("global_batch", r.global_batch);
  visit("iteration_s", r.iteration_s);
  visit("epoch_s", r.epoch_s);
  visit("total_s", r.total_s);
  visit("samples_per_s", r.samples_per_s);
  visit("speedup", r.speedup);
  visit("efficiency", r.efficiency);
  visit("compute_s", r.compute_s);
  visit("comm_s", r.comm_s);
  visit("exposed_comm_s", r.exposed_comm_s);
  visit("overlap_ratio", r.overlap_ratio);
  visit("comm_bytes_per_iteration", r.comm_bytes_per_iteration);
  visit("comm_bytes_per_epoch", r.comm_bytes_per_epoch);
  visit("max_link_utilization", r.max_link_utilization);
  visit("bubble_fraction", r.bubble_fraction);
  visit("peak_memory_bytes", r.peak_memory_bytes);
  visit("fits_memory", r.fits_memory);
  visit("mean_staleness", r.mean_staleness);
  visit("max_staleness", r.max_staleness);
  visit("bound_s", r.bound_s);
  visit("limited_by", r.limited_by);
  visit("iterations_simulated", r.iterations_simulated);
  visit("exact", r.exact);
  visit("stack", r.stack);
  visit("algorithm", r.algorithm);
  visit("tokens_per_s", r.tokens_per_s);
  visit("mfu", r.mfu);
  visit("hfu", r.hfu);
  visit("cost", r.cost);
  visit("energy_j", r.energy_j);
  visit("co2_kg", r.co2_kg);
  visit("goodput", r.goodput);
  visit("warnings", r.warnings);
  visit("loss", r.loss);
  visit("accuracy", r.accuracy);
  visit("time_to_target_s", r.time_to_target_s);
  visit("epochs_to_target", r.epochs_to_target);
  visit("iteration_low_s", r.iteration_low_s);
  visit("iteration_high_s", r.iteration_high_s);
}

struct Write {
  ordered_json& json;
  template <class T>
  void operator()(const char* key, const T& value) const {
    json[key] = value;
  }
  template <class T>
  void operator()(const char* key, const std::optional<T>& value) const {
    json[key] = value_or_null(value);
  }
};

struct Read {
  const ordered_json& json;
  template <class T>
  void operator()(const char* key, T& value) const {
    json.at(key).get_to(value);
  }
  template <class T>
  void operator()(const char* key, std::optional<T>& value) const {
    read(json, key, value);
  }
};

/// An axis' label as the number or truth value that it is, or as text.
ordered_json axis_value(const std::string& label) {
  const ordered_json value = ordered_json::parse(label, nullptr, false);
  return value.is_number() || value.is_boolean() ? value : ordered_json(label);
}

}  // namespace

ordered_json to_json(const ScenarioResult& result) {
  ordered_json json;
  json["study"] = result.study;
  json["scenario"] = result.scenario;
  for (const auto& [axis, label] : result.axes) json[axis] = axis_value(label);
  if (!result.error.empty()) {
    // A scenario without a result still has its row: its axes, and null in every other column.
    ScenarioResult none;
    ordered_json columns;
    for_each_column(none, Write{columns});
    for (const auto& [key, value] : columns.items())
      if (!json.contains(key)) json[key] = nullptr;
    return json;
  }
  for_each_column(result, Write{json});
  // An axis that is also a column keeps the column's number, at the axis' place.
  return json;
}

ordered_json columns_of(const ScenarioResult& result) {
  ordered_json columns;
  for_each_column(result, Write{columns});
  return columns;
}

void set_columns(ScenarioResult& result, const ordered_json& columns) { for_each_column(result, Read{columns}); }

std::string serialize(const ScenarioResult& result) {
  ordered_json columns;
  for_each_column(result, Write{columns});
  ordered_json json;
  json["study"] = result.study;
  json["scenario"] = result.scenario;
  json["axes"] = result.axes;
  json["columns"] = columns;
  json["currency"] = result.currency;
  json["error"] = result.error;
  json["exit_code"] = result.exit_code;
  json["iteration_ci95"] = result.iteration_ci95;
  json["explanation"] = result.explanation;
  json["details"] = result.details;
  json["curves"] = result.curves;
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

ScenarioResult deserialize(const std::string& text) {
  const ordered_json json = ordered_json::parse(text);
  ScenarioResult result;
  json.at("study").get_to(result.study);
  json.at("scenario").get_to(result.scenario);
  json.at("axes").get_to(result.axes);
  for_each_column(result, Read{json.at("columns")});
  json.at("currency").get_to(result.currency);
  json.at("error").get_to(result.error);
  json.at("exit_code").get_to(result.exit_code);
  json.at("iteration_ci95").get_to(result.iteration_ci95);
  json.at("explanation").get_to(result.explanation);
  json.at("details").get_to(result.details);
  json.at("curves").get_to(result.curves);
  return result;
}

}  // namespace epocast
