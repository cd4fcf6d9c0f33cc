#pragma once
// Which operator a kernel in a Chrome trace of PyTorch's profiler (Kineto) belongs to: the one that its "External id"
// names, else the one that the launch of the same "correlation" names, else the innermost one in which that launch lies
// on its thread.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace epocast {

/// What an event of a trace is, by its category ("cat"), under its names before and since PyTorch 1.11.
enum class TraceEvent { other, operation, launch, kernel };
TraceEvent trace_event(const std::string& category);

/// A call on the host: an operator, or what launches a kernel.
struct TracedCall {
  std::pair<std::string, std::string> thread;  ///< process and thread
  double start = 0, duration = 0;              ///< [us]
  std::int64_t id = -1;                        ///< "External id"
  double launched = 0;                         ///< [us] of the kernels that an operator launched itself

  double end() const { return start + duration; }
};

/// By thread and start; what encloses others comes before them.
bool comes_before(const TracedCall& a, const TracedCall& b);

class TracedKernels {
 public:
  void add_launch(std::int64_t correlation, TracedCall call);
  void add_kernel(std::int64_t id, std::int64_t correlation, double duration);
  /// Whether there are any.
  bool any() const { return !kernels_.empty(); }
  /// Adds each kernel's time to its operator; returns that of kernels which have none [us]. REQUIRES: the operators are
  /// sorted by comes_before().
  double assign(const std::vector<TracedCall*>& operators) const;

 private:
  struct Kernel {
    std::int64_t id, correlation;
    double duration;
  };
  std::vector<Kernel> kernels_;
  std::map<std::int64_t, TracedCall> launches_;  ///< by correlation
};

}  // namespace epocast
