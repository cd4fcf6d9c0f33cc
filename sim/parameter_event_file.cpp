#include "sim/parameter_event_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "sim/error.hpp"

namespace epocast {

ParameterEventFile::ParameterEventFile() {
  std::error_code problem;
  folder_ = std::filesystem::temp_directory_path(problem).string();
  std::string name = folder_ + "/epocast-events-XXXXXX";
  if (problem)
    errno = problem.value();
  else
    file_ = mkstemp(name.data());
  if (file_ < 0) fail("cannot be made");
  unlink(name.c_str());
}

ParameterEventFile::~ParameterEventFile() {
  if (file_ >= 0) close(file_);
}

void ParameterEventFile::fail(const char* what) const {
  throw SimulationError(
      fmt::format("a file for {} more events of the log {} in '{}': {}; set TMPDIR to a folder with more room, or use "
                  "fewer epochs or "
                  "coarser messages (granularity: model)",
                  size_, what, folder_, std::strerror(errno)));
}

void ParameterEventFile::add(const ParameterEvent& event) {
  unwritten_.push_back(event);
  kinds_ |= std::uint32_t{1} << event.kind;
  ++size_;
  if (unwritten_.size() == kTogether) flush();
}

void ParameterEventFile::flush() {
  const char* from = reinterpret_cast<const char*>(unwritten_.data());
  for (std::size_t left = unwritten_.size() * sizeof(ParameterEvent); left > 0;) {
    const ssize_t written = write(file_, from, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("cannot be written");
    from += written;
    left -= static_cast<std::size_t>(written);
  }
  unwritten_.clear();
}

void ParameterEventFile::read(std::size_t n, std::span<ParameterEvent> events) const {
  char* to = reinterpret_cast<char*>(events.data());
  auto at = static_cast<off_t>(n * sizeof(ParameterEvent));
  for (std::size_t left = events.size_bytes(); left > 0;) {
    const ssize_t got = pread(file_, to, left, at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail("cannot be read");
    to += got;
    at += got;
    left -= static_cast<std::size_t>(got);
  }
}

}  // namespace epocast
