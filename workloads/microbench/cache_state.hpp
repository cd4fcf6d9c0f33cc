#pragma once
// Brings the caches into the state in which a kernel finds them in a training step.
//
// A kernel that is simply repeated finds its operands where it left them: a small layer in the cache, although in a
// step its weights were last read a whole step ago. Before each timed run, what the step touches before the kernel is
// touched again, in that order and back to twice the last-level cache: the kernel's own operands themselves, in place
// of all others as many bytes elsewhere. What is written in the step is written (dirty lines have to go to memory at
// somebody's expense). Code is cached too: the last kernel before this one that does the same work elsewhere in the
// network, such as a block's twin, is run in its place.

#include <cstddef>
#include <string>
#include <vector>

#include "workloads/microbench/executed_step.hpp"

namespace epocast {

class CacheState {
 public:
  /// `cache` [B]: size of the last-level cache.
  CacheState(const ExecutedStep& step, std::size_t cache);

  /// Gets memory for the kernel's operands, and its twin's.
  void allocate(std::size_t kernel) const;
  /// REQUIRES allocate(kernel).
  void prepare(std::size_t kernel, dnnl::stream& stream);

  /// How long ago the step last touched each of the kernel's operands, roughly: the same for kernels that find the
  /// caches in much the same state.
  std::string history(std::size_t kernel) const;

 private:
  struct Touch {
    Buffer* buffer;  ///< null: somewhere else
    std::size_t bytes;
    bool written;
    const Kernel* run = nullptr;  ///< to run instead of touching anything
  };
  std::vector<Touch> before(std::size_t kernel) const;

  const ExecutedStep& step_;
  std::size_t window_;
  Buffer elsewhere_;
  std::size_t at_ = 0;  ///< where in `elsewhere_` to go on
};

}  // namespace epocast
