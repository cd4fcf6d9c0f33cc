#pragma once
// Writes result files so that nobody ever finds half of one.

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string>

namespace epocast {

/// Calls `print` with a stream for `file`. A regular file appears complete or not at all: it is written under another
/// name beside it and renamed. Links and devices, such as /dev/stdout, are written in place. Throws ConfigError with
/// the file and the system's reason if it cannot be written; nothing is left behind then.
void write_file(const std::filesystem::path& file, const std::function<void(std::ostream&)>& print);
void write_file(const std::filesystem::path& file, const std::string& text);

}  // namespace epocast
