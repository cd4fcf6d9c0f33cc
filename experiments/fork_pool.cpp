#include "experiments/fork_pool.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace epocast {
namespace {

/// A running child and what has come from it so far.
struct Child {
  pid_t pid = -1;
  int job = 0;
  int output = -1;  ///< file descriptors to read from; -1 once closed
  int errors = -1;
  JobOutcome outcome;
};

[[noreturn]] void fail(const char* what) { throw std::runtime_error(std::string(what) + ": " + std::strerror(errno)); }

void write_all(int fd, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);
    at += static_cast<std::size_t>(n);
  }
}

Child start(int job, const std::function<std::string(int)>& work) {
  int output[2], errors[2];
  if (pipe2(output, O_CLOEXEC) != 0 || pipe2(errors, O_CLOEXEC) != 0) fail("pipe");
  std::fflush(nullptr);  // or the child would print it again
  const pid_t pid = fork();
  if (pid < 0) fail("fork");
  if (pid == 0) {
    close(output[0]);
    close(errors[0]);
    dup2(errors[1], STDERR_FILENO);
    try {
      // A first byte tells a job that returned from one whose process ended early with a clean exit code.
      write_all(output[1], "+" + work(job));
    } catch (const std::exception& problem) {
      write_all(STDERR_FILENO, problem.what());
      _exit(3);
    }
    // No destructors: SimGrid's would walk through everything the parent will free anyway.
    _exit(0);
  }
  close(output[1]);
  close(errors[1]);
  return {pid, job, output[0], errors[0], {}};
}

/// Reads what is there; closes at the end.
void drain(int& fd, std::string& into) {
  char buffer[65536];
  const ssize_t n = read(fd, buffer, sizeof buffer);
  if (n > 0) {
    into.append(buffer, static_cast<std::size_t>(n));
  } else if (n == 0 || errno != EINTR) {
    close(fd);
    fd = -1;
  }
}

void reap(Child& child) {
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) child.outcome.signal = WTERMSIG(status);
  child.outcome.finished = WIFEXITED(status) && WEXITSTATUS(status) == 0 && !child.outcome.output.empty();
  if (child.outcome.finished) child.outcome.output.erase(0, 1);
}

}  // namespace

int available_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

void run_forked(int jobs, int parallel, const std::function<std::string(int)>& job,
                const std::function<void(int, JobOutcome)>& done) {
  std::vector<Child> running;
  int next = 0;
  while (next < jobs || !running.empty()) {
    while (next < jobs && static_cast<int>(running.size()) < std::max(1, parallel))
      running.push_back(start(next++, job));

    std::vector<pollfd> watched;
    for (const Child& child : running)
      for (const int fd : {child.output, child.errors})
        if (fd >= 0) watched.push_back({fd, POLLIN, 0});
    if (poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) fail("poll");
    const auto ready = [&](int fd) {
      return fd >= 0 && std::any_of(watched.begin(), watched.end(),
                                    [fd](const pollfd& p) { return p.fd == fd && p.revents != 0; });
    };
    for (Child& child : running) {
      if (ready(child.output)) drain(child.output, child.outcome.output);
      if (ready(child.errors)) drain(child.errors, child.outcome.errors);
    }
    for (auto it = running.begin(); it != running.end();) {
      if (it->output >= 0 || it->errors >= 0) {
        ++it;
        continue;
      }
      reap(*it);
      done(it->job, std::move(it->outcome));
      it = running.erase(it);
    }
  }
}

}  // namespace epocast
