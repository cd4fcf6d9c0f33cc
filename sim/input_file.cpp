#include "sim/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "sim/error.hpp"
#include "sim/input_record.hpp"

namespace epocast {
namespace {

/// An open file, closed with this object.
class OpenFile {
 public:
  // Without waiting: a named pipe would keep us until somebody writes to it.
  explicit OpenFile(const std::filesystem::path& file)
      : name_(file.string()), fd_(open(name_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0)
      fail(errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG
               ? "no such file"
               : std::string("cannot be opened for reading: ") + std::strerror(errno));
    struct stat about = {};
    if (fstat(fd_, &about) != 0) fail(std::strerror(errno));
    if (S_ISDIR(about.st_mode)) fail("is a directory, not a file");
    if (!S_ISREG(about.st_mode) && !S_ISFIFO(about.st_mode)) fail("is a device, not a file; give a file");
    pipe_ = S_ISFIFO(about.st_mode);
  }
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  /// Appends what comes next; false at the end.
  bool read_some(std::string& text) const {
    constexpr int kPatience = 10'000;  // ms that the writer of a pipe may take
    std::vector<char> block(std::size_t{1} << 16);
    while (true) {
      const ssize_t n = read(fd_, block.data(), block.size());
      if (n > 0) text.append(block.data(), static_cast<std::size_t>(n));
      if (n > 0) return true;
      if (n == 0 && pipe_ && text.empty()) fail("is a pipe to which nobody writes; give a file");
      if (n == 0) return false;
      if (errno == EINTR) continue;
      if (errno != EAGAIN) fail(std::string("cannot be read: ") + std::strerror(errno));
      pollfd wanted{fd_, POLLIN, 0};
      if (poll(&wanted, 1, kPatience) == 0)
        fail(fmt::format("is a pipe to which nobody writes for {} s; give a file", kPatience / 1000));
    }
  }

  [[noreturn]] void fail(const std::string& problem) const {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
    throw ConfigError(Location{name_}, "", problem);
  }

 private:
  std::string name_;
  mutable int fd_;
  bool pipe_ = false;
};

}  // namespace

std::string read_input_file(const std::filesystem::path& file, std::size_t limit) {
  if (file.empty()) throw ConfigError("a file's name is empty; give a file");
  const OpenFile in(file);
  std::string text;
  while (in.read_some(text))
    if (text.size() > limit) in.fail(fmt::format("larger than {} MiB", limit >> 20));
  InputRecord::note(file, text);
  return text;
}

}  // namespace epocast
