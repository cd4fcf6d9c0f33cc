#pragma once
// Runs the built program as a user does, in a folder of its own, and looks at all that comes back.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cli/text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace epocast::test {

/// How a run of the program ended.
struct ProgramRun {
  int exit_code = -1;  ///< -1 if a signal ended it
  int signal = 0;
  std::string out, err;
};

/// Where standard output goes.
enum class Stdout { captured, closed, full };

/// How a run starts.
struct StartOptions {
  Stdout where = Stdout::captured;
  int descriptors = 0;        ///< that it may have open; 0: as many as we
  bool own_session = false;   ///< which all processes that it starts belong to, wherever they end up
  bool terminal_end = false;  ///< SIGHUP ends it, as when its terminal goes away, even if we run under nohup
  bool forked = false;  ///< as a fork of this process, which is linked with it: loading it takes longer than an error
};

/// `epocast` while it runs. Killed with this object. What computes for more than two minutes is killed (SIGXCPU), and
/// so is what hangs for half an hour (SIGALRM): a busy machine makes no test fail.
class RunningProgram {
 public:
  RunningProgram(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                 const StartOptions& options = {});
  ~RunningProgram();
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  int process() const { return process_; }
  /// Reads until standard output has a whole line. False if it ends before.
  bool read_line();
  bool has_ended() const;
  /// Reads all that comes, waits for the end and tells how it was.
  ProgramRun finish();

 private:
  /// Waits for output or errors and takes them. False if both have ended.
  bool read_some();

  int process_ = -1;
  int out_ = -1, err_ = -1;
  ProgramRun run_;
};

/// Runs `epocast` with these arguments in `folder` to its end.
ProgramRun run_program(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                       Stdout where = Stdout::captured);
/// The same in a fork of this process, for many short runs: loading the program takes longer than they do.
ProgramRun run_forked(const std::vector<std::string>& arguments, const std::filesystem::path& folder);

using testing::TemporaryFolder;

/// Runs `epocast` in the folder and checks that it exits with 0 and says nothing but warnings on stderr.
ProgramRun run_good(const std::vector<std::string>& arguments, const TemporaryFolder& folder);

/// A file of /proc/PID; empty if the process has ended, before or while it is read.
std::string read_process_file(const std::filesystem::path& file);

/// Processes of a session, from /proc: those whose parent has died as well.
std::vector<int> processes_of_session(int session);

}  // namespace epocast::test
