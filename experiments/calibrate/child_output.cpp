#include "experiments/calibrate/child_output.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <array>
#include <cerrno>
#include <cstring>

#include "sim/error.hpp"
#include "sim/process.hpp"

namespace epocast {
namespace {

/// A file without a name, closed with this object. No pipe: what is written need not be read at the same time.
class InputFile {
 public:
  explicit InputFile(const std::string& text) : fd_(::memfd_create("input", MFD_CLOEXEC)) {
    for (std::size_t at = 0; fd_ >= 0 && at < text.size();) {
      const ssize_t n = ::write(fd_, text.data() + at, text.size() - at);
      if (n < 0 && errno != EINTR) fail();
      if (n > 0) at += static_cast<std::size_t>(n);
    }
    if (fd_ < 0 || ::lseek(fd_, 0, SEEK_SET) != 0) fail();
  }
  ~InputFile() { ::close(fd_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  int fd() const { return fd_; }

 private:
  [[noreturn]] static void fail() {
    throw ConfigError(fmt::format("cannot hold the input of another program: {}", std::strerror(errno)));
  }
  int fd_;
};

}  // namespace

std::string output_of(const std::string& name, const std::vector<std::string>& command, const std::string& input) {
  const InputFile in(input);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw ConfigError(fmt::format("cannot start {}: {}", name, std::strerror(errno)));
  const pid_t child = fork_child();
  if (child < 0) {
    const int why = errno;
    for (const int fd : ends) ::close(fd);
    throw ConfigError(fmt::format("cannot start {}: {}", name, std::strerror(why)));
  }
  if (child == 0) {
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::dup2(in.fd(), STDIN_FILENO);
    ::dup2(ends[1], STDOUT_FILENO);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string out;
  std::array<char, 4096> part{};
  for (ssize_t n = 0; (n = ::read(ends[0], part.data(), part.size())) != 0;) {
    if (n > 0) out.append(part.data(), static_cast<std::size_t>(n));
    if (n < 0 && errno != EINTR) break;
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return out;
  if (WIFSIGNALED(status))
    throw ConfigError(fmt::format("{} was ended by signal {}; nothing was written", name, WTERMSIG(status)));
  // It has said why.
  throw ConfigError(fmt::format("the kernels could not be timed: see above what {} says; nothing was written", name));
}

}  // namespace epocast
