#include "strategies/layerwise/cost_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "strategies/layerwise/transfer_bytes.hpp"

namespace epocast {
namespace {

/// Bytes in and out of devices and nodes that move at the same time.
class Loads {
 public:
  Loads(const LinkRates& links) : links_(links) {}

  void add(int from, int to, double bytes) {
    if (from == to) return;
    add(device_out_, from, bytes);
    add(device_in_, to, bytes);
    if (links_.node_of.empty()) return;
    const int a = links_.node_of[static_cast<std::size_t>(from)], b = links_.node_of[static_cast<std::size_t>(to)];
    if (a == b) return;
    add(node_out_, a, bytes);
    add(node_in_, b, bytes);
  }

  double seconds() const {
    double out = 0;
    for (const auto* side : {&device_in_, &device_out_})
      for (const double bytes : *side) out = std::max(out, bytes / links_.device.value);
    for (const auto* side : {&node_in_, &node_out_})
      for (const double bytes : *side) out = std::max(out, bytes / links_.node.value);
    return out;
  }

 private:
  static void add(std::vector<double>& to, int index, double bytes) {
    if (to.size() <= static_cast<std::size_t>(index)) to.resize(static_cast<std::size_t>(index) + 1, 0);
    to[static_cast<std::size_t>(index)] += bytes;
  }
  const LinkRates& links_;
  std::vector<double> device_in_, device_out_, node_in_, node_out_;
};

double seconds_of(const TransferBytes& values, double value_bytes, const LinkRates& links) {
  double out = values.busiest * value_bytes / links.device.value;
  if (!links.node_of.empty()) out = std::max(out, values.node * value_bytes / links.node.value);
  return out + (values.total > 0 ? values.messages * links.latency.value : 0);
}

/// What an edge's table depends on, apart from the batch.
std::string signature(const OperatorNetwork& network, const OperatorEdge& edge) {
  const LayerOperator &from = network.at(edge.from), &to = network.at(edge.to);
  const Layer& first = network.model().layers[to.layers.front()];
  return fmt::format("{} {} {} {} | {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", to_string(from.output),
                     from.reduction, from.channel_groups, fmt::join(from.limits, ","), to_string(first.kind),
                     first.variant, to_string(first.output), to_string(to.output), first.kernel_height,
                     first.kernel_width, first.stride, first.dilation, first.padding_height, first.padding_width,
                     first.groups, first.neighbours, to.reduction, to.channel_groups, fmt::join(to.limits, ","),
                     to.inputs[edge.input].offset, sends_back(network, edge));
}

/// The tile that takes longest: the largest, and of several that with the most to read.
std::size_t largest(const Division& division) {
  std::size_t best = 0;
  std::pair<std::int64_t, std::int64_t> most{-1, -1};
  for (std::size_t p = 0; p < division.places(); ++p) {
    std::int64_t read = 0;
    for (const OperatorInput& input : division.op().inputs) read += division.needed(input, p).values();
    const std::pair now{division.tile(p).output.values(), read};
    if (now <= most) continue;
    most = now;
    best = p;
  }
  return best;
}

std::vector<Degrees> configurations_of(const OperatorNetwork& network, std::size_t op, std::int64_t batch,
                                       std::size_t workers, const std::vector<Dimension>& dimensions) {
  DimensionLimits limits = network.limits(op, batch);
  for (const Dimension d : kAllDimensions)
    if (std::ranges::find(dimensions, d) == dimensions.end()) limits[static_cast<std::size_t>(d)] = 1;
  return all_degrees(static_cast<std::int64_t>(workers), limits);
}

std::vector<Division> divisions_of(const OperatorNetwork& network, std::size_t op, const std::vector<Degrees>& all,
                                   std::int64_t batch, std::size_t workers, PlaceRule places) {
  std::vector<Division> out;
  out.reserve(all.size());
  for (const Degrees& degrees : all)
    out.emplace_back(network, op, degrees, batch, devices_of(degrees.product(), workers, places));
  return out;
}

CostTable transfer_table(const OperatorNetwork& network, const OperatorEdge& edge, std::span<const Division> from,
                         std::span<const Division> to, double value_bytes, const CostSettings& settings) {
  const TransferCounter counter(edge, from, to, settings.links.node_of);
  const double directions = sends_back(network, edge) ? 2 : 1;
  CostTable out(from.size(), to.size());
  for (std::size_t u = 0; u < from.size(); ++u)
    for (std::size_t v = 0; v < to.size(); ++v) {
      if (settings.rule == TransferRule::paper)
        out(u, v) = from[u].degrees() == to[v].degrees()
                        ? 0
                        : directions * counter.needed(v) * value_bytes / settings.links.device.value;
      else
        out(u, v) = directions * seconds_of(counter.count(u, v), value_bytes, settings.links);
    }
  return out;
}

}  // namespace

std::vector<int> node_numbers(const Cluster& cluster, const std::vector<DeviceId>& workers) {
  std::vector<int> out;
  std::map<std::string, int> known;
  for (const DeviceId worker : workers)
    out.push_back(
        known.try_emplace(cluster.devices[static_cast<std::size_t>(worker)].node, static_cast<int>(known.size()))
            .first->second);
  return out;
}

std::size_t CostTables::index_of(std::size_t op, const Degrees& degrees) const {
  const auto& all = operators[op].configurations;
  const auto found = std::ranges::find(all, degrees);
  if (found == all.end()) throw std::logic_error("no such configuration: " + degrees.text());
  return static_cast<std::size_t>(found - all.begin());
}

Seconds update_time(const Division& division, double value_bytes, const CostSettings& settings) {
  const LinkRates& links = settings.links;
  Loads sums(links), reduce(links), spread(links);
  for (const Piece& piece : sum_pieces(division))
    sums.add(division.device(piece.from), division.device(piece.to), static_cast<double>(piece.values) * value_bytes);
  double serial = 0;  // B through one server or link
  for (const ParameterShard& shard : division.shards()) {
    const auto replicas = static_cast<double>(shard.places.size());
    if (shard.places.size() < 2) continue;
    const double bytes = shard.values * value_bytes;
    if (settings.rule == TransferRule::paper || settings.exchange == GradientExchange::host_server) {
      serial += 2 * replicas * bytes;
      continue;
    }
    for (std::size_t i = 0; i < shard.places.size(); ++i) {
      const int own = division.device(shard.places[i]);
      if (settings.exchange == GradientExchange::all_reduce) {
        const int next = division.device(shard.places[(i + 1) % shard.places.size()]);
        reduce.add(own, next, 2 * (replicas - 1) / replicas * bytes);
      } else if (settings.exchange == GradientExchange::sharded_servers) {
        for (const std::size_t other : shard.places) reduce.add(own, division.device(other), 2 / replicas * bytes);
      } else {
        const int server = division.device(shard.places.front());
        reduce.add(own, server, bytes);
        spread.add(server, own, bytes);
      }
    }
  }
  const double rate = settings.rule == TransferRule::paper ? links.device.value : settings.server_rate.value;
  const double directions = division.op().needs_gradient ? 2 : 1;
  const double gradients = reduce.seconds() + spread.seconds() + (serial > 0 ? serial / rate : 0);
  return Seconds(directions * sums.seconds() + gradients / settings.micro_batches);
}

CostTable transfer_table(const OperatorNetwork& network, const OperatorEdge& edge, const std::vector<Degrees>& from,
                         const std::vector<Degrees>& to, std::int64_t batch, std::size_t workers, double value_bytes,
                         const CostSettings& settings) {
  return transfer_table(network, edge, divisions_of(network, edge.from, from, batch, workers, settings.places),
                        divisions_of(network, edge.to, to, batch, workers, settings.places), value_bytes, settings);
}

CostTables cost_tables(const OperatorNetwork& network, TileTimes& times, std::int64_t batch, std::size_t workers,
                       double value_bytes, double state_bytes, const CostSettings& settings) {
  CostTables out;
  std::vector<std::vector<Division>> divisions;
  std::vector<std::vector<std::size_t>> slowest(network.size());
  for (std::size_t op = 0; op < network.size(); ++op) {
    OperatorCosts& costs = out.operators.emplace_back();
    costs.configurations = configurations_of(network, op, batch, workers, settings.dimensions);
    divisions.push_back(divisions_of(network, op, costs.configurations, batch, workers, settings.places));
    for (const Division& division : divisions.back()) {
      slowest[op].push_back(largest(division));
      times.ask(op, division.tile(slowest[op].back()));
    }
  }
  for (std::size_t op = 0; op < network.size(); ++op) {
    OperatorCosts& costs = out.operators[op];
    std::vector<double>& node = out.graph.nodes.emplace_back();
    for (std::size_t c = 0; c < costs.configurations.size(); ++c) {
      const Division& division = divisions[op][c];
      const Tile& tile = division.tile(slowest[op][c]);
      const TileTimes::Cost cost = times.cost(op, tile);
      costs.compute.push_back(cost.passes +
                              (settings.rule == TransferRule::boxes ? cost.update / settings.micro_batches : 0));
      costs.update.push_back(update_time(division, value_bytes, settings).value);
      costs.memory.push_back(cost.parameters * (2 + state_bytes / value_bytes) + cost.frozen + cost.kept);
      costs.kept.push_back(cost.kept);
      node.push_back(costs.compute.back() + costs.update.back());
    }
  }
  std::map<std::string, std::size_t> known;
  for (const OperatorEdge& edge : network.edges()) {
    const auto [same, is_new] = known.try_emplace(signature(network, edge), out.graph.edges.size());
    out.graph.edges.push_back(
        {edge.from, edge.to,
         is_new ? transfer_table(network, edge, divisions[edge.from], divisions[edge.to], value_bytes, settings)
                : out.graph.edges[same->second].table});
  }
  return out;
}

}  // namespace epocast
