#include "platforms/probe.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "platforms/xml_source.hpp"
#include "sim/error.hpp"
#include "sim/process.hpp"
#include "sim/simgrid/engine.hpp"
#include "sim/simgrid/simgrid.hpp"

namespace epocast {

namespace {

constexpr std::string_view kReport = "epocast probe: ";  // begins the line in which the child names an exception

// Throws unless SimGrid has the same hosts in the same order.
void compare_hosts(const SimEngine& engine, const Cluster& cluster) {
  if (engine.host_count() != std::ssize(cluster.devices))
    throw std::runtime_error("SimGrid makes " + std::to_string(engine.host_count()) + " hosts, epocast reads " +
                             std::to_string(cluster.devices.size()));
  for (int i = 0; i < engine.host_count(); ++i)
    if (engine.host_name(i) != cluster.devices[i].name)
      throw std::runtime_error("host " + std::to_string(i) + " is '" + engine.host_name(i) + "' for SimGrid, '" +
                               cluster.devices[i].name + "' for epocast");
}

[[noreturn]] void run_child(const std::filesystem::path& file, const Cluster* cluster, int output) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  try {
    SimEngine engine(file.string());
    const int last = engine.host_count() - 1;
    if (last < 0) throw std::runtime_error("the platform has no hosts");
    if (cluster != nullptr) compare_hosts(engine, *cluster);
    for (const auto& [from, to] : {std::pair{0, 1}, {1, 0}, {0, last}, {last, 0}})
      if (from != to && from <= last && to <= last) engine.route(from, to);
    _exit(0);  // no destructors: they may crash where the load did not, and the parent's buffers are not ours to flush
  } catch (const std::exception& error) {
    dprintf(STDERR_FILENO, "%s%s\n", kReport.data(), error.what());
  }
  _exit(1);
}

// A child process and what it prints. Kills and reaps it, whatever happens.
class Child {
 public:
  Child(const std::filesystem::path& file, const Cluster* cluster) {
    int ends[2];
    if (pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    std::fflush(nullptr);
    pid_ = fork_child();
    if (pid_ == 0) {
      close(ends[0]);
      run_child(file, cluster, ends[1]);
    }
    const int fork_error = errno;
    close(ends[1]);
    output_ = ends[0];
    if (pid_ < 0) {
      close(output_);
      throw std::system_error(fork_error, std::generic_category(), "fork");
    }
  }
  ~Child() {
    close(output_);
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Reads what the child prints until it ends. False if that takes longer than `limit`.
  bool read_all(std::chrono::duration<double> limit, std::string& text) const {
    constexpr std::size_t kLongest = 1 << 16;
    const auto deadline = std::chrono::steady_clock::now() + limit;
    for (;;) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
      if (left <= 0) return false;
      pollfd wanted{output_, POLLIN, 0};
      const int ready = poll(&wanted, 1, static_cast<int>(std::min<long>(left, 1000)));
      if (ready < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "poll");
      if (ready <= 0) continue;
      char buffer[4096];
      const ssize_t got = read(output_, buffer, sizeof buffer);
      if (got == 0) return true;
      if (got > 0 && text.size() < kLongest) text.append(buffer, static_cast<std::size_t>(got));
    }
  }

  /// REQUIRES: read_all() returned true. The status as of waitpid().
  int wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_ = -1;
  int output_ = -1;
};

// "[0.000000] ./src/x.cpp:12: [root/CRITICAL] Not a valid model!" -> "Not a valid model!"
std::string_view without_log_prefix(std::string_view line) {
  for (const std::string_view level : {"/CRITICAL] ", "/ERROR] ", "/WARNING] "})
    if (const auto at = line.find(level); at != std::string_view::npos) return line.substr(at + level.size());
  return line;
}

// The line of the child's output that says most: our own report, else the first that is no decoration.
std::string informative_line(std::string_view text) {
  std::string first;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.starts_with(kReport)) return std::string(line.substr(kReport.size()));
    const std::string_view message = without_log_prefix(line);
    const bool decoration =
        message.find_first_not_of(" =-*\t") == std::string_view::npos || message.starts_with("Backtrace");
    if (first.empty() && !decoration) first = message;
  }
  return first;
}

/// Takes "FILE:12: Invalid XML (...): " from the start of SimGrid's message; gives the 12, or 0 if there is none.
int take_line(const std::filesystem::path& file, std::string& message) {
  const std::string head = file.string() + ":";
  if (!message.starts_with(head)) return 0;
  int line = 0;
  const char* const digits = message.data() + head.size();
  const auto [end, failed] = std::from_chars(digits, message.data() + message.size(), line);
  if (failed != std::errc{}) return 0;
  message.erase(0, static_cast<std::size_t>(end - message.data()));
  message.erase(0, std::min(message.find_first_not_of(": "), message.size()));
  if (message.starts_with("Invalid XML (")) message.erase(0, std::min(message.find("): "), message.size() - 3) + 3);
  return line;
}

/// What to write instead of what SimGrid's reader is more particular about than XML.
std::string remedy(std::string_view message) {
  if (message.find("<!DOCTYPE") != std::string_view::npos)
    return "; write <!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">";
  if (message.find("<?xml") != std::string_view::npos) return "; write <?xml version=\"1.0\"?>";
  return "";
}

void probe(const std::filesystem::path& file, const Cluster* cluster, Seconds time_limit) {
  load_simgrid();  // or its absence would look like the platform's fault
  Child child(file, cluster);
  std::string text;
  const bool ended = child.read_all(std::chrono::duration<double>(time_limit.value), text);
  if (!ended)
    throw ConfigError({file.string()}, "", "SimGrid did not load this platform within " + to_string(time_limit));
  const int status = child.wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  std::string problem = "SimGrid rejects this platform";
  if (WIFSIGNALED(status))
    problem = std::string("SimGrid crashes on this platform (") + strsignal(WTERMSIG(status)) + ")";
  std::string said = informative_line(text);
  const Location where{file.string(), take_line(file, said)};
  if (!said.empty()) problem += ": " + said + remedy(said);
  throw ConfigError(where, "", problem);
}

}  // namespace

void probe_platform(const std::filesystem::path& file, Seconds time_limit) { probe(file, nullptr, time_limit); }

void probe_platform(const Cluster& cluster, Seconds time_limit) { probe(cluster.platform_file, &cluster, time_limit); }

}  // namespace epocast
