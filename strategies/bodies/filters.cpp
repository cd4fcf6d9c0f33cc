#include "strategies/bodies/filters.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/bodies/layer_part.hpp"

namespace epocast {
namespace {

class FilterDivision {
 public:
  FilterDivision(DividedModel model, int parts)
      : divided_(std::move(model)),
        whole_(*divided_.part),
        part_(std::make_shared<Model>(whole_)),
        parts_(parts),
        by_channels_(whole_.layers.size(), false),
        gathered_(whole_.layers.size(), false),
        summed_(whole_.layers.size(), false) {}

  DividedModel divide(const ConfigNode& place) {
    bool any = false;
    for (std::size_t l = 0; l < whole_.layers.size(); ++l) {
      if (has_filters(whole_.layers[l])) {
        any = true;
        divide_filters(l);
      } else if (goes_by_channel(whole_.layers[l]) && all_divided(whole_.layers[l])) {
        share_channels(l);
      } else {
        gather_inputs(l);
      }
      divided_.shared[l] = !by_channels_[l];
    }
    if (!any) throw place.error(fmt::format("{} has no filters to divide; leave the axis out", whole_.name));
    divided_.part = std::move(part_);
    return std::move(divided_);
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  std::int64_t share(std::int64_t n) const { return largest_share(n, parts_); }

  static bool is_grouped(const Layer& layer) { return layer.kind == LayerKind::convolution && layer.groups > 1; }
  static bool has_filters(const Layer& layer) {
    return (layer.kind == LayerKind::convolution && !is_grouped(layer)) || layer.kind == LayerKind::fully_connected ||
           (layer.kind == LayerKind::linear && layer.variant != "experts");
  }
  /// Groups of channels are taken to be whole on one device.
  static bool goes_by_channel(const Layer& layer) {
    switch (layer.kind) {
      case LayerKind::pooling:
      case LayerKind::batch_norm:
      case LayerKind::activation:
      case LayerKind::add:
      case LayerKind::multiply:
      case LayerKind::concat:
      case LayerKind::dropout:
      case LayerKind::flatten: return true;
      default: return is_grouped(layer);
    }
  }
  bool all_divided(const Layer& layer) const {
    return !layer.inputs.empty() &&
           std::ranges::all_of(layer.inputs, [&](int input) { return by_channels_[at(input)]; });
  }

  /// Before the first layer that reads all channels, for the others too; kept as long as its own input.
  void gather_inputs(std::size_t l) {
    for (const int layer : whole_.layers[l].inputs) {
      const auto input = at(layer);
      if (!by_channels_[input] || gathered_[input]) continue;
      gathered_[input] = true;
      add(divided_.exchanges[l].before_forward, "all-gather", CollectiveOp::all_gather, input);
      if (whole_.layers[l].backward_reads_input)
        part_->layers[l].inner_values += whole_.layers[input].output.values() - part_->layers[input].output.values();
    }
  }

  void divide_filters(std::size_t l) {
    const Layer& layer = whole_.layers[l];
    const auto input = at(layer.inputs.front());
    if (layer.backward_data_flop > 0 && !summed_[input]) {
      summed_[input] = true;  // for all that read it, as the first of them is the last to go back
      const bool scatters = by_channels_[input];
      add(divided_.exchanges[l].after_backward, scatters ? "reduce-scatter" : "all-reduce",
          scatters ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce, input);
    }
    Layer& own = part_->layers[l];
    own.output.channels = share(layer.output.channels);
    divide_work(own, static_cast<double>(own.output.channels) / static_cast<double>(layer.output.channels));
    gather_inputs(l);
    by_channels_[l] = true;
  }

  void share_channels(std::size_t l) {
    Layer& own = part_->layers[l];
    own.input.channels = share(own.input.channels);
    own.output.channels = share(own.output.channels);
    own.input_values = share(own.input_values);
    own.groups = is_grouped(own) ? static_cast<int>(share(own.groups)) : own.groups;
    divide_work(own, 1.0 / parts_);
    by_channels_[l] = true;
  }

  void divide_work(Layer& own, double factor) const {
    for (ParameterTensor& tensor : own.parameters) tensor.values = share(tensor.values);
    own.inner_values = share(own.inner_values);
    own.mask_values = share(own.mask_values);
    scale_work(own, factor);
  }

  void add(std::vector<SampleExchange>& to, const char* name, CollectiveOp op, std::size_t tensor) const {
    to.push_back({name, op, static_cast<double>(whole_.layers[tensor].output.values())});
  }

  DividedModel divided_;
  const Model whole_;
  std::shared_ptr<Model> part_;
  int parts_;
  std::vector<bool> by_channels_;  ///< by layer: each device has some channels of its output
  std::vector<bool> gathered_;     ///< by layer: all channels of its output are there already
  std::vector<bool> summed_;       ///< by layer: its output's gradient is summed already
};

}  // namespace

EntryInfo FilterBody::info() {
  return {"filters",
          "output channels of every layer with weights divided over the axis `tensor`, evenly: inputs are gathered; or "
          "by a partition",
          {}};
}

DividedModel FilterBody::divide(DividedModel model, int parts, const ConfigNode& place) const {
  return FilterDivision(std::move(model), parts).divide(place);
}

}  // namespace epocast
