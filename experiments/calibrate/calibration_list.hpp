#pragma once
// What calibrations there are, and how sure each is.

#include <filesystem>
#include <iosfwd>
#include <string>

namespace epocast {

struct ComputeCalibration;
struct NetworkCalibration;

/// "gemm 3.7 % (90th percentile 12.1 %), attention forward 1.7 % (..)": errors of measurements that were left out, or
/// what takes their place. Several lines' worth; what is not known is named.
std::string how_sure(const ComputeCalibration& calibration);
std::string how_sure(const NetworkCalibration& calibration);

/// A line for each operator of each calibration in a folder: device, precision, median and 90th percentile of the
/// errors of measurements that were left out; of only the named one, if `name` is not empty. Throws ConfigError for a
/// file that cannot be read, and if there is none of that name.
void print_calibrations(std::ostream& out, const std::filesystem::path& folder, const std::string& name);

}  // namespace epocast
