#pragma once
// Measures how long this program takes for something, on a machine that others use too.

#include <optional>
#include <vector>

namespace epocast {

/// Wall-clock time less the time that a thread was ready to run but another program had its CPU (the run delay of
/// Linux's /proc/PID/task/TID/schedstat; nothing is subtracted where there is none). Of several threads the one that
/// waited longest counts: exact for one thread, too little where threads waited one after the other.
class Stopwatch {
 public:
  /// For the calling thread and all of OpenMP's. REQUIRES that OpenMP's number of threads is set.
  Stopwatch();
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  void start();
  /// [s] since start; none if another program had the CPU while the clocks were read, so that nobody can tell.
  std::optional<double> stop();
  double waited() const { return waited_; }  ///< [s] that the last measurement left out

  static double now();  ///< [s] on the wall clock

 private:
  std::vector<long> delays() const;  // [ns] of each thread since it began

  std::vector<int> files_;  // open schedstat files
  std::vector<long> delays_;
  double begin_ = 0;
  double waited_ = 0;
};

}  // namespace epocast
