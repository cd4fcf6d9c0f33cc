#pragma once
// Tells people at a terminal how far a long run is.

#include <chrono>
#include <string>

#include "experiments/run_study.hpp"

namespace epocast {

/// A line on stderr that is overwritten: how much is done and, after a few seconds, for how long it goes on at most.
/// Where stderr is no terminal it stays silent.
class ProgressLine {
 public:
  /// `what`: comes first in the line; may be empty.
  explicit ProgressLine(std::string what = "");
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const StudyProgress& progress);
  void show(const std::string& text);
  bool watched() const { return watched_; }
  double elapsed() const;  ///< s since this was made
  void clear();            ///< before something else is printed
  /// For run_study(); empty where nobody watches. REQUIRES: outlived by this object.
  Progress observer();

 private:
  std::string what_;
  bool watched_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// The text of the line after `elapsed` seconds.
std::string progress_text(const StudyProgress& progress, double elapsed);

}  // namespace epocast
