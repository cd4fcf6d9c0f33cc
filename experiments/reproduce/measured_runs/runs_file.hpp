#pragma once
// A user's own measured runs, to be compared with forecasts: a `target.yaml` and a table.
//
//     target: ours/cluster_a                # two names: what reproduce prints
//     description: ResNet-50 on up to 64 GPUs
//     study: cluster_a.yaml                 # what all runs have in common
//     runs: cluster_a.csv
//     groups: [device, network]             # columns by which errors are summarised
//     seen: true                            # whether errors were known when settings were chosen
//     intervals: true                       # of each forecast, from the ranges of its stack's constants
//     winners: {equal: [network, workers], gap: 3}  # of runs equal in these columns, the faster one (gaps above 3 %)
//     bounds: {median: 3, ninetieth: 9, mape: 5, share_of_trivial: 60}      # percent; each optional
//     known_misses: [{what: median, at_most: 4, why: ..}]
//
// The table, with `# source: ..` above it:
//
//     series,role,device,workers,batch.per_worker,samples_per_s,note
//     r50,baseline,V100,1,64,360,
//     r50,run,V100,8,64,2700,
//     r50,left_out,V100,16,64,5000,other input pipeline
//
// One column has the measurement: samples_per_s, iteration_s or iteration_ms. `series`, `role`, `note`, `source` and
// the groups' columns describe; all others are study keys, as in --set; an empty cell leaves the study's value. The
// runs of a series are forecast with computation anchored so that its baseline takes the time measured. Without a
// baseline they are forecast from the study alone. Runs with the role `fitted` are those that constants of the study
// were fitted to: their errors are shown and not counted.

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/reproduce/target.hpp"
#include "experiments/study.hpp"
#include "sim/error.hpp"

namespace epocast {

enum class RunRole { baseline, run, fitted, left_out };

struct MeasuredRun {
  std::string series;
  RunRole role = RunRole::run;
  std::string settings;  ///< "workers=8, batch.per_worker=64": what the runs of its series differ in
  std::vector<std::pair<std::string, std::string>> groups;  ///< column and value
  std::string rivals;  ///< cells of the columns in which its rivals are equal; empty without `winners`
  std::string note;
  double measured = 0;
  Scenario scenario;
  Location where;
};

struct RunsFile {
  std::string paper, table, description;
  std::string quantity, unit;  ///< of all measurements: "samples_per_s" or "iteration_s"
  std::vector<MeasuredRun> runs;
  bool seen = true, intervals = false;
  std::optional<double> mape_bound;
  TargetBounds bounds;
  std::optional<WinnerRule> winners;
  std::vector<KnownMiss> known_misses;
};

/// `changes`: to the study of all runs. Throws ConfigError with file and line for whatever is not as described, for a
/// series with two baselines or with a baseline alone, and for runs that are there twice.
RunsFile read_runs_file(const std::filesystem::path& file, const std::vector<Override>& changes);

}  // namespace epocast
