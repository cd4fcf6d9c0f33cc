#pragma once
// What the result of a scenario depends on.

#include <filesystem>
#include <map>
#include <string>

#include "experiments/scenario.hpp"

namespace epocast {

/// This program: its version and, where the linker gave it one, the fingerprint of what was built.
std::string program_identity(const std::string& version);

/// What is known of a scenario before it is read.
struct ScenarioKey {
  std::string config;  ///< fingerprint of program, configuration and options
  std::string group;   ///< scenarios of the same group have the same platform and network
};

/// Throws ConfigError where Scenario::config() does.
ScenarioKey scenario_key(const Scenario& scenario, const std::string& program, const RunOptions& options);

/// Names for files that mean the same wherever data and study are: "data:platforms/x.xml", "study:my.yaml", else their
/// paths.
class InputNames {
 public:
  /// `study`: the folder of the study.
  explicit InputNames(const std::filesystem::path& study);

  /// The files of a JSON object, path to fingerprint, with such names.
  std::string named(const std::string& files) const;
  /// Whether the files of such an object have what they had. Remembers each file's fingerprint.
  bool unchanged(const std::string& named_files);

 private:
  std::filesystem::path path_of(const std::string& name) const;

  std::filesystem::path data_, study_;
  std::map<std::string, std::string> now_;  ///< fingerprints by name; "" for none
};

}  // namespace epocast
