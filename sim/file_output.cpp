#include "sim/file_output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <optional>
#include <system_error>

#include "sim/error.hpp"
#include "sim/process.hpp"

namespace epocast {

void write_file(const std::filesystem::path& file, const std::function<void(std::ostream&)>& print) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_type type = fs::symlink_status(file, error).type();
  // Renaming would replace a link or a device.
  const bool in_place = type != fs::file_type::regular && type != fs::file_type::not_found;
  fs::path part = file;
  if (!in_place) part.replace_filename(fmt::format(".{}.{}.part", file.filename().string(), ::getpid()));
  error.clear();
  std::optional<UnfinishedFile> unfinished;
  if (!in_place) unfinished.emplace(part.string());
  {
    errno = 0;
    std::ofstream out(part, std::ios::binary);
    if (out) print(out);
    out.close();
    if (!out) error.assign(errno != 0 ? errno : EIO, std::generic_category());
  }
  if (!error && !in_place) fs::rename(part, file, error);
  if (!error) return;
  throw ConfigError(Location{file.string(), 0, 0}, "", "cannot be written: " + error.message());
}

void write_file(const std::filesystem::path& file, const std::string& text) {
  write_file(file, [&](std::ostream& out) { out << text; });
}

}  // namespace epocast
