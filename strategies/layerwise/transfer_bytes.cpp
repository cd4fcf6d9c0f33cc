#include "strategies/layerwise/transfer_bytes.hpp"

#include <algorithm>
#include <numeric>

namespace epocast {
namespace {

std::array<IndexRange, 4> sides_of(const Box& box) { return {box.n, box.c, box.h, box.w}; }

}  // namespace

std::size_t TransferCounter::id(std::size_t side, IndexRange range, bool needed) {
  std::vector<IndexRange>& known = needed ? needs_[side] : holds_[side];
  const auto found = std::ranges::find(known, range);
  if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
  known.push_back(range);
  return known.size() - 1;
}

TransferCounter::TransferCounter(const OperatorEdge& edge, std::span<const Division> from, std::span<const Division> to,
                                 const std::vector<int>& node_of)
    : node_of_(node_of) {
  const auto add = [&](const Division& division, const auto& box_of, bool needed) {
    Sides out;
    out.devices = division.devices();
    for (std::size_t place = 0; place < division.places(); ++place) {
      const Box box = box_of(place);
      Ids ids{};
      for (std::size_t side = 0; side < kSides; ++side) ids[side] = id(side, sides_of(box)[side], needed);
      out.places.push_back(ids);
      out.values.push_back(static_cast<double>(box.values()));
    }
    if (!node_of_.empty()) out.blocks = blocks_of(out);
    return out;
  };
  for (const Division& division : from)
    from_.push_back(add(
        division, [&](std::size_t place) { return division.held(place); }, false));
  for (const Division& division : to) {
    const OperatorInput& input = division.op().inputs[edge.input];
    Sides sides = add(
        division, [&](std::size_t place) { return division.needed(input, place); }, true);
    double sum = 0;
    for (const double values : sides.values) sum += values;
    needed_.push_back(sum);
    to_.push_back(std::move(sides));
  }
  for (std::size_t side = 0; side < kSides; ++side) {
    overlaps_[side].resize(holds_[side].size() * needs_[side].size());
    for (std::size_t h = 0; h < holds_[side].size(); ++h)
      for (std::size_t n = 0; n < needs_[side].size(); ++n)
        overlaps_[side][h * needs_[side].size() + n] =
            static_cast<double>(intersection(holds_[side][h], needs_[side][n]).size());
  }
  for (Sides& sides : to_) {
    std::vector<std::size_t> all(sides.places.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    profiles_.push_back(profile_of(sides, all));
    for (Block& block : sides.blocks)
      if (block.is_grid) block.profile = profile_of(sides, block.places);
  }
}

std::vector<TransferCounter::Block> TransferCounter::blocks_of(const Sides& sides) const {
  std::map<std::size_t, std::vector<std::size_t>> by_node;
  for (std::size_t place = 0; place < sides.places.size(); ++place)
    by_node[static_cast<std::size_t>(node_of_[static_cast<std::size_t>(sides.devices[place])])].push_back(place);
  std::vector<Block> out;
  for (auto& [node, places] : by_node) {
    // A grid has every combination of its sides' ranges as often as the product of their shares says.
    std::map<Ids, std::size_t> boxes;
    std::array<std::map<std::size_t, std::size_t>, kSides> ranges;
    for (const std::size_t place : places) {
      ++boxes[sides.places[place]];
      for (std::size_t side = 0; side < kSides; ++side) ++ranges[side][sides.places[place][side]];
    }
    const std::size_t all = places.size();
    std::size_t combinations = 1;
    for (const auto& of_side : ranges) combinations *= of_side.size();
    const bool is_grid = boxes.size() == combinations && std::ranges::all_of(boxes, [&](const auto& box) {
                           std::size_t product = 1, whole = box.second;
                           for (std::size_t side = 0; side < kSides; ++side) {
                             product *= ranges[side].at(box.first[side]);
                             if (side > 0) whole *= all;
                           }
                           return product == whole;
                         });
    out.push_back({node, std::move(places), is_grid, {}});
  }
  return out;
}

TransferCounter::Ids TransferCounter::profile_of(const Sides& sides, const std::vector<std::size_t>& places) {
  Ids profile{};
  const auto number = static_cast<double>(places.size());
  for (std::size_t side = 0; side < kSides; ++side) {
    std::vector<std::size_t> key(needs_[side].size() + 1, 0);  // places by range, and all of them
    for (const std::size_t place : places) ++key[sides.places[place][side]];
    key.back() = places.size();
    const auto [known, is_new] = profile_ids_[side].try_emplace(key, sums_[side].size());
    profile[side] = known->second;
    if (!is_new) continue;
    std::vector<double> sums, counts;
    for (std::size_t held = 0; held < holds_[side].size(); ++held) {
      double sum = 0, count = 0;
      for (std::size_t needed = 0; needed < needs_[side].size(); ++needed) {
        const double share = static_cast<double>(key[needed]) / number;
        sum += share * overlap(side, held, needed);
        count += overlap(side, held, needed) > 0 ? share : 0;
      }
      sums.push_back(sum);
      counts.push_back(count);
    }
    sums_[side].push_back(std::move(sums));
    counts_[side].push_back(std::move(counts));
  }
  return profile;
}

TransferBytes TransferCounter::count(std::size_t from, std::size_t to) const {
  const Sides &source = from_[from], &target = to_[to];
  const Ids& profile = profiles_[to];
  TransferBytes out;
  // Devices of both are in rising order, but where a user has placed them; the search has not.
  const std::size_t devices = static_cast<std::size_t>(std::max(source.devices.back(), target.devices.back())) + 1;
  constexpr std::size_t kMost = 512;
  double small[3 * kMost];
  std::vector<double> large;
  if (devices > kMost) large.resize(3 * devices);
  double *in = devices > kMost ? large.data() : small, *sent = in + devices, *own = sent + devices;
  std::fill(in, own + devices, 0.0);
  for (std::size_t i = 0; i < source.places.size(); ++i) {
    const Ids& held = source.places[i];
    // All places of a configuration are a grid, so that the mean of products is the product of means.
    auto count = static_cast<double>(target.places.size());
    for (std::size_t side = 0; side < kSides; ++side) count *= counts_[side][profile[side]][held[side]];
    sent[source.devices[i]] = common_with_grid(held, profile, target.places.size());
    out.messages = std::max(out.messages, count);
  }
  for (std::size_t j = 0; j < target.places.size(); ++j) in[target.devices[j]] = target.values[j];
  // What a device has itself is not sent.
  for (std::size_t i = 0, j = 0; i < source.places.size() && j < target.places.size();) {
    if (source.devices[i] < target.devices[j]) {
      ++i;
    } else if (target.devices[j] < source.devices[i]) {
      ++j;
    } else {
      const double both = common(source.places[i], target.places[j]);
      own[source.devices[i]] = both;
      in[target.devices[j]] -= both;
      sent[source.devices[i]] -= both;
      ++i, ++j;
    }
  }
  for (std::size_t d = 0; d < devices; ++d) {
    out.total += in[d];
    out.busiest = std::max({out.busiest, in[d], sent[d]});
  }
  if (node_of_.empty()) return out;
  std::vector<double> node_in(devices, 0), node_out(devices, 0);
  for (std::size_t d = 0; d < devices; ++d) {
    node_in[static_cast<std::size_t>(node_of_[d])] += in[d];
    node_out[static_cast<std::size_t>(node_of_[d])] += sent[d];
  }
  // What is sent inside a node; what a device has itself is not in it.
  for (auto here = source.blocks.begin(), there = target.blocks.begin();
       here != source.blocks.end() && there != target.blocks.end();) {
    if (here->node != there->node) {
      ++(here->node < there->node ? here : there);
      continue;
    }
    double inside = 0;
    for (const std::size_t i : here->places) {
      if (there->is_grid)
        inside += common_with_grid(source.places[i], there->profile, there->places.size());
      else
        for (const std::size_t j : there->places) inside += common(source.places[i], target.places[j]);
      inside -= own[source.devices[i]];
    }
    node_in[here->node] -= inside;
    node_out[here->node] -= inside;
    ++here, ++there;
  }
  out.node = std::max(*std::ranges::max_element(node_in), *std::ranges::max_element(node_out));
  return out;
}

}  // namespace epocast
