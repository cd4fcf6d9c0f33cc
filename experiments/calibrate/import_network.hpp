#pragma once
// Reads measured collectives that others made into what network calibration fits.

#include <filesystem>

#include "costmodels/network_calibration.hpp"
#include "experiments/calibrate/import.hpp"

namespace epocast {

/// Reads a table of any known format, told apart by its columns: epocast's collective measurements, DeepBench
/// all-reduce results (size_bytes, procs, time_ms), nccl-tests tables in the manner of vTrain's (n_gpus, size_bytes,
/// out_of_place_us). Throws ConfigError with file and line.
NetworkMeasurements import_collectives(const std::filesystem::path& file, const ImportOptions& options);

}  // namespace epocast
