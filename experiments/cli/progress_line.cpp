#include "experiments/cli/progress_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "experiments/cli/verbosity.hpp"
#include "sim/quantity.hpp"

namespace epocast {

ProgressLine::ProgressLine(std::string what)
    : what_(std::move(what)), watched_(isatty(STDERR_FILENO) != 0 && verbosity != Verbosity::quiet) {}

std::string progress_text(const StudyProgress& progress, double elapsed) {
  constexpr std::size_t kWidth = 24;
  constexpr double kSettled = 3;  // s before a forecast of the time left is worth reading
  const auto filled = static_cast<std::size_t>(std::clamp(progress.share, 0.0, 1.0) * kWidth);
  std::string text = fmt::format("[{:#<{}}{:.<{}}]", "", filled, "", kWidth - filled);
  if (progress.of > 1) text += fmt::format(" {}/{}", progress.done, progress.of);
  if (elapsed < kSettled) return text;
  text += fmt::format("  {}", to_string(Seconds(std::floor(elapsed))));
  // Scenarios may find their steady state at any time, which ends them.
  if (progress.share > 0)
    text += fmt::format(", at most {} to go", to_string(Seconds(std::ceil(elapsed * (1 / progress.share - 1)))));
  return text;
}

void ProgressLine::show(const StudyProgress& progress) {
  if (!watched_) return;
  std::string text = what_.empty() ? "" : what_ + ": ";
  text += progress_text(progress, elapsed());
  if (progress.latest != nullptr) text += fmt::format("  {:.40}", progress.latest->scenario);
  show(text);
}

void ProgressLine::show(const std::string& text) {
  if (!watched_) return;
  std::cerr << "\r\033[K" << text << std::flush;
  shown_ = true;
}

double ProgressLine::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void ProgressLine::clear() {
  if (std::exchange(shown_, false)) std::cerr << "\r\033[K" << std::flush;
}

Progress ProgressLine::observer() {
  if (!watched_) return {};
  return [this](const StudyProgress& progress) { show(progress); };
}

}  // namespace epocast
