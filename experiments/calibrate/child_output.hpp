#pragma once
// Runs another program and takes what it prints.

#include <string>
#include <vector>

namespace epocast {

/// Runs a program with `input` on its stdin; gives what it prints, while its messages go where ours go. A name without
/// a slash is looked up in PATH. Throws ConfigError, which calls the program `name`, if it does not exit with 0.
std::string output_of(const std::string& name, const std::vector<std::string>& command, const std::string& input = "");

}  // namespace epocast
