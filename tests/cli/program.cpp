#include "tests/cli/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "experiments/cli/commands.hpp"

namespace epocast::test {
namespace {

constexpr rlim_t kMostComputing = 120;   // s of CPU time, for a run under a sanitizer
constexpr unsigned kMostWaiting = 1800;  // s, for a hang on a busy machine

[[noreturn]] void execute(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                          const StartOptions& options) {
  std::vector<char*> argv{const_cast<char*>("epocast")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  if (options.own_session) setsid();
  if (options.terminal_end) signal(SIGHUP, SIG_DFL);
  const rlimit computing{kMostComputing, kMostComputing + 5};
  setrlimit(RLIMIT_CPU, &computing);
  alarm(kMostWaiting);
  if (options.descriptors > 0) {
    const rlimit files{static_cast<rlim_t>(options.descriptors), static_cast<rlim_t>(options.descriptors)};
    setrlimit(RLIMIT_NOFILE, &files);
  }
  if (chdir(folder.c_str()) != 0) _exit(126);
  if (!options.forked) {
    execv(EPOCAST_BINARY, argv.data());
    _exit(126);
  }
  // Catch2 would report what ends this process.
  for (const int end : {SIGABRT, SIGFPE, SIGILL, SIGINT, SIGSEGV, SIGTERM}) signal(end, SIG_DFL);
  const int code = run_command_line(static_cast<int>(argv.size()) - 1, argv.data(), builtin_registries());
  std::cout.flush();
  std::fflush(nullptr);
  _exit(code);  // without the end of what the tests have
}

void take(int& fd, std::string& into) {
  char buffer[65536];
  const ssize_t n = read(fd, buffer, sizeof buffer);
  if (n > 0) into.append(buffer, static_cast<std::size_t>(n));
  if (n > 0 || (n < 0 && errno == EINTR)) return;
  close(fd);
  fd = -1;
}

}  // namespace

RunningProgram::RunningProgram(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                               const StartOptions& options) {
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  if (options.forked) {  // or the child would write it once more
    std::cout.flush();
    std::fflush(nullptr);
  }
  process_ = fork();
  if (process_ < 0) throw std::runtime_error("fork");
  if (process_ == 0) {
    dup2(options.where == Stdout::full ? open("/dev/full", O_WRONLY) : out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    if (options.where == Stdout::closed) close(STDOUT_FILENO);
    execute(arguments, folder, options);
  }
  close(out[1]);
  close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

RunningProgram::~RunningProgram() {
  if (process_ < 0) return;
  kill(process_, SIGKILL);
  finish();
}

bool RunningProgram::read_some() {
  pollfd watched[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  if (out_ < 0 && err_ < 0) return false;
  if (poll(watched, 2, -1) < 0 && errno != EINTR) throw std::runtime_error("poll");
  if (out_ >= 0 && watched[0].revents != 0) take(out_, run_.out);
  if (err_ >= 0 && watched[1].revents != 0) take(err_, run_.err);
  return true;
}

bool RunningProgram::read_line() {
  while (run_.out.find('\n') == std::string::npos)
    if (!read_some()) return false;
  return true;
}

bool RunningProgram::has_ended() const {
  siginfo_t info = {};
  return waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

ProgramRun RunningProgram::finish() {
  while (read_some()) {
  }
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  if (WIFEXITED(status)) run_.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) run_.signal = WTERMSIG(status);
  return std::move(run_);
}

ProgramRun run_program(const std::vector<std::string>& arguments, const std::filesystem::path& folder, Stdout where) {
  return RunningProgram(arguments, folder, {.where = where}).finish();
}

ProgramRun run_forked(const std::vector<std::string>& arguments, const std::filesystem::path& folder) {
  return RunningProgram(arguments, folder, {.forked = true}).finish();
}

ProgramRun run_good(const std::vector<std::string>& arguments, const TemporaryFolder& folder) {
  const ProgramRun run = run_program(arguments, folder.path());
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  for (const std::string& line : split(run.err, '\n'))
    CHECK((line.starts_with("warning: ") || line.starts_with("note: ")));
  return run;
}

std::string read_process_file(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();  // an iterator throws if the process ends meanwhile
  return text.str();
}

std::vector<int> processes_of_session(int session) {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string text = read_process_file(entry.path() / "stat");
    const std::size_t end = text.rfind(')');  // of the program's name, which may hold anything
    if (end == std::string::npos) continue;   // it has ended meanwhile
    std::istringstream fields(text.substr(end + 1));
    std::string state;
    int parent = 0, group = 0, of = 0;
    fields >> state >> parent >> group >> of;
    if (of == session && state != "Z" && state != "X") found.push_back(std::stoi(name));
  }
  return found;
}

}  // namespace epocast::test
