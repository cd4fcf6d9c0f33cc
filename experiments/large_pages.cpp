#include "experiments/large_pages.hpp"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <limits>

namespace epocast {
namespace {

bool is_unlimited(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  return getrlimit(resource, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
}

std::uintptr_t heap_end() { return reinterpret_cast<std::uintptr_t>(sbrk(0)); }

}  // namespace

void use_large_pages() {
#ifdef __GLIBC__
  constexpr int kReserve = 1 << 30;  // bytes of addresses; memory only as far as it is written
  constexpr int kLater = 1 << 26;
  constexpr std::size_t kMoreThanIsFree = 1 << 22;
  if (!is_unlimited(RLIMIT_AS) || !is_unlimited(RLIMIT_DATA)) return;
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, kReserve);
  const std::uintptr_t before = heap_end();
  void* volatile block = std::malloc(kMoreThanIsFree);  // volatile: or the compiler leaves both out
  std::free(block);
  mallopt(M_TOP_PAD, kLater);
  const std::uintptr_t after = heap_end();
  if (after > before) madvise(reinterpret_cast<void*>(before), after - before, MADV_HUGEPAGE);
#endif
}

}  // namespace epocast
