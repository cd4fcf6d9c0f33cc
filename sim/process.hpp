#pragma once
// Processes that leave nothing behind when they are stopped: no child that goes on alone, no half-written file.

#include <sys/types.h>

#include <string>

namespace epocast {

/// fork() for a child that does not outlive this process: whatever ends the parent, SIGKILL included, ends the child
/// by SIGTERM, also after an exec. In the child no signal that should end it is blocked or ignored.
/// Gives what fork() gives. REQUIRES: no other threads in this process.
pid_t fork_child();

/// From now on SIGINT, SIGTERM and SIGHUP first remove the file that is being written (UnfinishedFile), then do what
/// they do by default. A signal that is ignored, as SIGHUP is under nohup, stays so. For main().
void clean_up_on_signals();

/// From now on, memory that a destructor lacks (nlohmann::json's take some) removes the file that is being written and
/// exits with what `report` gives, where it would abort this process. For main().
void report_lack_of_memory_in_destructors(int (*report)());

/// Ends this process as `signal` does by default, so that whoever started it sees why.
[[noreturn]] void die_of(int signal);

/// The file of this name goes away with this object, and if a signal ends the process (see clean_up_on_signals();
/// of two that are alive, the inner one).
class UnfinishedFile {
 public:
  explicit UnfinishedFile(std::string name);
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

 private:
  std::string name_;
  const char* outer_;
};

}  // namespace epocast
