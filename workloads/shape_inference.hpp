#pragma once
// Output sizes of layers. Every function throws std::invalid_argument with the problem in words; the reader adds the
// place.

#include <cstdint>
#include <vector>

#include "sim/model.hpp"

namespace epocast {

/// No count of a layer may exceed this: the largest integer that a double holds exactly.
inline constexpr std::int64_t kMaxCount = std::int64_t{1} << 53;

/// a * b. Throws if the product exceeds kMaxCount. REQUIRES a, b >= 0.
std::int64_t checked_product(std::int64_t a, std::int64_t b);

/// Values of a shape. Throws if there are more than kMaxCount.
std::int64_t checked_values(const Shape& shape);

/// A sliding window, as in convolution, transposed convolution and pooling.
struct Window {
  std::int64_t kernel_height = 1;
  std::int64_t kernel_width = 1;
  std::int64_t kernel_depth = 0;  ///< 0: the window covers one slice, and every slice is done
  std::int64_t stride = 1;
  std::int64_t dilation = 1;        ///< distance of the kernel's taps
  std::int64_t padding_height = 0;  ///< on each side; ignored with `same`
  std::int64_t padding_width = 0;
  std::int64_t padding_depth = 0;
  bool same = false;                ///< pad so that output = ceil(input / stride)
  bool ceil_mode = false;           ///< round the output size up, as Caffe's pooling does
  bool transposed = false;          ///< inputs are spread out: output and input change places
  std::int64_t output_padding = 0;  ///< of transposed ones: rows and columns added behind the output
};

/// Height, width and depth of what the window makes of `input`; channels are copied. Along one side a kernel of k taps
/// covers e = dilation (k - 1) + 1 values. Output: floor((in + 2 padding - e) / stride) + 1, transposed
/// (in - 1) stride - 2 padding + e + output_padding (Dumoulin and Visin 2016, "A guide to convolution arithmetic for
/// deep learning", relationships 6 and 14). Replaces the padding of `same` windows, whose output is ceil(in / stride),
/// transposed in x stride, by what precedes the input (the smaller half). Throws if nothing is left.
Shape window_output(const Shape& input, Window& window);

/// The shape that element-wise addition gives: all inputs must be equal.
Shape add_output(const std::vector<Shape>& inputs);

/// The shape of a concatenation along channels: all else must be equal.
Shape concat_output(const std::vector<Shape>& inputs);

}  // namespace epocast
