#include "workloads/microbench/cache_state.hpp"

#include <algorithm>
#include <cstdint>
#include <set>

namespace epocast {
namespace {

constexpr std::size_t kLine = 64;  // bytes of a cache line, of every CPU that oneDNN is fast on
// Windows that fit into the memory that stands for everything else. Caches learn: if the same window came again and
// again, a replacement policy that resists streaming (AMD's last level has one) would keep part of it, and drop what
// the kernel needs. With 1 instead of 8, layers whose weights are still cached came out twice as slow as in the step.
constexpr std::size_t kWindows = 8;

void touch(char* data, std::size_t bytes, bool written) {
  const auto lines = static_cast<std::int64_t>(bytes / kLine);
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < lines; ++i) {
    volatile char* at = data + static_cast<std::size_t>(i) * kLine;
    const char value = *at;
    if (written) *at = value;
  }
}

}  // namespace

CacheState::CacheState(const ExecutedStep& step, std::size_t cache)
    : step_(step), window_(2 * cache), elsewhere_(kWindows * window_, constant_values(0)) {
  elsewhere_.allocate();
}

std::vector<CacheState::Touch> CacheState::before(std::size_t kernel) const {
  const std::vector<Kernel>& kernels = step_.kernels();
  const std::vector<Operand>& own = kernels[kernel].operands();
  std::vector<Touch> touches;  // the last first
  std::set<const Buffer*> seen;
  std::size_t sum = 0;
  bool has_twin = false;
  for (std::size_t back = 1; back <= kernels.size() && sum < window_; ++back) {
    const Kernel& earlier = kernels[(kernel + kernels.size() - back) % kernels.size()];
    const std::vector<Operand>& operands = earlier.operands();
    if (!has_twin && back < kernels.size() && earlier.key() == kernels[kernel].key()) {
      has_twin = true;
      touches.push_back({nullptr, 0, false, &earlier});
      for (const Operand& operand : operands)
        if (seen.insert(operand.buffer).second) touches.back().bytes += operand.bytes;
      sum += touches.back().bytes;
      continue;
    }
    for (auto operand = operands.rbegin(); operand != operands.rend() && sum < window_; ++operand) {
      if (!seen.insert(operand->buffer).second) continue;
      const bool is_own = std::ranges::find(own, operand->buffer, &Operand::buffer) != own.end();
      touches.push_back({is_own ? operand->buffer : nullptr, std::min(operand->bytes, window_), operand->written});
      sum += operand->bytes;
    }
  }
  std::ranges::reverse(touches);
  return touches;
}

void CacheState::allocate(std::size_t kernel) const {
  step_.kernels()[kernel].allocate();
  for (const Touch& t : before(kernel))
    if (t.run != nullptr) t.run->allocate();
}

void CacheState::prepare(std::size_t kernel, dnnl::stream& stream) {
  for (const Touch& t : before(kernel)) {
    if (t.run != nullptr) {
      t.run->run(stream);
      continue;
    }
    if (t.buffer != nullptr) {
      // Of something larger than the caches the end is what may still be there.
      touch(t.buffer->data() + (t.buffer->bytes() - t.bytes), t.bytes, t.written);
      continue;
    }
    for (std::size_t left = t.bytes; left >= kLine;) {
      if (at_ + kLine > elsewhere_.bytes()) at_ = 0;
      const std::size_t part = std::min(left, elsewhere_.bytes() - at_);
      touch(elsewhere_.data() + at_, part, t.written);
      at_ += part;
      left -= part;
    }
  }
}

std::string CacheState::history(std::size_t kernel) const {
  std::string out;
  const std::vector<Touch> touches = before(kernel);
  for (const Operand& operand : step_.kernels()[kernel].operands()) {
    std::size_t since = 0;
    bool found = false;
    for (auto t = touches.rbegin(); t != touches.rend() && !found; ++t) {
      const auto touches_it = [&](const Operand& other) { return other.buffer == operand.buffer; };
      found = t->buffer == operand.buffer || (t->run != nullptr && std::ranges::any_of(t->run->operands(), touches_it));
      if (!found) since += t->bytes;
    }
    // Factors of 4 from a quarter of a megabyte: about the sizes of caches one level apart.
    int size_class = 0;
    for (std::size_t limit = 1 << 18; limit < since && size_class < 9; limit *= 4) ++size_class;
    out += found ? static_cast<char>('0' + size_class) : 'x';
  }
  return out;
}

}  // namespace epocast
