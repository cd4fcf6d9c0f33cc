#pragma once
// Measured kernel times of one device, in epocast's own format:
//
//     # device: NVIDIA V100 (DGX-1)                 (required)
//     # source: ...                                 (required)
//     # precision: fp32                             (required: fp32, fp16, bf16 or fp8)
//     # peak_rate: 15.7 TFLOP/s                     (in this precision; also memory_bandwidth and units, the number of
//     cores or # memory_bandwidth: 900 GB/s                   multiprocessors; optional here if the command line gives
//     them) # units: 80 # library: ...                                (optional; also date, threads, licence, and any
//     number of note) operator,pass,shape,time_s convolution,forward,n=8 c=64 h=56 w=56 k=64 r=3 s=3 oh=56 ow=56
//     stride=1,0.000106 gemm,forward,m=1760 n=16 k=1760 ta=0 tb=0,3.8e-05
//
// The same shape may be measured several times if a column `repetition` numbers the measurements. Columns `repetitions`
// (runs that time_s is the median of) and `spread` (their interquartile range over the median) are for people.

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "costmodels/csv_table.hpp"
#include "costmodels/kernel_fit.hpp"

namespace epocast {

struct KernelMeasurements {
  std::string device, source, library, date;
  std::string threads, note;  ///< as written; may be empty
  Precision precision = Precision::fp32;
  std::optional<FlopPerSecond> peak_rate;
  std::optional<BytesPerSecond> memory_bandwidth;
  std::optional<double> units;
  std::vector<KernelTiming> timings;
  std::vector<std::string> left_out;  ///< what was in the file but not used, and why; for the user
};

/// Throws ConfigError with file and line for anything that is not as described above, and for duplicate rows.
KernelMeasurements read_kernel_measurements(const CsvTable& table);
bool is_kernel_measurements(const CsvTable& table);

/// Writes the format above. All timings must be of one device.
void write_kernel_measurements(std::ostream& out, const KernelMeasurements& measurements, const std::string& licence);

}  // namespace epocast
