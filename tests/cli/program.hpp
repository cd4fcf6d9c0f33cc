#pragma once
// Runs the built program as a user does, in a folder of its own, and looks at all that comes back.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cli/text.hpp"

namespace epocast::test {

/// How a run of the program ended.
struct ProgramRun {
  int exit_code = -1;  ///< -1 if a signal ended it
  int signal = 0;
  std::string out, err;
};

/// Where standard output goes.
enum class Stdout { captured, closed, full };

/// Runs `epocast` with these arguments in `folder`. A run of more than a minute is killed (SIGALRM).
ProgramRun run_program(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                       Stdout where = Stdout::captured);

/// A folder that is removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Writes a file in the folder; returns its path.
  std::filesystem::path write(const std::string& name, std::string_view text) const;
  std::vector<std::string> names() const;  ///< of the files in it, sorted

 private:
  std::filesystem::path path_;
};

/// Runs `epocast` in the folder and checks that it exits with 0 and says nothing on stderr.
ProgramRun run_good(const std::vector<std::string>& arguments, const TemporaryFolder& folder);

}  // namespace epocast::test
