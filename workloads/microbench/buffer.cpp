#include "workloads/microbench/buffer.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>

namespace epocast {
namespace {

constexpr std::size_t kHugePage = 2 << 20;

}  // namespace

void Buffer::Free::operator()(char* data) const { std::free(data); }

void Buffer::allocate() {
  if (data_) return;
  const std::size_t alignment = bytes_ >= kHugePage ? kHugePage : 4096;
  const std::size_t rounded = std::max<std::size_t>(1, (bytes_ + alignment - 1) / alignment) * alignment;
  data_.reset(static_cast<char*>(std::aligned_alloc(alignment, rounded)));
  if (!data_) throw std::bad_alloc();
  // As frameworks' allocators do; the kernel ignores it where it has no huge pages.
  if (rounded >= kHugePage) ::madvise(data_.get(), rounded, MADV_HUGEPAGE);
  std::fill_n(data_.get(), rounded, char{0});
  if (fill_) fill_(*this);
  for (dnnl::memory& view : views_) view.set_data_handle(data_.get());
}

void Buffer::release() {
  for (dnnl::memory& view : views_) view.set_data_handle(nullptr);
  data_.reset();
}

dnnl::memory Buffer::view(const dnnl::memory::desc& desc, const dnnl::engine& engine) {
  require(desc.get_size());
  views_.emplace_back(desc, engine, data_ ? static_cast<void*>(data_.get()) : DNNL_MEMORY_NONE);
  return views_.back();
}

namespace {

/// Numerical Recipes' quick generator: enough for data that only has to be harmless.
class Random {
 public:
  std::uint32_t next() { return state_ = state_ * 1664525U + 1013904223U; }
  float uniform() { return static_cast<float>(next() >> 8) / 8388608.0F - 1.0F; }  // [-1, 1)

 private:
  std::uint32_t state_ = 20220701;
};

}  // namespace

Buffer::Fill uniform_values(float scale) {
  return [scale](Buffer& buffer) {
    Random random;
    std::generate_n(buffer.floats(), buffer.values(), [&] { return scale * random.uniform(); });
  };
}

Buffer::Fill constant_values(float value) {
  return [value](Buffer& buffer) { std::fill_n(buffer.floats(), buffer.values(), value); };
}

Buffer::Fill random_indices(std::int32_t below) {
  return [below](Buffer& buffer) {
    Random random;
    std::generate_n(buffer.integers(), buffer.values(),
                    [&] { return static_cast<std::int32_t>(random.next() >> 4) % below; });
  };
}

std::string to_string(const dnnl::memory::desc& desc) {
  const dnnl_memory_desc_t& d = desc.data;
  std::string out;
  for (int i = 0; i < d.ndims; ++i) out += (i == 0 ? "" : "x") + std::to_string(d.dims[i]);
  if (d.format_kind != dnnl_blocked) return out + " kind" + std::to_string(d.format_kind);
  out += " strides";
  for (int i = 0; i < d.ndims; ++i) out += " " + std::to_string(d.format_desc.blocking.strides[i]);
  for (int i = 0; i < d.format_desc.blocking.inner_nblks; ++i)
    out += " " + std::to_string(d.format_desc.blocking.inner_blks[i]) +
           static_cast<char>('a' + d.format_desc.blocking.inner_idxs[i]);
  return out;
}

}  // namespace epocast
