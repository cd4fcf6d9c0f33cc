#include "tests/cli/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <fstream>
#include <stdexcept>

namespace epocast::test {
namespace {

constexpr unsigned kLimit = 60;  // s, for a run under a sanitizer on a busy machine

[[noreturn]] void execute(const std::vector<std::string>& arguments, const std::filesystem::path& folder) {
  std::vector<char*> argv{const_cast<char*>("epocast")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  alarm(kLimit);
  if (chdir(folder.c_str()) == 0) execv(EPOCAST_BINARY, argv.data());
  _exit(126);
}

}  // namespace

ProgramRun run_program(const std::vector<std::string>& arguments, const std::filesystem::path& folder, Stdout where) {
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork");
  if (pid == 0) {
    dup2(where == Stdout::full ? open("/dev/full", O_WRONLY) : out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    if (where == Stdout::closed) close(STDOUT_FILENO);
    execute(arguments, folder);
  }
  close(out[1]);
  close(err[1]);
  ProgramRun run;
  pollfd watched[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  std::string* const texts[2] = {&run.out, &run.err};
  while (watched[0].fd >= 0 || watched[1].fd >= 0) {
    if (poll(watched, 2, -1) < 0 && errno != EINTR) throw std::runtime_error("poll");
    for (int i = 0; i < 2; ++i) {
      if (watched[i].fd < 0 || watched[i].revents == 0) continue;
      char buffer[65536];
      const ssize_t n = read(watched[i].fd, buffer, sizeof buffer);
      if (n > 0) texts[i]->append(buffer, static_cast<std::size_t>(n));
      if (n > 0 || (n < 0 && errno == EINTR)) continue;
      close(watched[i].fd);
      watched[i].fd = -1;
    }
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) run.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) run.signal = WTERMSIG(status);
  return run;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "epocast-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TemporaryFolder::write(const std::string& name, std::string_view text) const {
  const std::filesystem::path file = path_ / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
  return file;
}

std::vector<std::string> TemporaryFolder::names() const {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

ProgramRun run_good(const std::vector<std::string>& arguments, const TemporaryFolder& folder) {
  const ProgramRun run = run_program(arguments, folder.path());
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(run.err.empty());
  return run;
}

}  // namespace epocast::test
