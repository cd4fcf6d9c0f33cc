#include "strategies/filter_parallel/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace epocast {
namespace {

std::size_t find_layer(const WorkloadTrace& trace, const std::string& name, const ConfigNode& where) {
  std::vector<std::string> names;
  for (const LayerTrace& layer : trace.layers) names.push_back(layer.name);
  const auto found = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  if (found == names.size()) {
    const std::string nearest = nearest_name(name, names);
    throw where.error(fmt::format("{} has no layer '{}'{}", trace.model, name,
                                  nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest)));
  }
  return found;
}

std::vector<double> read_shares(const ConfigNode& list, int devices) {
  const std::vector<ConfigNode> items = list.items();
  if (items.size() != static_cast<std::size_t>(devices))
    throw list.error(fmt::format("{} shares for {} workers; give each worker one, 0 if it has none of the layer",
                                 items.size(), devices));
  std::vector<double> shares;
  for (const ConfigNode& item : items) shares.push_back(item.as_double({0, 1e12}));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (sum <= 0) throw list.error("no worker has a share of this layer");
  for (double& share : shares) share /= sum;
  return shares;
}

/// The network with nodes made one where the only way out of one is the only way into the other, on the same device.
SpreadNetwork joined(const SpreadNetwork& network) {
  const std::size_t count = network.nodes.size();
  std::vector<int> out(count, 0), in(count, 0);
  for (const FilterLink& link : network.links) {
    out[link.from] += static_cast<int>(link.to.size());
    for (const std::size_t to : link.to) ++in[to];
  }
  std::vector<std::size_t> joins(count, count);  // the node that it continues
  for (const FilterLink& link : network.links) {
    const std::size_t to = link.to.front();
    const bool local = network.nodes[link.from].device == network.nodes[to].device;
    if (local && out[link.from] == 1 && in[to] == 1 && !network.nodes[link.from].gathers && !network.nodes[to].gathers)
      joins[to] = link.from;
  }
  SpreadNetwork made;
  std::vector<std::size_t> place(count);  // in `made`
  for (std::size_t n = 0; n < count; ++n) {
    if (joins[n] == count) {
      place[n] = made.nodes.size();
      made.nodes.push_back(network.nodes[n]);
    } else {
      place[n] = place[joins[n]];
      made.nodes[place[n]].layers.push_back(network.nodes[n].layers.front());
    }
  }
  for (const FilterLink& link : network.links) {
    if (joins[link.to.front()] == link.from) continue;
    made.links.push_back({place[link.from], {}, link.bytes});
    for (const std::size_t to : link.to) made.links.back().to.push_back(place[to]);
  }
  return made;
}

}  // namespace

bool mixes_channels(LayerKind kind) {
  return multiplies_weights(kind) || kind == LayerKind::softmax || kind == LayerKind::layer_norm;
}

FilterParts::FilterParts(const WorkloadTrace& trace, int devices, FilterExchange exchange, const ConfigNode* parts)
    : devices_(devices), shares_(trace.layers.size()) {
  if (parts != nullptr)
    for (const std::string& name : parts->keys()) {
      const ConfigNode list = parts->at(name);
      shares_[find_layer(trace, name, list)] = read_shares(list, devices);
    }
  for (std::size_t l = 0; l < trace.layers.size(); ++l) {
    if (!shares_[l].empty()) continue;
    const LayerTrace& layer = trace.layers[l];
    if (multiplies_weights(layer.kind) || layer.inputs.empty()) {
      if (parts != nullptr && !layer.inputs.empty())
        throw parts->error(
            fmt::format("nothing is said of layer '{}'; every layer that multiplies weights needs a "
                        "list of shares",
                        layer.name));
      shares_[l].assign(static_cast<std::size_t>(devices), 1.0 / devices);
      continue;
    }
    shares_[l] = shares_[static_cast<std::size_t>(layer.inputs.front())];
    if (exchange == FilterExchange::root && layer.kind == LayerKind::pooling) {
      const int all = root(static_cast<std::size_t>(layer.inputs.front()));
      shares_[l].assign(static_cast<std::size_t>(devices), 0);
      shares_[l][static_cast<std::size_t>(all)] = 1;
    }
  }
}

FilterParts::FilterParts(const WorkloadTrace& trace, std::vector<double> shares)
    : devices_(static_cast<int>(shares.size())) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  shares_.assign(trace.layers.size(), shares);
}

std::vector<int> FilterParts::holders(std::size_t layer) const {
  std::vector<int> out;
  for (int device = 0; device < devices_; ++device)
    if (share(layer, device) > 0) out.push_back(device);
  return out;
}

double FilterParts::begin(std::size_t layer, int device) const {
  return std::accumulate(shares_[layer].begin(), shares_[layer].begin() + device, 0.0);
}

double FilterParts::overlap(std::size_t source, int from, std::size_t layer, int to) const {
  const double first = std::max(begin(source, from), begin(layer, to));
  const double last = std::min(begin(source, from + 1), begin(layer, to + 1));
  return last - first > 1e-12 ? last - first : 0;
}

Bytes SpreadNetwork::volume() const {
  Bytes sum;
  for (const FilterLink& link : links) sum += link.bytes;
  return sum;
}

SpreadNetwork spread(const WorkloadTrace& trace, const FilterParts& parts, FilterExchange exchange) {
  SpreadNetwork network;                                       // first, a node for every layer and device
  std::map<std::pair<std::size_t, int>, std::size_t> node_of;  // of a layer on a device
  std::map<std::size_t, std::size_t> gathered;                 // of a layer
  std::map<std::pair<std::size_t, int>, FilterLink> links;     // from a node to a device
  const auto link = [&](std::size_t from, std::size_t to, Bytes bytes) {
    const int target = network.nodes[to].device;
    FilterLink& found = links[{from, target}];
    found.from = from;
    if (found.to.empty() || found.to.back() != to) found.to.push_back(to);
    if (network.nodes[from].device != target) found.bytes = std::max(found.bytes, bytes);
  };

  for (std::size_t l = 0; l < trace.layers.size(); ++l) {
    const LayerTrace& layer = trace.layers[l];
    if (layer.kind == LayerKind::input) continue;
    for (const int device : parts.holders(l)) {
      node_of[{l, device}] = network.nodes.size();
      network.nodes.push_back({{l}, device, false});
    }
    for (const int input : layer.inputs) {
      const auto j = static_cast<std::size_t>(input);
      if (trace.layers[j].kind == LayerKind::input) continue;
      const Bytes output = trace.layers[j].output;
      const std::vector<int> makers = parts.holders(j);
      const bool gathers = exchange == FilterExchange::root && mixes_channels(layer.kind) && makers.size() > 1;
      if (gathers && !gathered.contains(j)) {
        gathered[j] = network.nodes.size();
        network.nodes.push_back({{j}, parts.root(j), true});
        for (const int maker : makers) link(node_of.at({j, maker}), gathered[j], output * parts.share(j, maker));
      }
      for (const int device : parts.holders(l)) {
        const std::size_t to = node_of.at({l, device});
        if (gathers) {
          link(gathered[j], to, output);
          continue;
        }
        for (const int maker : makers) {
          const double needed = mixes_channels(layer.kind) ? parts.share(j, maker) : parts.overlap(j, maker, l, device);
          if (needed > 0) link(node_of.at({j, maker}), to, output * needed);
        }
      }
    }
  }
  for (auto& [key, found] : links) network.links.push_back(std::move(found));
  return joined(network);
}

SpreadNetwork chain_of_parts(const WorkloadTrace& trace, int devices, Bytes volume) {
  SpreadNetwork network;
  std::vector<std::size_t> layers;
  for (std::size_t l = 0; l < trace.layers.size(); ++l)
    if (trace.layers[l].kind != LayerKind::input) layers.push_back(l);
  for (int device = 0; device < devices; ++device) {
    network.nodes.push_back({layers, device, false});
    if (device > 0)
      network.links.push_back(
          {network.nodes.size() - 2, {network.nodes.size() - 1}, volume / static_cast<double>(devices - 1)});
  }
  return network;
}

}  // namespace epocast
