#include "strategies/partitioners/communication_volume.hpp"

#include <algorithm>

namespace epocast {
namespace {

LayerShares shares(const FilterNetwork& network, const Partition& partition, const std::vector<int>& offset) {
  const auto part_of = [&](int vertex) { return partition.part_of[static_cast<std::size_t>(vertex)]; };
  LayerShares out;
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    std::vector<double>& share = out.share.emplace_back(static_cast<std::size_t>(partition.parts));
    for (int v = offset[l]; v < offset[l + 1]; ++v)
      share[static_cast<std::size_t>(part_of(v))] += 1.0 / (offset[l + 1] - offset[l]);
    const std::vector<int> readers = network.readers(static_cast<int>(l));
    const bool split = std::count(share.begin(), share.end(), 0) + 1 < partition.parts;
    out.root.push_back(split && !readers.empty() ? part_of(offset[static_cast<std::size_t>(readers.front())])
                                                 : part_of(offset[l]));
  }
  return out;
}

}  // namespace

LayerShares coarse_shares(const FilterNetwork& network, const Partition& partition) {
  return shares(network, partition, coarse_offsets(network));
}

LayerShares fine_shares(const FilterNetwork& network, const Partition& partition) {
  return shares(network, partition, fine_offsets(network));
}

LayerShares even_shares(const FilterNetwork& network, int parts) {
  const std::vector<double> even(static_cast<std::size_t>(parts), 1.0 / parts);
  LayerShares out{{}, std::vector<int>(network.layers.size(), 0)};
  for (const FilterLayer& layer : network.layers) {
    out.share.push_back(even);
    if (layer.work > 0) continue;
    std::fill(out.share.back().begin(), out.share.back().end(), 0);  // an input is nobody's work: it is at the root
    out.share.back().front() = 1;
  }
  return out;
}

GatherBroadcast gather_broadcast(const FilterNetwork& network, const LayerShares& shares) {
  GatherBroadcast out;
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const auto root = static_cast<std::size_t>(shares.root[l]);
    std::vector<bool> receives(shares.share[l].size());
    for (const int reader : network.readers(static_cast<int>(l)))
      for (std::size_t part = 0; part < receives.size(); ++part)
        if (shares.share[static_cast<std::size_t>(reader)][part] > 0) receives[part] = true;
    receives[root] = false;
    const double broadcast =
        network.layers[l].sent * static_cast<double>(std::count(receives.begin(), receives.end(), true));
    out.largest_broadcast = std::max(out.largest_broadcast, broadcast);
    out.volume += broadcast + network.layers[l].raw * std::max(0.0, 1 - shares.share[l][root]);
  }
  return out;
}

Bytes message_bytes(double volume_in_values) { return Bytes(2 * 4 * volume_in_values); }

}  // namespace epocast
