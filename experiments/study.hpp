#pragma once
// A study file: one scenario, or the product of its sweep axes.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "sim/config.hpp"

namespace epocast {

/// One point of a study. Points share the study's text and say only what they change: there may be a hundred thousand.
struct Scenario {
  std::string study;
  std::string name;                                       ///< "workers=4, strategy=data_parallel"; "" without axes
  std::vector<std::pair<std::string, std::string>> axes;  ///< key and value, as columns of the output
  ConfigNode base;                                        ///< the study
  std::vector<std::pair<std::string, ConfigNode>>
      settings;  ///< key and value, from axes and the command line, as they are applied: in this order
  /// Of a study that names no stack: the one that its strategy is usually run with, see usual_stack.hpp; else `ideal`.
  bool usual_stack = false;

  /// The complete configuration, without axes: a copy of its own. Throws ConfigError for a setting of a key inside
  /// something that is not a map.
  ConfigNode config() const;
};

/// Everything that `run` does for a study file.
struct Study {
  std::string name;
  std::vector<std::string> axes;
  std::vector<Scenario> scenarios;
  std::vector<std::string> notes;  ///< what overrides did that may not have been meant
};

/// A change from the command line, `--set key=value`.
struct Override {
  std::string key;
  std::string value;
};

/// Splits "key=value". Throws ConfigError.
Override parse_override(const std::string& text);

/// Reads a study file and expands its axes, last axis fastest. Throws ConfigError.
/// An axis value that is a map in a strategy axis is labelled by its name and its other settings.
Study load_study(const std::filesystem::path& file, const std::vector<Override>& overrides = {});
/// The same, with the stacks that strategies are usually run with: what a user's study means.
Study load_users_study(const std::filesystem::path& file, const std::vector<Override>& overrides = {});
/// The same as load_study() from text; `name` stands for the file.
Study parse_study(std::string_view text, std::string name, const std::vector<Override>& overrides = {});

}  // namespace epocast
