#include "experiments/partition/partition_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "experiments/output.hpp"
#include "experiments/text_table.hpp"
#include "sim/error.hpp"
#include "sim/words.hpp"

namespace epocast {

PartitionComparison compare_partitions(PartitionRequest request, const std::vector<std::string>& algorithms,
                                       const std::vector<int>& parts, const Registries& registries) {
  for (const std::string& algorithm : algorithms) check_partition_algorithm(algorithm);
  PartitionComparison out{algorithms, parts, {}};
  for (const int number : parts)
    for (const std::string& algorithm : algorithms) {
      ComparedPartition& cell = out.cells.emplace_back();
      cell.algorithm = request.algorithm = algorithm;
      cell.parts = request.options.parts = number;
      try {
        cell.figures = partition_figures(make_partition(request, registries));
      } catch (const ConfigError& problem) {
        cell.problem = problem.what();
      }
    }
  if (std::none_of(out.cells.begin(), out.cells.end(), [](const auto& cell) { return cell.figures.has_value(); }))
    throw ConfigError(out.cells.front().problem);
  return out;
}

void write_comparison_table(std::ostream& out, const PartitionComparison& comparison) {
  std::vector<std::vector<std::string>> rows{{"parts"}};
  for (const std::string& algorithm : comparison.algorithms) {
    rows.front().push_back(algorithm);
    rows.front().push_back("load/average");
  }
  for (std::size_t i = 0; i < comparison.cells.size(); ++i) {
    const ComparedPartition& cell = comparison.cells[i];
    if (i % comparison.algorithms.size() == 0) rows.push_back({std::to_string(cell.parts)});
    rows.back().push_back(cell.figures ? fmt::format("{:.6g}", cell.figures->connectivity) : "-");
    rows.back().push_back(cell.figures ? fmt::format("{:.3f}", cell.figures->max_over_average()) : "-");
  }
  out << align_columns(rows);
  for (const ComparedPartition& cell : comparison.cells) {
    std::string what = cell.problem;
    if (cell.figures && cell.figures->empty_parts() > 0)
      what = counted(cell.figures->empty_parts(), "part") + " without any vertex";
    if (!what.empty()) out << fmt::format("  {}, {} parts: {}\n", cell.algorithm, cell.parts, what);
  }
}

void write_comparison_csv(std::ostream& out, const PartitionComparison& comparison) {
  out << "algorithm,parts,connectivity,cut_net,gather_broadcast,message_bytes,load_over_average,used_parts,problem\n";
  for (const ComparedPartition& cell : comparison.cells) {
    out << fmt::format("{},{},", cell.algorithm, cell.parts);
    if (!cell.figures) {
      out << ",,,,,," << csv_field(cell.problem) << '\n';
      continue;
    }
    const PartitionFigures& f = *cell.figures;
    const auto optional = [](const auto& value) { return value ? fmt::format("{}", *value) : ""; };
    const std::optional<double> bytes = f.messages ? std::optional(f.messages->value) : std::nullopt;
    out << fmt::format("{},{},{},{},{},{},\n", f.connectivity, f.cut_net, optional(f.gather_broadcast), optional(bytes),
                       f.max_over_average(), f.balance.used_parts);
  }
}

void write_comparison_json(std::ostream& out, const PartitionComparison& comparison) {
  using nlohmann::ordered_json;
  ordered_json root = ordered_json::array();
  for (const ComparedPartition& cell : comparison.cells) {
    ordered_json entry{{"algorithm", cell.algorithm}, {"parts", cell.parts}};
    if (cell.figures) {
      const PartitionFigures& f = *cell.figures;
      entry["connectivity"] = f.connectivity;
      entry["cut_net"] = f.cut_net;
      entry["gather_broadcast"] = f.gather_broadcast ? ordered_json(*f.gather_broadcast) : ordered_json(nullptr);
      entry["message_bytes"] = f.messages ? ordered_json(f.messages->value) : ordered_json(nullptr);
      entry["load_over_average"] = f.max_over_average();
      entry["used_parts"] = f.balance.used_parts;
    } else {
      entry["problem"] = cell.problem;
    }
    root.push_back(entry);
  }
  out << root.dump(1) << '\n';
}

}  // namespace epocast
