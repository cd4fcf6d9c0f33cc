#pragma once
// Reads measurements that others made into what calibration fits: kernel times of one device.

#include <filesystem>
#include <string>
#include <vector>

#include "costmodels/kernel_measurements.hpp"

namespace epocast {

struct ImportOptions {
  std::string device;  ///< which, where a table has several; also names one that the file does not
  std::string precision =
      "fp32";  ///< one of precision_names(); rows of another are left out, and counted in KernelMeasurements::left_out
  std::int64_t batch = 0;       ///< of a PipeDream profile; 0: found from its fully connected layers
  std::filesystem::path model;  ///< model file for layer timings (costmodels/timings_file.hpp), which name layers only
};

/// Reads a file of any known format, told apart by its content: epocast's kernel measurements, epocast's layer timings
/// (with options.model), DeepBench tables (convolutions, products, recurrent layers), PipeDream profiles (graph.txt or
/// CSV), PyTorch profiler Chrome traces (.json). Throws ConfigError with file and line.
KernelMeasurements import_kernels(const std::filesystem::path& file, const ImportOptions& options);

// One format each.
KernelMeasurements import_deepbench(const CsvTable& table, const ImportOptions& options);
bool is_deepbench(const CsvTable& table);
KernelMeasurements import_pipedream_table(const CsvTable& table, const ImportOptions& options);
bool is_pipedream(const CsvTable& table);
KernelMeasurements import_pipedream_graph(const std::filesystem::path& file, const ImportOptions& options);
KernelMeasurements import_layer_timings(const std::filesystem::path& file, const ImportOptions& options);
KernelMeasurements import_profiler_trace(const std::filesystem::path& file, const ImportOptions& options);

/// Chooses the rows of one device out of a table that has a column `device` (and, if there are such, `precision` and
/// `latest`); says in `left_out` how many others there were. Throws ConfigError if it is not clear which device is
/// meant.
std::vector<const CsvRow*> choose_device(const CsvTable& table, const ImportOptions& options, std::string& device,
                                         std::vector<std::string>& left_out);

}  // namespace epocast
