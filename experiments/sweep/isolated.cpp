#include "experiments/sweep/isolated.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "sim/process.hpp"

namespace epocast {
namespace {

/// A file without a name, which parent and child share: what the child writes is there however it ends.
class SharedText {
 public:
  SharedText() : file_(memfd_create("epocast", MFD_CLOEXEC)) {
    if (file_ < 0) throw std::runtime_error(std::string("cannot make a file in memory: ") + std::strerror(errno));
  }
  ~SharedText() { close(file_); }
  SharedText(const SharedText&) = delete;
  SharedText& operator=(const SharedText&) = delete;

  int file() const { return file_; }
  void clear() const {
    if (ftruncate(file_, 0) != 0 || lseek(file_, 0, SEEK_SET) != 0)
      throw std::runtime_error(std::string("cannot use a file in memory: ") + std::strerror(errno));
  }
  void write(const std::string& text) const {
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t n = ::write(file_, text.data() + at, text.size() - at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) _exit(1);
      at += static_cast<std::size_t>(n);
    }
  }
  std::string read() const {
    std::string text(static_cast<std::size_t>(lseek(file_, 0, SEEK_END)), '\0');
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t n = pread(file_, text.data() + at, text.size() - at, static_cast<off_t>(at));
      if (n <= 0) break;
      at += static_cast<std::size_t>(n);
    }
    return text;
  }

 private:
  int file_;
};

void limit_this_process(double seconds, double bytes) {
  if (seconds > 0) {
    itimerval timer = {};
    timer.it_value.tv_sec = static_cast<time_t>(seconds);
    timer.it_value.tv_usec = static_cast<suseconds_t>((seconds - std::floor(seconds)) * 1e6) + 1;
    setitimer(ITIMER_REAL, &timer, nullptr);
  }
  if (bytes > 0) {
    const rlimit limit{static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
    setrlimit(RLIMIT_AS, &limit);
  }
}

}  // namespace

JobOutcome run_isolated(const std::function<std::string()>& work, double seconds, double bytes) {
  static const SharedText output, errors;
  output.clear();
  errors.clear();
  std::fflush(nullptr);  // or the child would print it again
  const pid_t child = fork_child();
  if (child < 0) throw std::runtime_error(std::string("cannot start a process: ") + std::strerror(errno));
  if (child == 0) {
    dup2(errors.file(), STDERR_FILENO);
    limit_this_process(seconds, bytes);
    try {
      output.write(work());
    } catch (const std::exception& problem) {
      errors.write(problem.what());
      _exit(3);
    }
    _exit(0);  // no destructors: nothing that they do is needed
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  JobOutcome outcome;
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  outcome.finished = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (outcome.finished) outcome.output = output.read();
  outcome.errors = errors.read();
  return outcome;
}

}  // namespace epocast
