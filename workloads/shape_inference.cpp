#include "workloads/shape_inference.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace epocast {
namespace {

std::int64_t round_up_division(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Size of a transposed window's output along one side.
std::int64_t spread(std::int64_t size, std::int64_t extent, const Window& window, std::int64_t& padding) {
  if (window.same) {
    padding = std::max<std::int64_t>(extent - window.stride, 0) / 2;
    return checked_product(size, window.stride);
  }
  const std::int64_t outputs = checked_product(size - 1, window.stride) - 2 * padding + extent + window.output_padding;
  if (outputs < 1)
    throw std::invalid_argument("padding " + std::to_string(padding) + " on each side leaves nothing of the output");
  return outputs;
}

/// Positions of the window along one side. `padding` is that of one side and is set for `same` windows.
std::int64_t positions(std::int64_t size, std::int64_t kernel, const Window& window, std::int64_t& padding) {
  const std::int64_t extent = window.dilation * (kernel - 1) + 1;
  if (window.transposed) return spread(size, extent, window, padding);
  if (window.same) {
    const std::int64_t outputs = round_up_division(size, window.stride);
    padding = std::max<std::int64_t>((outputs - 1) * window.stride + extent - size, 0) / 2;
    return outputs;
  }
  const std::int64_t room = size + 2 * padding - extent;
  if (room < 0)
    throw std::invalid_argument("kernel " + std::to_string(kernel) +
                                (window.dilation > 1 ? " with dilation " + std::to_string(window.dilation) : "") +
                                " is larger than the input of " + std::to_string(size) + " with padding " +
                                std::to_string(padding) +
                                " on each side; make the kernel or an earlier stride smaller, or pad more");
  if (!window.ceil_mode) return room / window.stride + 1;
  std::int64_t outputs = round_up_division(room, window.stride) + 1;
  // The last window must start inside the input or the padding before it, or it would see nothing (Caffe, PyTorch).
  if ((outputs - 1) * window.stride >= size + padding) --outputs;
  return outputs;
}

}  // namespace

std::int64_t checked_product(std::int64_t a, std::int64_t b) {
  if (a != 0 && b > kMaxCount / a) throw std::invalid_argument("the layer has more than 2^53 values; make it smaller");
  return a * b;
}

std::int64_t checked_values(const Shape& shape) {
  return checked_product(shape.channels, checked_product(shape.height, checked_product(shape.width, shape.depth)));
}

Shape window_output(const Shape& input, Window& window) {
  Shape output = input;
  output.height = positions(input.height, window.kernel_height, window, window.padding_height);
  output.width = positions(input.width, window.kernel_width, window, window.padding_width);
  if (window.kernel_depth > 0) output.depth = positions(input.depth, window.kernel_depth, window, window.padding_depth);
  return output;
}

Shape add_output(const std::vector<Shape>& inputs) {
  for (const Shape& shape : inputs)
    if (shape != inputs.front())
      throw std::invalid_argument("cannot add " + to_string(inputs.front()) + " and " + to_string(shape) +
                                  " (channels x height x width); the inputs must have equal shapes");
  return inputs.front();
}

Shape concat_output(const std::vector<Shape>& inputs) {
  Shape output = inputs.front();
  output.channels = 0;
  for (const Shape& shape : inputs) {
    if (shape.height != output.height || shape.width != output.width || shape.depth != output.depth)
      throw std::invalid_argument("cannot concatenate " + to_string(inputs.front()) + " and " + to_string(shape) +
                                  " (channels x height x width); heights and widths must be equal");
    output.channels += shape.channels;
    if (output.channels > kMaxCount) throw std::invalid_argument("the concatenation has more than 2^53 channels");
  }
  return output;
}

}  // namespace epocast
