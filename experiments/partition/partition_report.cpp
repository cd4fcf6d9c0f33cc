#include "experiments/partition/partition_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "experiments/text_table.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

std::string with_unit(double value, const std::string& unit) {
  return fmt::format("{:.6g}{}{}", value, unit.empty() ? "" : " ", unit);
}

/// Part of the average load; 0 where nothing weighs anything.
double relative(double load, double average) { return average > 0 ? load / average : 0; }

}  // namespace

PartitionFigures partition_figures(const PartitionOutcome& outcome) {
  PartitionFigures out;
  const std::vector<double> loads = part_loads(outcome.graph, outcome.partition);
  for (int part = 0; part < outcome.partition.parts; ++part)
    out.parts.push_back({part, 0, loads[static_cast<std::size_t>(part)]});
  for (const int part : outcome.partition.part_of) ++out.parts[static_cast<std::size_t>(part)].vertices;
  out.balance = load_balance(outcome.graph, outcome.partition);
  out.average = outcome.graph.total_weight() / outcome.partition.parts;
  out.connectivity = cut_cost(outcome.graph, outcome.partition, CutObjective::connectivity);
  out.cut_net = cut_cost(outcome.graph, outcome.partition, CutObjective::cut_net);
  if (outcome.shares) {
    out.gather_broadcast = gather_broadcast(outcome.network, *outcome.shares).volume;
    out.messages = message_bytes(out.connectivity);
  }
  return out;
}

void write_partition_table(std::ostream& out, const PartitionOutcome& outcome) {
  const PartitionFigures figures = partition_figures(outcome);
  std::vector<std::vector<std::string>> rows{{"part", "vertices", "load", "load/average"}};
  for (const PartFigures& part : figures.parts)
    rows.push_back({std::to_string(part.part), std::to_string(part.vertices), fmt::format("{:.6g}", part.load),
                    fmt::format("{:.3f}", relative(part.load, figures.average))});
  out << align_columns(rows);
  const LoadBalance& b = figures.balance;
  out << fmt::format("  {} vertices, {} nets, {} pins\n", outcome.graph.vertices(), outcome.graph.nets(),
                     outcome.graph.pin_count());
  out << fmt::format("  load: max {}, min {}, average {}, max/average {:.3f}; {} of {} parts used\n",
                     with_unit(b.max, outcome.weight_unit), with_unit(b.min, outcome.weight_unit),
                     with_unit(figures.average, outcome.weight_unit), figures.max_over_average(), b.used_parts,
                     outcome.partition.parts);
  if (const int empty = figures.empty_parts(); empty > 0)
    out << fmt::format("  {} without any vertex: fewer parts would do\n", counted(empty, "part"));
  out << fmt::format("  volume: connectivity {}, cut nets {}", with_unit(figures.connectivity, outcome.cost_unit),
                     with_unit(figures.cut_net, outcome.cost_unit));
  if (figures.gather_broadcast)
    out << fmt::format(", gather and broadcast {}", with_unit(*figures.gather_broadcast, outcome.cost_unit));
  out << '\n';
  if (figures.messages)
    out << fmt::format("  messages of a step, fp32, forward and backward: {}\n", to_string(*figures.messages));
}

void write_partition_csv(std::ostream& out, const PartitionOutcome& outcome) {
  const PartitionFigures figures = partition_figures(outcome);
  out << "part,vertices,load,load_over_average\n";
  for (const PartFigures& part : figures.parts)
    out << fmt::format("{},{},{},{}\n", part.part, part.vertices, part.load, relative(part.load, figures.average));
}

void write_partition_json(std::ostream& out, const PartitionOutcome& outcome) {
  using nlohmann::ordered_json;
  const PartitionFigures figures = partition_figures(outcome);
  ordered_json parts = ordered_json::array();
  for (const PartFigures& part : figures.parts)
    parts.push_back({{"part", part.part},
                     {"vertices", part.vertices},
                     {"load", part.load},
                     {"load_over_average", relative(part.load, figures.average)}});
  const ordered_json root{
      {"vertices", outcome.graph.vertices()},
      {"nets", outcome.graph.nets()},
      {"pins", outcome.graph.pin_count()},
      {"load_unit", outcome.weight_unit},
      {"max_load", figures.balance.max},
      {"min_load", figures.balance.min},
      {"average_load", figures.average},
      {"used_parts", figures.balance.used_parts},
      {"volume_unit", outcome.cost_unit},
      {"connectivity", figures.connectivity},
      {"cut_net", figures.cut_net},
      {"gather_broadcast", figures.gather_broadcast ? ordered_json(*figures.gather_broadcast) : ordered_json(nullptr)},
      {"message_bytes", figures.messages ? ordered_json(figures.messages->value) : ordered_json(nullptr)},
      {"parts", parts},
      {"part_of", outcome.partition.part_of}};
  out << root.dump(1) << '\n';
}

}  // namespace epocast
