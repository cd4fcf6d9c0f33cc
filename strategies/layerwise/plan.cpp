#include "strategies/layerwise/plan.hpp"

#include <algorithm>
#include <utility>

namespace epocast {

const char* to_string(GradientExchange exchange) {
  switch (exchange) {
    case GradientExchange::all_reduce: return "all_reduce";
    case GradientExchange::host_server: return "host_server";
    case GradientExchange::device_servers: return "device_servers";
    case GradientExchange::sharded_servers: return "sharded_servers";
  }
  return "unknown";
}

std::vector<int> devices_of(std::int64_t places, std::size_t workers, PlaceRule rule) {
  const std::int64_t stride = rule == PlaceRule::spread ? static_cast<std::int64_t>(workers) / places : 1;
  std::vector<int> out;
  for (std::int64_t place = 0; place < places; ++place) out.push_back(static_cast<int>(place * stride));
  return out;
}

std::size_t LayerwisePipeline::stage_of_operator(std::size_t op) const {
  std::size_t s = 0;
  while (s + 1 < stages.size() && stages[s + 1].first_operator <= op) ++s;
  return s;
}

std::size_t LayerwisePipeline::first_worker(std::size_t stage) const {
  std::size_t first = 0;
  for (std::size_t s = 0; s < stage; ++s) first += stages[s].workers;
  return first;
}

std::size_t LayerwisePipeline::stage_of_worker(std::size_t worker) const {
  std::size_t s = 0;
  while (s + 1 < stages.size() && first_worker(s + 1) <= worker) ++s;
  return s;
}

LayerwisePlan make_plan(std::shared_ptr<const OperatorNetwork> network,
                        const std::vector<Configuration>& configurations, std::int64_t batch, double value_bytes,
                        const LayerwisePipeline& pipeline, PlaceRule rule) {
  std::vector<SharedTable> tables = shared_tables(network->model(), [&](std::size_t layer) {
    const int op = network->operator_of(layer);
    return pipeline.stage_of_operator(static_cast<std::size_t>(std::max(0, op)));
  });
  if (!tables.empty()) network = std::make_shared<OperatorNetwork>(with_tables(network->model(), tables));
  LayerwisePlan plan{std::move(network), std::move(tables), {}, pipeline, value_bytes, value_bytes};
  plan.divisions.reserve(configurations.size());
  for (std::size_t op = 0; op < configurations.size(); ++op) {
    const Configuration& of = configurations[op];
    const std::size_t stage = pipeline.stage_of_operator(op);
    std::vector<int> devices = of.devices;
    if (devices.empty()) {
      devices = devices_of(of.degrees.product(), pipeline.stages[stage].workers, rule);
      for (int& device : devices) device += static_cast<int>(pipeline.first_worker(stage));
    }
    plan.divisions.emplace_back(*plan.network, op, of.degrees, batch / pipeline.micro_batches, std::move(devices));
  }
  return plan;
}

bool sends_back(const OperatorNetwork& network, const OperatorEdge& edge) {
  return network.at(edge.from).needs_gradient;
}

Bytes exchanged(GradientExchange exchange, Bytes shard, std::size_t places) {
  if (places < 2) return Bytes(0);
  const auto n = static_cast<double>(places);
  return shard * 2 * (exchange == GradientExchange::host_server ? n : n - 1);
}

PlanTraffic traffic_of(const LayerwisePlan& plan, std::size_t op, GradientExchange exchange) {
  PlanTraffic out;
  const Division& own = plan.divisions[op];
  const double times = plan.pipeline.micro_batches;
  for (const OperatorEdge& edge : plan.network->edges()) {
    if (edge.to != op) continue;
    const Bytes bytes(sent_values(pieces(plan.divisions[edge.from], own, edge.input)) * plan.value_bytes * times);
    out.forward += bytes;
    if (sends_back(*plan.network, edge)) out.backward += bytes;
  }
  out.sums = Bytes(sent_values(sum_pieces(own)) * plan.value_bytes * times) * (own.op().needs_gradient ? 2 : 1);
  for (const ParameterShard& shard : own.shards())
    out.gradients += exchanged(exchange, Bytes(shard.values * plan.value_bytes), shard.places.size());
  return out;
}

std::vector<TableTeam> table_teams(const LayerwisePlan& plan) {
  std::vector<TableTeam> teams;
  for (const SharedTable& table : plan.tables) {
    if (plan.network->model().layers[table.layer].parameter_count() == 0) continue;  // frozen
    std::vector<std::size_t> holders{table.layer};
    holders.insert(holders.end(), table.readers.begin(), table.readers.end());
    const auto division = [&](std::size_t layer) -> const Division& {
      return plan.divisions[static_cast<std::size_t>(plan.network->operator_of(layer))];
    };
    const auto parts = [&](std::size_t layer) {
      return division(layer).degrees()[Dimension::c] * division(layer).degrees()[Dimension::k];
    };
    const std::size_t places = division(table.layer).places();
    std::vector<double> values(places, 0);
    for (const ParameterShard& shard : division(table.layer).shards())
      for (const std::size_t place : shard.places)
        if (shard.layer == table.layer) values[place] = std::max(values[place], shard.values);
    const bool alike = std::ranges::all_of(holders, [&](std::size_t layer) {
      return division(layer).places() == places && parts(layer) == parts(table.layer);
    });
    const std::size_t first = teams.size();
    teams.resize(first + (alike ? places : 1));
    for (const std::size_t layer : holders)
      for (std::size_t place = 0; place < division(layer).places(); ++place)
        teams[first + (alike ? place : 0)].members.push_back({division(layer).number(), layer, place});
    for (std::size_t place = 0; place < places; ++place) {
      double& of = teams[first + (alike ? place : 0)].values;
      of = std::max(of, values[place]);
    }
  }
  return teams;
}

PlanTraffic traffic(const LayerwisePlan& plan, GradientExchange exchange) {
  PlanTraffic out;
  for (const TableTeam& team : table_teams(plan))
    out.gradients +=
        exchanged(GradientExchange::all_reduce, Bytes(team.values * plan.value_bytes), team.members.size());
  for (std::size_t op = 0; op < plan.divisions.size(); ++op) {
    const PlanTraffic own = traffic_of(plan, op, exchange);
    out.forward += own.forward;
    out.backward += own.backward;
    out.sums += own.sums;
    out.gradients += own.gradients;
  }
  return out;
}

}  // namespace epocast
