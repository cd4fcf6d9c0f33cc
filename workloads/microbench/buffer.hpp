#pragma once
// Memory that kernels read and write.

#include <cstddef>
#include <functional>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

namespace epocast {

/// A block of memory that exists only while somebody needs it, so that a network need not fit into memory for its
/// kernels to be timed one by one. All views of it are told where it is.
class Buffer {
 public:
  /// Sets the first contents, the same in every run.
  using Fill = std::function<void(Buffer&)>;

  Buffer(std::size_t bytes, Fill fill) : bytes_(bytes), fill_(std::move(fill)) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  /// Gets memory, written once so that no page fault remains, if it has none yet.
  void allocate();
  /// Gives the memory back; contents are lost.
  void release();

  std::size_t bytes() const { return bytes_; }
  void require(std::size_t bytes) { bytes_ = std::max(bytes_, bytes); }  ///< REQUIRES no memory yet
  char* data() { return data_.get(); }
  float* floats() { return reinterpret_cast<float*>(data_.get()); }
  std::int32_t* integers() { return reinterpret_cast<std::int32_t*>(data_.get()); }
  std::size_t values() const { return bytes_ / sizeof(float); }

  /// The buffer as oneDNN sees it.
  dnnl::memory view(const dnnl::memory::desc& desc, const dnnl::engine& engine);

 private:
  struct Free {
    void operator()(char* data) const;
  };
  std::size_t bytes_;
  Fill fill_;
  std::unique_ptr<char, Free> data_;
  std::vector<dnnl::memory> views_;
};

/// Values from -scale to scale, uniform; the seed is the same for every buffer and run.
Buffer::Fill uniform_values(float scale);
Buffer::Fill constant_values(float value);
/// Whole numbers from 0 to below - 1.
Buffer::Fill random_indices(std::int32_t below);

/// A buffer with the meaning of its bytes.
struct KernelTensor {
  Buffer* buffer = nullptr;
  dnnl::memory::desc desc;
};

/// "8x64x56x56 aBcd16b"-like text that tells descriptors with different layouts apart.
std::string to_string(const dnnl::memory::desc& desc);

}  // namespace epocast
