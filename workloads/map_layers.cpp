// Layer types that make maps of other sizes: enlarged, cut, seen through regions of interest.

#include <stdexcept>
#include <string>
#include <vector>

#include "workloads/layer_draft.hpp"
#include "workloads/shape_inference.hpp"

namespace epocast {
namespace {

// Of a value of a region (He et al. 2017, section 3): 4 points, each the sum of 4 neighbours by weight, then their
// mean.
constexpr double kRegionWork = 4 * 4 * 2 + 1;

/// Height, width and depth as given, by default those of the input.
Shape given_size(const LayerDraft& draft) {
  Shape size = draft.spec.layer.input;
  const LayerAttributes& given = draft.attributes;
  size.height = given.integer("height", size.height, kLengthRange);
  size.width = given.integer("width", size.width, kLengthRange);
  size.depth = given.integer("depth", size.depth, kLengthRange);
  return size;
}

void require_size(const LayerDraft& draft, const char* what) {
  for (const char* key : {"height", "width", "depth"})
    if (draft.attributes.has(key)) return;
  throw std::invalid_argument(std::string(what) + " needs a size: height, width or depth");
}

}  // namespace

/// Squares of factor x factor pixels become groups of channels; of sequences `factor: [1, N]`.
void read_pixel_unshuffle(LayerDraft& draft) {
  Layer& layer = draft.rearranged("pixel_unshuffle");
  const std::vector<std::int64_t> factor = draft.attributes.extents("factor", 2, kKernelRange);
  if (layer.input.height % factor[0] != 0 || layer.input.width % factor[1] != 0)
    throw std::invalid_argument("pixel_unshuffle by " + std::to_string(factor[0]) + " x " + std::to_string(factor[1]) +
                                " does not divide " + to_string(layer.input) + " (channels x height x width)");
  layer.output.height = layer.input.height / factor[0];
  layer.output.width = layer.input.width / factor[1];
  layer.output.channels = checked_product(layer.input.channels, factor[0] * factor[1]);
}

/// Each value of the output is that of the nearest position: maps so many times larger, symbols for as long as they are
/// spoken.
void read_resize(LayerDraft& draft) {
  Layer& layer = draft.rearranged("resize");
  if (!draft.attributes.has("factor")) {
    require_size(draft, "resize, without a factor,");
    layer.output = given_size(draft);
    return;
  }
  const std::vector<std::int64_t> factor = draft.attributes.extents("factor", 2, kKernelRange);
  layer.output.height = checked_product(layer.input.height, factor[0]);
  layer.output.width = checked_product(layer.input.width, factor[1]);
}

/// The middle of a map (Ronneberger et al. 2015).
void read_crop(LayerDraft& draft) {
  Layer& layer = draft.rearranged("crop");
  require_size(draft, "crop");
  layer.output = given_size(draft);
  const Shape& in = layer.input;
  if (layer.output.height > in.height || layer.output.width > in.width || layer.output.depth > in.depth)
    throw std::invalid_argument("cannot cut " + to_string(layer.output) + " out of " + to_string(in) +
                                " (channels x height x width)");
}

/// Regions of interest of equal size, interpolated in the maps of a pyramid (RoIAlign, He et al. 2017): one after the
/// other along the depth.
void read_regions(LayerDraft& draft) {
  Layer& layer = draft.rearranged("regions");
  for (const Shape& map : draft.inputs)
    if (map.channels != layer.input.channels || map.depth != 1)
      throw std::invalid_argument("regions reads maps of equally many channels and no depth, not " + to_string(map));
  const std::int64_t size = draft.attributes.integer("size", kKernelRange);
  layer.output = {.channels = layer.input.channels,
                  .height = size,
                  .width = size,
                  .depth = draft.attributes.integer("count", kLengthRange)};
  draft.work_per_output = kRegionWork;
}

/// More of what a sample consists of, such as the recording beside a text. It is there when the step begins.
void read_data(LayerDraft& draft) {
  Layer& layer = draft.layer();
  layer.kind = LayerKind::flatten;
  layer.variant = "data";
  layer.output = {.channels = draft.attributes.integer("channels", kChannelRange)};
  layer.output.height = draft.attributes.integer("height", 1, kLengthRange);
  layer.output.width = draft.attributes.integer("width", 1, kLengthRange);
  layer.output.depth = draft.attributes.integer("depth", 1, kLengthRange);
}

}  // namespace epocast
