#pragma once
// What a model file leaves open: `parameters: {layers: 12, width: 768}` with defaults, which a file that is based on it
// or a study may override.

#include <string>
#include <utility>
#include <vector>

#include "sim/config.hpp"

namespace epocast {

/// A value for a parameter from outside the file that declares it.
using ParameterOverride = std::pair<std::string, ConfigNode>;

/// The entries of a map as overrides, in order, but those of the keys `except`.
std::vector<ParameterOverride> read_overrides(const ConfigNode& map, const std::vector<std::string>& except = {});

class ModelParameters {
 public:
  ModelParameters() = default;
  /// Takes defaults from `root`'s key `parameters`, if there is one. Throws ConfigError if one is not a single value,
  /// or at an override of something not declared.
  ModelParameters(const ConfigNode& root, const std::vector<ParameterOverride>& overrides);

  /// The value, from then on counted as used; null if there is no such parameter.
  const ConfigNode* find(const std::string& name) const;
  std::vector<std::string> names() const;
  /// Throws ConfigError at the first parameter that nobody has asked for.
  void check_all_used() const;

 private:
  struct Entry {
    std::string name;
    ConfigNode declared;
    ConfigNode value;
    mutable bool used = false;
  };
  std::vector<Entry> entries_;
};

}  // namespace epocast
