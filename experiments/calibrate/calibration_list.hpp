#pragma once
// What calibrations there are, and how sure each is.

#include <filesystem>
#include <iosfwd>

namespace epocast {

/// A line for each operator of each calibration in a folder: device, precision, median and 90th percentile of the
/// errors of measurements that were left out. Throws ConfigError for a file that cannot be read.
void print_calibrations(std::ostream& out, const std::filesystem::path& folder);

}  // namespace epocast
