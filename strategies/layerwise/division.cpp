#include "strategies/layerwise/division.hpp"

#include <algorithm>

namespace epocast {
namespace {

/// A part of a box along the first of its dimensions that is long enough for all parts; all of it to the first part
/// where none is.
Box part_of_box(const Box& box, int parts, int index) {
  Box out = box;
  for (IndexRange Box::*along : {&Box::n, &Box::h, &Box::w, &Box::c}) {
    const IndexRange range = box.*along;
    if (range.size() < parts) continue;
    const IndexRange part = part_of(range.size(), parts, index);
    out.*along = {range.begin + part.begin, range.begin + part.end};
    return out;
  }
  return index == 0 ? box : Box{};
}

}  // namespace

Division::Division(const OperatorNetwork& network, std::size_t op, const Degrees& degrees, std::int64_t batch,
                   std::vector<int> devices)
    : network_(&network), op_(op), degrees_(degrees), devices_(std::move(devices)) {
  const LayerOperator& of = network.at(op);
  const std::int64_t group = of.output.channels / of.channel_groups;  // channels of one
  const auto places = static_cast<std::size_t>(degrees.product());
  tiles_.reserve(places);
  held_.reserve(places);
  for (std::size_t place = 0; place < places; ++place) {
    std::int64_t rest = static_cast<std::int64_t>(place);
    const auto next = [&](Dimension d) {
      const std::int64_t index = rest % degrees[d];
      rest /= degrees[d];
      return index;
    };
    const std::int64_t k = next(Dimension::k), c = next(Dimension::c), w = next(Dimension::w), h = next(Dimension::h);
    const IndexRange groups = part_of(of.channel_groups, degrees[Dimension::c], c);
    const Tile tile{{part_of(batch, degrees[Dimension::n], rest),
                     {groups.begin * group, groups.end * group},
                     part_of(of.output.height, degrees[Dimension::h], h),
                     part_of(of.output.width, degrees[Dimension::w], w)},
                    part_of(of.reduction, degrees[Dimension::k], k)};
    tiles_.push_back(tile);
    held_.push_back(degrees[Dimension::k] == 1 ? tile.output
                                               : part_of_box(tile.output, degrees[Dimension::k], static_cast<int>(k)));
  }
}

int Division::place_on(int device) const {
  const auto found = std::ranges::find(devices_, device);
  return found == devices_.end() ? -1 : static_cast<int>(found - devices_.begin());
}

std::vector<std::size_t> Division::sums_with(std::size_t place) const {
  const auto k = static_cast<std::size_t>(degrees_[Dimension::k]);
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < k; ++i) out.push_back(place / k * k + i);
  return out;
}

std::vector<ParameterShard> Division::shards() const {
  const auto c = static_cast<std::size_t>(degrees_[Dimension::c]), k = static_cast<std::size_t>(degrees_[Dimension::k]);
  std::vector<ParameterShard> out;
  for (const std::size_t l : op().layers) {
    const Layer& layer = network_->model().layers[l];
    if (layer.parameter_count() == 0) continue;
    // Of the first layer's first tensor, where there is a reduction, a place has its part; of all others, all
    // channels'.
    const bool reduces = l == op().layers.front() && op().reduction > 1 && layer.tied_to < 0;
    double of_reduction = 0, by_channel = 0;
    for (std::size_t t = 0; t < layer.parameters.size(); ++t)
      (reduces && t == 0 ? of_reduction : by_channel) += static_cast<double>(layer.parameters[t].values);
    for (std::size_t ci = 0; ci < c; ++ci) {
      ParameterShard others{l, 0, {}};
      for (std::size_t ki = 0; ki < k; ++ki) {
        ParameterShard shard{l, 0, {}};
        for (std::size_t place = ci * k + ki; place < places(); place += c * k) shard.places.push_back(place);
        const Tile tile = network_->of_layer(op_, l, tiles_[shard.places.front()]);
        const double channels = static_cast<double>(tile.output.c.size()) /
                                static_cast<double>(std::max<std::int64_t>(1, layer.output.channels));
        others.values = by_channel * channels;
        if (k == 1) {
          shard.values = of_reduction * channels + others.values;
          if (shard.values > 0) out.push_back(std::move(shard));
          continue;
        }
        others.places.insert(others.places.end(), shard.places.begin(), shard.places.end());
        shard.values =
            of_reduction * channels * static_cast<double>(tile.k.size()) / static_cast<double>(op().reduction);
        if (shard.values > 0) out.push_back(std::move(shard));
      }
      if (k > 1 && others.values > 0) {
        std::ranges::sort(others.places);
        out.push_back(std::move(others));
      }
    }
  }
  return out;
}

std::vector<Piece> pieces(const Division& from, const Division& to, std::size_t input) {
  std::vector<Piece> out;
  const OperatorInput& of = to.op().inputs[input];
  for (std::size_t j = 0; j < to.places(); ++j) {
    const Box needed = to.needed(of, j);
    for (std::size_t i = 0; i < from.places(); ++i) {
      const std::int64_t values = intersection(from.held(i), needed).values();
      if (values > 0) out.push_back({i, j, values, from.device(i) == to.device(j)});
    }
  }
  return out;
}

std::vector<Piece> sum_pieces(const Division& division) {
  std::vector<Piece> out;
  if (division.degrees()[Dimension::k] == 1) return out;
  for (std::size_t to = 0; to < division.places(); ++to)
    for (const std::size_t from : division.sums_with(to))
      if (const std::int64_t values = division.held(to).values(); values > 0)
        out.push_back({from, to, values, from == to});
  return out;
}

double sent_values(const std::vector<Piece>& pieces) {
  double out = 0;
  for (const Piece& piece : pieces)
    if (!piece.local) out += static_cast<double>(piece.values);
  return out;
}

}  // namespace epocast
