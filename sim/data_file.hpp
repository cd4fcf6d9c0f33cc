#pragma once
// Finds the data file that a study names: a short name for one that ships with epocast, or a path to the user's own.

#include <filesystem>
#include <string>
#include <vector>

#include "sim/config.hpp"

namespace epocast {

/// Where the shipped files of one kind are.
struct DataFileKind {
  std::string kind;  ///< for messages: "model", "platform", "timings"
  std::filesystem::path folder;
  std::string extension;                 ///< ".yaml"
  std::vector<std::string> others = {};  ///< other names that would have been good, for messages
};

/// The file that `value` names. A name is looked up in the kind's folder; anything with a `/` or ending in the
/// extension is a path, relative to the file that `value` stands in, else to the current directory. Throws ConfigError
/// at `value`, with the nearest name as a hint, if there is no such file; a file of the user's own
/// whose extension was left out is named, not taken.
std::filesystem::path find_data_file(const ConfigNode& value, const DataFileKind& kind);

/// Names (without extension) of the files in a folder, sorted. Empty if there is no such folder.
std::vector<std::string> data_file_names(const std::filesystem::path& folder, const std::string& extension);

}  // namespace epocast
