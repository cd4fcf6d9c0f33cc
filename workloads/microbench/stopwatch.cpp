#include "workloads/microbench/stopwatch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <omp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>

namespace epocast {
namespace {

constexpr double kReading = 50e-6;  // s; reading the clocks takes a few microseconds for each thread

}  // namespace

Stopwatch::Stopwatch() : files_(static_cast<std::size_t>(omp_get_max_threads()), -1) {
#pragma omp parallel
  {
    const std::string name = fmt::format("/proc/self/task/{}/schedstat", ::syscall(SYS_gettid));
    files_[static_cast<std::size_t>(omp_get_thread_num())] = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  }
}

Stopwatch::~Stopwatch() {
  for (const int file : files_)
    if (file >= 0) ::close(file);
}

void Stopwatch::start() {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const double before = now();
    delays_ = delays();
    begin_ = now();
    if (begin_ - before < kReading) return;
  }
}

std::optional<double> Stopwatch::stop() {
  const double end = now();
  const double elapsed = end - begin_;
  const std::vector<long> after = delays();
  if (now() - end > kReading) return std::nullopt;
  long longest = 0;
  for (std::size_t i = 0; i < after.size(); ++i) longest = std::max(longest, after[i] - delays_[i]);
  waited_ = 1e-9 * static_cast<double>(longest);
  if (waited_ >= elapsed) return std::nullopt;
  return elapsed - waited_;
}

double Stopwatch::now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<long> Stopwatch::delays() const {
  std::vector<long> out;
  for (const int file : files_) {
    std::array<char, 128> text{};
    long delay = 0;
    // "time on the CPU, time waiting for it, number of time slices"
    if (file >= 0 && ::pread(file, text.data(), text.size() - 1, 0) > 0) {
      char* after_first = nullptr;
      std::strtol(text.data(), &after_first, 10);
      delay = std::strtol(after_first, nullptr, 10);
    }
    out.push_back(delay);
  }
  return out;
}

}  // namespace epocast
