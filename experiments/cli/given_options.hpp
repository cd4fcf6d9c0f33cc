#pragma once
// Options that would do nothing with what else is on the command line.

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "sim/error.hpp"

namespace epocast {

/// Throws ConfigError for the first of these options that was given.
inline void refuse_given(const CLI::App& command, const std::vector<std::string>& options, const std::string& why) {
  for (const std::string& option : options)
    if (command.count(option) > 0) throw ConfigError(option + ": " + why);
}

}  // namespace epocast
