#pragma once
// Runs jobs in forked child processes, several at a time.
//
// SimGrid keeps its state, the clock included, in globals, and aborts the process on some platform files: a process per
// simulation costs about a millisecond and makes both harmless.

#include <functional>
#include <memory>
#include <optional>
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

/// Thrown when SIGINT, SIGTERM or SIGHUP ask to stop. No failure, so that no handler of failures takes it for one.
struct Interrupted {
  int signal = 0;
};

/// Called several times a second with how many jobs' worth of work running jobs have done, as far as they report it.
using JobProgress = std::function<void(double)>;

/// Runs `job(i)` for i in 0..jobs-1, each in a child process of its own, at most `parallel` at a time; fewer where the
/// system allows fewer. `done(i, outcome)` is called here, in the order in which they end.
/// Throws ConfigError if the system allows not even one child, Interrupted when a signal asks to stop and is not
/// ignored, and what `done` throws; no child is left then. However this process ends, its children end with it.
/// REQUIRES: no other threads in this process.
void run_forked(int jobs, int parallel, const std::function<std::string(int)>& job,
                const std::function<void(int, JobOutcome)>& done, const JobProgress& progress = {});

/// Jobs that are decided on while others run.
struct ForkedWork {
  /// The number of the next job to start; none if there is nothing to do now, until a running job has ended. Called
  /// here, just before the child is made: what it decides, the child knows.
  std::function<std::optional<int>()> next;
  /// Called in the child.
  std::function<std::string(int)> job;
  /// Called here with what a job gave to send_message(), in its order.
  std::function<void(int, std::string)> message = {};
  /// Called here after the messages that had come by then.
  std::function<void()> after_messages = {};
  /// Called here when a job has ended, after its last message.
  std::function<void(int, JobOutcome)> done;
  JobProgress progress = {};
};

/// Runs jobs until there is no next one and none is left. Otherwise as above.
void run_forked(const ForkedWork& work, int parallel);

/// Jobs that run while this process does something else. As above, but nobody listens to them meanwhile: they send no
/// messages.
class ForkPool {
 public:
  /// Starts as many as it can at once, up to `parallel`; none where the system allows none.
  ForkPool(const std::function<std::string(int)>& job, int parallel);
  /// Ends those that are still running.
  ~ForkPool();
  ForkPool(const ForkPool&) = delete;
  ForkPool& operator=(const ForkPool&) = delete;

  /// Waits for all; how they ended, by number. None of those that were not started.
  std::vector<JobOutcome> wait();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Within a job: tells `message` something, and waits until `after_messages` has returned. Ends the process if nobody
/// listens any more.
void send_message(const std::string& text);

/// Within a job: tells how much of it is done, 0..1. Does nothing elsewhere; cheap if called often.
void report_progress(double share);

/// Processors that this process may use.
int available_processors();

}  // namespace epocast
