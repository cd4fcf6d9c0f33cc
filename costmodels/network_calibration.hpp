#pragma once
// Measured collectives in epocast's own format, and the file that `epocast calibrate network` writes.
//
// Measurements (CSV):
//     # device: Intel Xeon Phi 7250          (required)
//     # interconnect: Omni-Path 100          (required)
//     # source: ...                          (required; also date, licence, and any number of note)
//     operation,library,ranks,bytes,time_s
//     all_reduce,Intel MLSL,2,400000,9e-05
// A column `nodes` says over how many nodes the ranks are spread, evenly; 1 without it. Operations are those of
// sim/collective.hpp, and `send`: one message, of two ranks.
//
// Calibration (YAML): see network_fit.hpp for the formula.
//     calibration: network
//     device: ..., interconnect: ..., source: ..., date: ..., confidence: ...
//     fits:
//       - operation: all_reduce
//         library: Intel MLSL
//         quality: {points: 35, fitted: 12, held_out: 60, alpha_beta_error: 0.21, error: 0.08, error_90: 0.24}
//         alpha: [2.4e-06, 1e-06, 5e-06]     # s per step: value, ends of the 95 % interval
//         gamma: 0                           # s/B reduced, given; 0: contained in beta
//         knots: [400000, 3.5e+06]           # bytes
//         betas: [[2.5e-10, 2e-10, 3e-10], [1.5e-10, 1.2e-10, 1.9e-10]]    # s/B at the knots
//         speed: {2: [1, 1, 1], 4: [1.1, 1, 1.2]}                          # by ranks
//         interpolation: {amplitude: 0.2, noise: 0.03, lengths: [1, 3]}
//         points: [[2, 400000, 9e-05]]       # ranks, bytes, time in s
// Of groups of several nodes (protocol_fit.hpp), instead of alpha to points:
//         protocols: [[1e-05, 1e-05, 1e-09, 4e-09], ...]        # base, level and step in s, beta in s/B; three of them
//         quality: {points: 203, held_out: 110, error: 0.1, error_90: 0.3, error_small: 0.2}
//         points: [[8, 2, 400000, 9e-05]]                       # ranks, nodes, bytes, time in s

#include <string>
#include <vector>

#include "costmodels/csv_table.hpp"
#include "costmodels/network_fit.hpp"

namespace epocast {

struct NetworkMeasurements {
  std::string device, interconnect, source, date;
  std::vector<CollectiveTiming> timings;
  std::vector<std::string> left_out;  ///< what was in the file but not used, and why
};

bool is_network_measurements(const CsvTable& table);
/// Throws ConfigError with file and line for anything that is not as described above, and for duplicate rows.
NetworkMeasurements read_network_measurements(const CsvTable& table);

struct NetworkCalibration {
  std::string device, interconnect, source, date, confidence;
  std::vector<NetworkFit> fits;

  /// The fit of an operation, of any library if `library` is empty, or null.
  const NetworkFit* find(CollectiveOp op, const std::string& library = "") const;
};

/// Throws ConfigError with file and line for anything that is not as described above.
NetworkCalibration read_network_calibration(const ConfigNode& root);
std::string to_yaml(const NetworkCalibration& calibration);

/// `text` in double quotes, as YAML wants it.
std::string yaml_quoted(const std::string& text);

}  // namespace epocast
