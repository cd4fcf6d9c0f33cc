#include "strategies/layerwise/transfer_bytes.hpp"

#include <algorithm>

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
  for (const Sides& sides : to_) {
    Ids profile{};
    const auto places = static_cast<double>(sides.places.size());
    for (std::size_t side = 0; side < kSides; ++side) {
      std::vector<std::size_t> needed_by(needs_[side].size(), 0);  // places, by range
      for (const Ids& ids : sides.places) ++needed_by[ids[side]];
      const auto [known, is_new] = profile_ids_[side].try_emplace(
          [&] {
            std::vector<std::size_t> key = needed_by;
            key.push_back(sides.places.size());
            return key;
          }(),
          sums_[side].size());
      profile[side] = known->second;
      if (!is_new) continue;
      std::vector<double> sums, counts;
      for (std::size_t held = 0; held < holds_[side].size(); ++held) {
        double sum = 0, count = 0;
        for (std::size_t needed = 0; needed < needed_by.size(); ++needed) {
          const double share = static_cast<double>(needed_by[needed]) / places;
          sum += share * overlap(side, held, needed);
          count += overlap(side, held, needed) > 0 ? share : 0;
        }
        sums.push_back(sum);
        counts.push_back(count);
      }
      sums_[side].push_back(std::move(sums));
      counts_[side].push_back(std::move(counts));
    }
    profiles_.push_back(profile);
  }
}

TransferBytes TransferCounter::count(std::size_t from, std::size_t to) const {
  const Sides &source = from_[from], &target = to_[to];
  const Ids& profile = profiles_[to];
  TransferBytes out;
  // Devices of both are in rising order, but where a user has placed them; the search has not.
  const std::size_t devices = static_cast<std::size_t>(std::max(source.devices.back(), target.devices.back())) + 1;
  constexpr std::size_t kMost = 512;
  double in_small[kMost], out_small[kMost];
  std::vector<double> large;
  double *in = in_small, *sent = out_small;
  if (devices > kMost) {
    large.resize(2 * devices);
    in = large.data();
    sent = in + devices;
  }
  std::fill(in, in + devices, 0.0);
  std::fill(sent, sent + devices, 0.0);
  for (std::size_t i = 0; i < source.places.size(); ++i) {
    const Ids& held = source.places[i];
    // Places are a grid, so that the mean of products is the product of means.
    double sum = static_cast<double>(target.places.size()), count = sum;
    for (std::size_t side = 0; side < kSides; ++side) {
      sum *= sums_[side][profile[side]][held[side]];
      count *= counts_[side][profile[side]][held[side]];
    }
    sent[source.devices[i]] = sum;
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
      const double own = common(source.places[i], target.places[j]);
      in[target.devices[j]] -= own;
      sent[source.devices[i]] -= own;
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
  for (std::size_t i = 0; i < source.places.size(); ++i)
    for (std::size_t j = 0; j < target.places.size(); ++j) {
      const auto node = static_cast<std::size_t>(node_of_[static_cast<std::size_t>(source.devices[i])]);
      if (source.devices[i] == target.devices[j] ||
          node != static_cast<std::size_t>(node_of_[static_cast<std::size_t>(target.devices[j])]))
        continue;
      const double inside = common(source.places[i], target.places[j]);
      node_in[node] -= inside;
      node_out[node] -= inside;
    }
  out.node = std::max(*std::ranges::max_element(node_in), *std::ranges::max_element(node_out));
  return out;
}

}  // namespace epocast
