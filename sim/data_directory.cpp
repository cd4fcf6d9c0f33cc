#include "sim/data_directory.hpp"

#include <cstdlib>
#include <string>
#include <system_error>
#include <vector>

#include "sim/error.hpp"

namespace epocast {

namespace fs = std::filesystem;

namespace {

// Both are in every data directory, and together in hardly any other.
bool is_data_directory(const fs::path& directory) {
  std::error_code ignored;
  return fs::is_directory(directory / "platforms", ignored) &&
         fs::is_directory(directory / "workloads" / "models", ignored);
}

// Where data may be when EPOCAST_DATA does not say it, best first. The build system defines the last two.
std::vector<fs::path> usual_directories() {
  std::vector<fs::path> out;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) out.push_back(program.parent_path().parent_path() / "share" / "epocast");
#ifdef EPOCAST_SOURCE_DATA
  out.emplace_back(EPOCAST_SOURCE_DATA);
#endif
#ifdef EPOCAST_INSTALL_DATA
  out.emplace_back(EPOCAST_INSTALL_DATA);
#endif
  return out;
}

}  // namespace

fs::path data_directory() {
  if (const char* given = std::getenv("EPOCAST_DATA"); given != nullptr && *given != '\0') {
    if (is_data_directory(given)) return given;
    throw ConfigError("EPOCAST_DATA=" + std::string(given) +
                      " is not a data directory of epocast, which has platforms/ and workloads/models/");
  }
  std::string tried;
  for (const fs::path& directory : usual_directories()) {
    if (is_data_directory(directory)) return directory;
    tried += (tried.empty() ? "" : ", ") + directory.string();
  }
  throw ConfigError("cannot find the data files of epocast (looked in " + tried +
                    "); set EPOCAST_DATA to the folder that has platforms/ and workloads/models/");
}

}  // namespace epocast
