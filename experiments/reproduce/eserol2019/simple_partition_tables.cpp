// Tables 5.1 to 5.6 and 5.8: partitions that look at loads only, so that everything follows from the layers' works.
//
// The works are not printed. They were decoded from Tables 5.1, 5.3, 5.5, 5.6 and 5.8 together (layer_works.csv), so
// these loads, and the volumes of 5.6 and 5.8, are inputs: they must come back. Volumes of 5.2 and 5.4 do not depend on
// the works' last digits, and must come out.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/reproduce/eserol2019/targets.hpp"
#include "experiments/reproduce/eserol2019/vgg16_partition.hpp"
#include "strategies/partitioners/communication_volume.hpp"
#include "strategies/partitioners/simple_partitioners.hpp"

namespace epocast::eserol2019 {
namespace {

/// Sum of all works of filters: 21,825 + 21,195 in Table A.3, and avg x N in Table 5.5. An Nth of it is what parts are
/// filled with, in order, be it with filters or with channels.
constexpr double kFilterTotal = 43020;

/// What a partition is like, by the tables' names of quantities.
struct Figures {
  LoadBalance loads;
  GatherBroadcast traffic;
  double connectivity = 0;

  double value(const std::string& quantity) const {
    const double average = traffic.volume / loads.used_parts;
    if (quantity == "max work") return loads.max;
    if (quantity == "min work") return loads.min;
    if (quantity == "avg work") return loads.average;
    if (quantity == "max/min") return loads.max / loads.min;
    if (quantity == "max/avg") return loads.max / loads.average;
    if (quantity == "max*N") return loads.max * loads.used_parts;
    if (quantity == "volume") return traffic.volume;
    if (quantity == "max communication") return traffic.largest_broadcast;
    if (quantity == "avg communication") return average;
    return traffic.largest_broadcast / average;
  }
};

/// Role and tolerance of a cell.
struct Judgement {
  Role role = Role::exact;
  double tolerance = 0;
};

/// Rows of all cells of a table, and for volumes the bytes that messages really carry.
std::vector<TargetRow> compare(const std::string& name, const std::function<Figures(int workers)>& figures_of,
                               const std::function<std::optional<Judgement>(const PublishedCell&)>& judge) {
  std::vector<TargetRow> rows, corrected;
  const PublishedTable table = partition_table(name);
  for (const PublishedCell& cell : table.cells()) {
    const Figures figures = figures_of(std::stoi(cell.keys.front()));
    const std::string row = "N=" + cell.keys.front();
    const std::optional<Judgement> judgement = judge(cell);
    if (judgement)
      rows.push_back({row, cell.quantity, cell.unit, cell.value,
                      truncated(figures.value(cell.quantity), printed_digits(name, cell.quantity)), judgement->role,
                      judgement->tolerance, ""});
    if (cell.quantity == "volume")
      corrected.push_back({row, "fp32 messages of a step, forward and backward", "MiB", std::nullopt,
                           message_bytes(figures.connectivity * kMega).value / kMega, Role::exact, 0, "corrected"});
  }
  rows.insert(rows.end(), corrected.begin(), corrected.end());
  return rows;
}

Figures coarse_figures(const FilterNetwork& network, const Partition& partition) {
  const Hypergraph graph = coarse_grain(network);
  return {load_balance(graph, partition), gather_broadcast(network, coarse_shares(network, partition)),
          cut_cost(graph, partition, CutObjective::connectivity)};
}

Figures layer_wise(int workers) {
  static const FilterNetwork network = vgg16_filters(Vertex::filter);
  return coarse_figures(network, layerwise_bisection(network, workers));
}

Figures horizontal(int workers) {
  // Every part has an Nth of each layer. The sum of the works is the table's own N x max (layers' works add up to a
  // little less than filters'). Outputs of fully connected layers are gathered, but not sent on.
  static const double total = partition_table("5_3").value({"2"}, "max*N");
  FilterNetwork network = vgg16_filters(Vertex::filter);
  // Each map goes from its part to all others, or its equal share does.
  double connectivity = 0;
  for (FilterLayer& layer : network.layers) {
    connectivity += layer.sent * (workers - 1);
    if (layer.filters == 1) layer.sent = 0;
  }
  const double load = total / workers;
  return {{load, load, load, workers}, gather_broadcast(network, even_shares(network, workers)), connectivity};
}

Figures filter_wise(int workers) {
  static const FilterNetwork network = vgg16_filters(Vertex::filter);
  return coarse_figures(network, fill_in_order(coarse_grain(network), workers, kFilterTotal / workers));
}

Figures channel_wise(int workers) {
  static const FilterNetwork network = vgg16_filters(Vertex::channel);
  static const Hypergraph graph = fine_grain(network);
  const Partition partition = fill_in_order(graph, workers, kFilterTotal / workers);
  return {load_balance(graph, partition), gather_broadcast(network, fine_shares(network, partition)),
          cut_cost(graph, partition, CutObjective::connectivity)};
}

/// A published cell comes back within so many percent, or a last digit of a ratio.
Judgement input(const PublishedCell& cell, double percent) {
  const bool ratio = cell.unit == "ratio";
  return {Role::input, std::max(cell.value * percent / 100, ratio ? 0.1001 : 0)};
}

/// The most that a layer sends is exact.
Judgement input_volume(const PublishedCell& cell) {
  return cell.quantity == "max communication" ? Judgement{Role::input, 1e-9} : input(cell, 1);
}

}  // namespace

Target table_5_1() {
  return {"eserol2019", "table_5_1", "loads of layer-wise partitions of VGG-16 (works are inputs)", std::nullopt,
          [](const TargetContext&) {
            return compare("5_1", layer_wise, [](const PublishedCell& cell) -> std::optional<Judgement> {
              // 51,308 stands in the row of N=2 as well, where it should be 2 x 22,757.
              if (cell.keys.front() == "2" && cell.quantity == "max*N") return std::nullopt;
              return input(cell, 0.1);
            });
          }};
}

Target table_5_2() {
  return {"eserol2019", "table_5_2", "volumes of layer-wise partitions of VGG-16", std::nullopt,
          [](const TargetContext&) {
            return compare("5_2", layer_wise, [](const PublishedCell&) { return Judgement{Role::exact, 1e-9}; });
          }};
}

Target table_5_3() {
  return {"eserol2019", "table_5_3", "loads of horizontal partitions of VGG-16", std::nullopt,
          [](const TargetContext&) {
            return compare("5_3", horizontal, [](const PublishedCell& cell) {
              return Judgement{cell.quantity == "max*N" ? Role::input : Role::exact, 1e-9};
            });
          }};
}

Target table_5_4() {
  return {"eserol2019", "table_5_4", "volumes of horizontal partitions of VGG-16", std::nullopt,
          [](const TargetContext&) {
            std::vector<TargetRow> rows = compare("5_4", horizontal, [](const PublishedCell&) {
              return Judgement{Role::exact, 1e-9};
            });
            for (TargetRow& row : rows)
              if (row.row == "N=128" && row.quantity == "volume") {
                row.simulated = horizontal(128).traffic.volume;
                row.tolerance = 0.5;
                row.note = "not truncated";
              }
            return rows;
          }};
}

Target table_5_5() {
  return {"eserol2019", "table_5_5", "loads of filter-wise incremental partitions of VGG-16 (works are inputs)",
          std::nullopt, [](const TargetContext&) {
            return compare("5_5", filter_wise, [](const PublishedCell& cell) {
              if (cell.unit == "ratio") return Judgement{Role::input, 0.1001};
              // One unit of work; N units in max x N.
              return Judgement{Role::input, cell.quantity == "max*N" ? std::stod(cell.keys.front()) : 1};
            });
          }};
}

Target table_5_6() {
  return {"eserol2019", "table_5_6", "volumes of filter-wise incremental partitions of VGG-16 (works are inputs)",
          std::nullopt, [](const TargetContext&) { return compare("5_6", filter_wise, input_volume); }};
}

Target table_5_8() {
  return {"eserol2019", "table_5_8", "volumes of channel-wise incremental partitions of VGG-16 (works are inputs)",
          std::nullopt, [](const TargetContext&) { return compare("5_8", channel_wise, input_volume); }};
}

}  // namespace epocast::eserol2019
