#pragma once

#include <filesystem>

namespace epocast {

/// The directory that holds the files that ship with epocast, in platforms/, workloads/models/, costmodels/timings/ and
/// so on: the environment variable EPOCAST_DATA if set, else share/epocast beside the program's own bin/, else the
/// source tree that this was built from, else where it was configured to be installed. Throws ConfigError if none of
/// them is there.
std::filesystem::path data_directory();

}  // namespace epocast
