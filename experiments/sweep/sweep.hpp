#pragma once
// Simulates the scenarios of a study that a store does not have yet, and stores each as soon as it is there.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "experiments/batch/scenario_batch.hpp"
#include "experiments/store/result_store.hpp"

namespace epocast {

/// A part of a study's scenarios: the `part`-th of every `of`, from 1.
struct Shard {
  std::int64_t part = 1;
  std::int64_t of = 1;

  bool has(std::size_t index) const { return static_cast<std::int64_t>(index) % of == part - 1; }
};
/// "3/64". Throws ConfigError.
Shard parse_shard(const std::string& text);

struct SweepOptions {
  RunOptions run = {};
  int parallel = 1;
  ScenarioLimits limits = {};
  Shard shard = {};
  bool retry = false;  ///< simulate again what died
  std::string version = {};
  std::filesystem::path folder = {};  ///< of the study
};

/// The store of a study that names none: its file's name with ".sqlite", in the current folder.
inline std::filesystem::path default_store(const std::filesystem::path& study) {
  return study.filename().replace_extension(".sqlite");
}

/// What a sweep has to do, and has done.
struct SweepState {
  std::size_t of = 0;                              ///< scenarios of the shard
  std::size_t present = 0;                         ///< that were stored before
  std::size_t computed = 0;                        ///< that came now
  std::size_t failed = 0;                          ///< rows without a result, old ones too
  int exit_code = 0;                               ///< the largest of all rows
  double seconds = 0;                              ///< that this took so far
  std::map<std::string, std::size_t> errors = {};  ///< how many rows have which
};
using SweepProgress = std::function<void(const SweepState&)>;

/// Which scenarios a store lacks.
struct SweepNeeds {
  std::vector<std::string> configs;             ///< by scenario; "" for those of other shards
  std::vector<std::string> groups;              ///< likewise
  std::vector<std::size_t> missing;             ///< to be simulated
  std::map<std::int64_t, std::string> present;  ///< keys of rows that are there, by scenario
  std::map<std::int64_t, std::string> again;    ///< keys of rows that are there, but have failed: missing
  std::string plan;
};
/// `store`: null if there is none. Throws ConfigError.
SweepNeeds sweep_needs(const std::vector<Scenario>& scenarios, ResultStore* store, const SweepOptions& options);

/// The number of the run that these scenarios' rows are members of: the last one of the study if it has the same
/// scenarios and no other rows. What is there becomes part of it.
std::int64_t open_run(const std::vector<Scenario>& scenarios, ResultStore& store, const SweepNeeds& needs,
                      const SweepOptions& options);

/// Who is told of rows.
struct SweptRows {
  std::function<void(std::size_t, const StoredRow&)> added;  ///< a scenario's row is stored
  std::function<void()> progress = {};                       ///< several times a second
};

/// Simulates scenarios and stores each row as soon as it is there, as a member of a run or (0) of none. Throws as
/// run_sweep() does.
void simulate_stored(const std::vector<Scenario>& scenarios, const std::vector<std::size_t>& indices,
                     const SweepNeeds& needs, ResultStore& store, std::int64_t run, const Registries& registries,
                     const SweepOptions& options, const SweptRows& rows);

/// Throws ConfigError if the store cannot be written, Interrupted as run_forked() does: what has come is stored then.
SweepState run_sweep(const std::vector<Scenario>& scenarios, ResultStore& store, const Registries& registries,
                     const SweepOptions& options, const SweepProgress& progress);

/// What came of a scenario that was tried, to know how long a sweep will take.
struct SampledScenario {
  double seconds = 0;  ///< of a scenario among many
  int exit_code = 0;
  std::string error = {};
};
/// What comes of some scenarios, spread evenly over `indices`; nothing is stored.
std::vector<SampledScenario> sample(const std::vector<Scenario>& scenarios, const std::vector<std::size_t>& indices,
                                    const Registries& registries, const SweepOptions& options);

}  // namespace epocast
