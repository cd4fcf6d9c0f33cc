#include "experiments/fork_pool.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <utility>

#include "experiments/signal_watch.hpp"
#include "sim/error.hpp"
#include "sim/process.hpp"

namespace epocast {
namespace {

// What a child sends: any number of reports, each kReport and a double, and of messages, each kMessage, its length and
// its text; then kResult and what the job returned. So a job that returned differs from one whose process ended early
// with a clean exit code.
constexpr char kReport = 'p';
constexpr char kMessage = 'm';
constexpr char kResult = '+';
constexpr std::size_t kReportBytes = 1 + sizeof(double);
constexpr std::size_t kMessageHead = 1 + sizeof(std::uint64_t);

int report_to = -1;  // in a child: where reports go

void write_all(int fd, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);
    at += static_cast<std::size_t>(n);
  }
}

/// A child process and what has come from it so far. Killed and reaped with this object.
class Child {
 public:
  /// Nothing if the system allows no further process or pipe; errno says why.
  static std::optional<Child> start(int job, const std::function<std::string(int)>& work,
                                    const std::vector<Child>& siblings);

  Child(Child&& other) noexcept { *this = std::move(other); }
  Child& operator=(Child&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(job_, other.job_);
    std::swap(output_, other.output_);
    std::swap(errors_, other.errors_);
    std::swap(share_, other.share_);
    std::swap(outcome_, other.outcome_);
    std::swap(messages_, other.messages_);
    return *this;
  }
  ~Child() {
    close_files();
    if (pid_ <= 0) return;
    kill(pid_, SIGTERM);
    kill(pid_, SIGCONT);  // or one that is stopped would not notice
    wait();
  }

  int job() const { return job_; }
  double share() const { return share_; }
  bool ended() const { return output_ < 0 && errors_ < 0; }
  void watch(std::vector<pollfd>& files) const {
    for (const int fd : {output_, errors_})
      if (fd >= 0) files.push_back({fd, POLLIN, 0});
  }
  /// Takes what has come to a file, if it is one of this child's.
  void read_from(int fd);
  /// The messages that have come since this was last asked for.
  std::vector<std::string> take_messages() { return std::exchange(messages_, {}); }
  /// Lets the child go on after a message. One that has died meanwhile is noticed elsewhere.
  void answer() const {
    if (output_ >= 0) send(output_, &kMessage, 1, MSG_NOSIGNAL);
  }
  /// REQUIRES: ended().
  JobOutcome reap();

 private:
  Child(pid_t pid, int job, int output, int errors) : pid_(pid), job_(job), output_(output), errors_(errors) {}
  int wait();
  void close_files() const {
    for (const int fd : {output_, errors_})
      if (fd >= 0) close(fd);
  }
  static void drain(int& fd, std::string& into);

  pid_t pid_ = -1;
  int job_ = 0;
  int output_ = -1;  // file descriptors to read from; -1 once closed
  int errors_ = -1;
  double share_ = 0;  // of the work that is done
  JobOutcome outcome_;
  std::vector<std::string> messages_;
};

std::optional<Child> Child::start(int job, const std::function<std::string(int)>& work,
                                  const std::vector<Child>& siblings) {
  int output[2], errors[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, output) != 0) return {};
  const auto give_up = [](std::initializer_list<int> files) {
    const int why = errno;
    for (const int fd : files) close(fd);
    errno = why;
    return std::nullopt;
  };
  if (pipe2(errors, O_CLOEXEC) != 0) return give_up({output[0], output[1]});
  std::fflush(nullptr);  // or the child would print it again
  const pid_t pid = fork_child();
  if (pid < 0) return give_up({output[0], output[1], errors[0], errors[1]});
  if (pid == 0) {
    for (const int fd : {output[0], errors[0]}) close(fd);
    for (const Child& sibling : siblings) sibling.close_files();  // the job may need as many
    dup2(errors[1], STDERR_FILENO);
    close(errors[1]);
    report_to = output[1];
    try {
      write_all(output[1], kResult + work(job));
    } catch (const Interrupted& by) {
      die_of(by.signal);
    } catch (const std::exception& problem) {
      write_all(STDERR_FILENO, problem.what());
      _exit(3);
    }
    // No destructors: SimGrid's would walk through everything the parent will free anyway.
    _exit(0);
  }
  close(output[1]);
  close(errors[1]);
  return Child(pid, job, output[0], errors[0]);
}

/// Reads what is there; closes at the end.
void Child::drain(int& fd, std::string& into) {
  char buffer[65536];
  const ssize_t n = read(fd, buffer, sizeof buffer);
  if (n > 0) {
    into.append(buffer, static_cast<std::size_t>(n));
  } else if (n == 0 || errno != EINTR) {
    close(fd);
    fd = -1;
  }
}

void Child::read_from(int fd) {
  if (fd == errors_) return drain(errors_, outcome_.errors);
  if (fd != output_) return;
  std::string& text = outcome_.output;
  drain(output_, text);
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t there = text.size() - at;
    if (text[at] == kReport && there >= kReportBytes) {
      std::memcpy(&share_, text.data() + at + 1, sizeof share_);
      at += kReportBytes;
    } else if (text[at] == kMessage && there >= kMessageHead) {
      std::uint64_t length = 0;
      std::memcpy(&length, text.data() + at + 1, sizeof length);
      if (there - kMessageHead < length) break;
      messages_.push_back(text.substr(at + kMessageHead, length));
      at += kMessageHead + length;
    } else {
      break;
    }
  }
  text.erase(0, at);
}

int Child::wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

JobOutcome Child::reap() {
  const int status = wait();
  if (WIFSIGNALED(status)) outcome_.signal = WTERMSIG(status);
  outcome_.finished = WIFEXITED(status) && WEXITSTATUS(status) == 0 && outcome_.output.starts_with(kResult);
  if (outcome_.finished) outcome_.output.erase(0, 1);
  return std::move(outcome_);
}

/// Starts jobs until `parallel` run, there are no more, or the system allows no more, in which case `waiting` is the
/// first that could not start. Throws ConfigError if that is before the first.
void start_jobs(std::vector<Child>& running, std::optional<int>& waiting, int parallel, const ForkedWork& work) {
  while (static_cast<int>(running.size()) < std::max(1, parallel)) {
    if (!waiting) waiting = work.next();
    if (!waiting) return;
    std::optional<Child> child = Child::start(*waiting, work.job, running);
    if (!child) {
      if (!running.empty()) return;  // one of them will end, and make room
      const std::string why = std::strerror(errno);
      throw ConfigError("cannot start a process to simulate in: " + why +
                        "; raise the limits of this shell (ulimit -n for files, ulimit -u for processes)");
    }
    running.push_back(std::move(*child));
    waiting.reset();
  }
}

}  // namespace

int available_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

void run_forked(int jobs, int parallel, const std::function<std::string(int)>& job,
                const std::function<void(int, JobOutcome)>& done, const JobProgress& progress) {
  int started = 0;
  const auto next = [&] { return started < jobs ? std::optional<int>(started++) : std::nullopt; };
  run_forked({.next = next, .job = job, .done = done, .progress = progress}, parallel);
}

namespace {

/// Goes on with what is running.
void run_forked(const ForkedWork& work, int parallel, std::vector<Child>& running) {
  constexpr int kTick = 250;  // ms
  const SignalWatch signals;
  std::optional<int> waiting;
  while (true) {
    start_jobs(running, waiting, parallel, work);
    if (running.empty()) return;
    std::vector<pollfd> watched{{signals.file(), POLLIN, 0}};
    for (const Child& child : running) child.watch(watched);
    if (poll(watched.data(), watched.size(), work.progress ? kTick : -1) < 0) {
      if (errno == EINTR) continue;
      throw ConfigError(std::string("cannot wait for simulations: ") + std::strerror(errno));
    }
    for (const pollfd& file : watched)
      if (file.revents != 0)
        for (Child& child : running) child.read_from(file.fd);
    std::vector<const Child*> told;
    for (Child& child : running)
      for (std::string& message : child.take_messages()) {
        const SignalWatch::Pause pause(signals);
        work.message(child.job(), std::move(message));
        told.push_back(&child);
      }
    if (!told.empty() && work.after_messages) {
      const SignalWatch::Pause pause(signals);
      work.after_messages();
    }
    for (const Child* child : told) child->answer();
    if (work.progress) {
      double share = 0;
      for (const Child& child : running) share += child.share();
      work.progress(share);
    }
    for (std::size_t c = 0; c < running.size();) {
      if (!running[c].ended()) {
        ++c;
        continue;
      }
      JobOutcome outcome = running[c].reap();
      // A signal to all of this group, as Ctrl-C is, may have ended the child: that is no failure of its job.
      if (const int signal = signals.caught()) throw Interrupted{signal};
      const int ended = running[c].job();
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(c));
      const SignalWatch::Pause pause(signals);
      work.done(ended, std::move(outcome));
    }
    if (const int signal = signals.caught()) throw Interrupted{signal};
  }
}

}  // namespace

void run_forked(const ForkedWork& work, int parallel) {
  std::vector<Child> running;
  run_forked(work, parallel, running);
}

struct ForkPool::Impl {
  std::vector<Child> running;
};

ForkPool::ForkPool(const std::function<std::string(int)>& job, int parallel) : impl_(std::make_unique<Impl>()) {
  for (int i = 0; i < parallel; ++i) {
    std::optional<Child> child = Child::start(i, job, impl_->running);
    if (!child) return;
    impl_->running.push_back(std::move(*child));
  }
}

ForkPool::~ForkPool() = default;

std::vector<JobOutcome> ForkPool::wait() {
  std::vector<JobOutcome> outcomes(impl_->running.size());
  const auto done = [&](int job, JobOutcome outcome) { outcomes[static_cast<std::size_t>(job)] = std::move(outcome); };
  run_forked({.next = [] { return std::nullopt; }, .job = {}, .done = done}, 1, impl_->running);
  return outcomes;
}

void send_message(const std::string& text) {
  if (report_to < 0) return;
  std::string head(kMessageHead, kMessage);
  const std::uint64_t length = text.size();
  std::memcpy(head.data() + 1, &length, sizeof length);
  write_all(report_to, head + text);
  char answer = 0;
  ssize_t n = 0;
  while ((n = read(report_to, &answer, 1)) < 0 && errno == EINTR) {
  }
  if (n <= 0) _exit(1);
}

void report_progress(double share) {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point last;
  if (report_to < 0) return;
  const Clock::time_point now = Clock::now();
  if (now - last < std::chrono::milliseconds(200)) return;
  last = now;
  std::string report(kReportBytes, kReport);
  std::memcpy(report.data() + 1, &share, sizeof share);
  write_all(report_to, report);
}

}  // namespace epocast
