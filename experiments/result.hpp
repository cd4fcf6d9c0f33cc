#pragma once
// What a scenario yields: the columns of `run`, and text for people.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace epocast {

/// Times in s, sizes in bytes. See docs/output.md for what each column means.
struct ScenarioResult {
  std::string study;
  std::string scenario;
  std::vector<std::pair<std::string, std::string>> axes;

  std::int64_t workers = 0;
  std::int64_t global_batch = 0;
  double iteration_s = 0;
  double epoch_s = 0;
  double total_s = 0;
  double samples_per_s = 0;
  std::optional<double> speedup;
  std::optional<double> efficiency;
  double compute_s = 0;
  double comm_s = 0;
  double exposed_comm_s = 0;
  std::optional<double> overlap_ratio;
  double comm_bytes_per_iteration = 0;
  double comm_bytes_per_epoch = 0;
  double max_link_utilization = 0;
  std::optional<double> bubble_fraction;
  std::optional<double> peak_memory_bytes;
  std::optional<bool> fits_memory;
  std::optional<double> mean_staleness;
  std::optional<std::int64_t> max_staleness;
  std::optional<double> bound_s;
  std::string limited_by;
  std::int64_t iterations_simulated = 0;
  bool exact = false;
  std::string stack;                   ///< of software; "ideal" for none
  std::string algorithm;               ///< of its collectives; several are joined by "+"
  std::optional<double> tokens_per_s;  ///< of networks that read words
  std::optional<double> mfu, hfu;  ///< shares of the devices' peak: FLOP that the model needs, and that are computed
  std::optional<double> cost;      ///< of all of training, in `currency`
  std::optional<double> energy_j;
  std::optional<double> co2_kg;
  std::optional<double> goodput;  ///< share of total_s that would do if nothing failed
  std::vector<std::string> warnings;
  std::optional<double> iteration_low_s, iteration_high_s;  ///< a 90 % interval, if one was asked for
  // With a learning block; means over its seeds. See docs/learning.md.
  std::optional<double> loss;              ///< at the end of training
  std::optional<double> accuracy;          ///< then: share of right answers, or PSNR [dB]
  std::optional<double> time_to_target_s;  ///< absent if any seed misses the target
  std::optional<double> epochs_to_target;

  // Not columns: for people.
  std::string currency;       ///< of cost
  std::string error;          ///< why there is no result; everything above but study and scenario is void then
  int exit_code = 0;          ///< what the program should exit with because of this scenario
  double iteration_ci95 = 0;  ///< half width, s; 0 if the result is no estimate
  std::string explanation;    ///< several lines, if asked for
  std::string details;        ///< a JSON object, if asked for
  std::string curves;         ///< of learning: a JSON array, an object for each seed
};

/// One object with the columns in order; missing is null.
nlohmann::ordered_json to_json(const ScenarioResult& result);

/// The columns after the axes alone, and the way back.
nlohmann::ordered_json columns_of(const ScenarioResult& result);
void set_columns(ScenarioResult& result, const nlohmann::ordered_json& columns);

/// For the way from a child process: everything, columns and the rest.
std::string serialize(const ScenarioResult& result);
ScenarioResult deserialize(const std::string& text);

}  // namespace epocast
