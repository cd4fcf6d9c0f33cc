#pragma once
// Reads a file that a user names, whatever it turns out to be.

#include <cstddef>
#include <filesystem>
#include <string>

namespace epocast {

/// The whole file. Throws ConfigError with the file and a remedy if it is missing, a folder, a device, longer than
/// `limit` bytes, or a pipe to which nobody writes.
std::string read_input_file(const std::filesystem::path& file, std::size_t limit = std::size_t{1} << 30);

}  // namespace epocast
