#pragma once
// Filters divided over a team: each device has an equal share of the output channels of every layer with weights.
//
// A layer reads all channels of its input, so that a divided input is gathered before it, and its gradient, to which
// every device adds a part, is summed and scattered behind it: Eserol 2019, chapter 4, with the even shares of the
// thesis' uniform partition; Krizhevsky 2014, "One weird trick", for fully connected layers. What works channel by
// channel goes on with what each device has. With a partition of each layer's own, the body is FilterParallel
// (strategies/filter_parallel.hpp).
//
// Limits: channels that do not divide are rounded up, as if padded; layers that mix channels without weights (local
// response normalisation, softmax) are computed on all devices.

#include "strategies/bodies/body.hpp"

namespace epocast {

class FilterBody final : public Body {
 public:
  explicit FilterBody(const ConfigNode& /*options*/) {}
  std::string axis() const override { return "tensor"; }
  DividedModel divide(DividedModel model, int parts, const ConfigNode& place) const override;
  static EntryInfo info();
};

}  // namespace epocast
