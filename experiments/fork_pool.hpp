#pragma once
// Runs jobs in forked child processes, several at a time.
//
// SimGrid keeps its state, the clock included, in globals, and aborts the process on some platform files: a process per
// simulation costs about a millisecond and makes both harmless.

#include <functional>
#include <string>
#include <vector>

namespace epocast {

/// How a job ended.
struct JobOutcome {
  bool finished = false;  ///< the job returned; otherwise its process died
  std::string output;     ///< what the job returned
  int signal = 0;         ///< that killed the process; 0 if it exited by itself
  std::string errors;     ///< what the process wrote to stderr
};

/// Runs `job(i)` for i in 0..jobs-1, each in a child process of its own, at most `parallel` at a time.
/// `done(i, outcome)` is called here, in the order in which they end.
/// Throws std::runtime_error if no process can be made. REQUIRES: no other threads in this process.
void run_forked(int jobs, int parallel, const std::function<std::string(int)>& job,
                const std::function<void(int, JobOutcome)>& done);

/// Processors that this process may use.
int available_processors();

}  // namespace epocast
