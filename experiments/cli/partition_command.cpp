#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "experiments/cli/commands.hpp"
#include "experiments/cli/given_options.hpp"
#include "experiments/cli/progress_line.hpp"
#include "experiments/cli/word_option.hpp"
#include "experiments/partition/partition_comparison.hpp"
#include "experiments/partition/partition_drawing.hpp"
#include "experiments/partition/patoh_file.hpp"
#include "experiments/svg.hpp"
#include "sim/error.hpp"
#include "sim/file_output.hpp"
#include "sim/text.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

struct PartitionArguments {
  PartitionRequest request;
  std::string grain = "coarse", objective = "connectivity", format = "table", bandwidth;
  std::string svg_file, export_file, output_file;
  std::vector<std::string> algorithms{"hypergraph"}, overrides;
  std::vector<int> parts;
};

/// Options, and the algorithms that heed them.
struct AlgorithmOptions {
  std::vector<std::string> options, algorithms;
};
const std::vector<AlgorithmOptions>& algorithm_options() {
  static const std::vector<AlgorithmOptions> all{
      {{"--imbalance", "--objective", "--heavy-alone", "--starts", "--seed"}, {"hypergraph", "metis", "zoltan"}},
      {{"--effort"}, {"hypergraph"}},
      {{"--bandwidth"}, {"contiguous"}}};
  return all;
}

void refuse_idle_partition_options(const PartitionArguments& arguments, const CLI::App& command) {
  const PartitionRequest& request = arguments.request;
  if (!request.hypergraph.empty())
    refuse_given(command, {"--grain", "--weights", "--batch", "--bandwidth", "--set", "--scenario"},
                 "is for a network; a --hypergraph has its vertices and weights already");
  else if (is_study(request.network))
    refuse_given(command, {"--batch"}, "a study has its own; change it by --set, as in --set batch.per_worker=64");
  else
    refuse_given(command, {"--set", "--scenario"},
                 "is for a study, and " + printable(request.network) + " is a model; name a study");
  if (!request.import_file.empty())
    refuse_given(command, {"--algorithm"}, "nothing is divided where --import brings a partition; leave one out");
  for (const AlgorithmOptions& some : algorithm_options()) {
    if (!request.import_file.empty())
      refuse_given(command, some.options, "is for a partition that is made here; --import brings one");
    const bool heeded = std::ranges::any_of(arguments.algorithms, [&](const std::string& name) {
      return std::ranges::find(some.algorithms, name) != some.algorithms.end();
    });
    if (!heeded)
      refuse_given(command, some.options,
                   fmt::format("is for --algorithm {}; name one, or leave it out", fmt::join(some.algorithms, " or ")));
  }
}

int compare(const PartitionArguments& arguments, std::size_t format, const Registries& registries) {
  for (const auto& [option, file] :
       std::vector<std::pair<std::string, std::string>>{{"--import", arguments.request.import_file},
                                                        {"--svg", arguments.svg_file},
                                                        {"--export", arguments.export_file},
                                                        {"--output", arguments.output_file}})
    if (!file.empty()) throw ConfigError(option + ": is for one partition; name one algorithm and one number of parts");
  ProgressLine line;
  line.show(fmt::format("making {}", counted(arguments.algorithms.size() * arguments.parts.size(), "partition")));
  const PartitionComparison comparison =
      compare_partitions(arguments.request, arguments.algorithms, arguments.parts, registries);
  line.clear();
  if (format == 0) write_comparison_table(std::cout, comparison);
  if (format == 1) write_comparison_csv(std::cout, comparison);
  if (format == 2) write_comparison_json(std::cout, comparison);
  return kDone;
}

int partition(PartitionArguments arguments, const CLI::App& command, const Registries& registries) {
  PartitionRequest& request = arguments.request;
  const std::size_t format = choose("--format", arguments.format, {"table", "csv", "json"});
  check_svg_name("--svg", arguments.svg_file);
  request.grain = choose("--grain", arguments.grain, {"coarse", "fine"}) == 0 ? Grain::coarse : Grain::fine;
  request.options.objective = choose("--objective", arguments.objective, {"connectivity", "cut_net"}) == 0
                                  ? CutObjective::connectivity
                                  : CutObjective::cut_net;
  if (request.network.empty() == request.hypergraph.empty())
    throw ConfigError("name either a network (a study or a model) or a --hypergraph");
  for (const std::string& name : arguments.algorithms) check_partition_algorithm(name);
  refuse_idle_partition_options(arguments, command);
  for (const std::string& text : arguments.overrides) request.overrides.push_back(parse_override(text));
  if (!arguments.bandwidth.empty()) try {
      request.bandwidth = parse_bytes_per_second(arguments.bandwidth);
      if (!(request.bandwidth->value > 0)) throw std::invalid_argument("must be more than 0");
    } catch (const std::invalid_argument& problem) {
      throw ConfigError(std::string("--bandwidth: ") + problem.what());
    }
  if (arguments.algorithms.size() > 1 || arguments.parts.size() > 1) return compare(arguments, format, registries);
  request.algorithm = arguments.algorithms.front();
  request.options.parts = arguments.parts.front();
  ProgressLine line;
  line.show(fmt::format("dividing {} into {}",
                        printable(request.network.empty() ? request.hypergraph : request.network),
                        counted(request.options.parts, "part")));
  const PartitionOutcome outcome = make_partition(request, registries);
  line.clear();
  if (!arguments.svg_file.empty()) {
    if (!outcome.shares) throw ConfigError("--svg: a hypergraph has no layers to draw");
    const std::string title = fmt::format("{}: {}, {} grain", outcome.network.name,
                                          counted(outcome.partition.parts, "part"), arguments.grain);
    write_file(arguments.svg_file,
               [&](std::ostream& out) { draw_partition(out, outcome.network, *outcome.shares, title); });
  }
  if (!arguments.export_file.empty())
    write_file(arguments.export_file, [&](std::ostream& out) { write_patoh(out, outcome.graph); });
  if (!arguments.output_file.empty())
    write_file(arguments.output_file, [&](std::ostream& out) { write_partition(out, outcome.partition); });
  if (format == 0) write_partition_table(std::cout, outcome);
  if (format == 1) write_partition_csv(std::cout, outcome);
  if (format == 2) write_partition_json(std::cout, outcome);
  return kDone;
}

std::string algorithm_help() {
  std::string out;
  for (const auto& [name, description] : partition_algorithms())
    out += (out.empty() ? "" : "; ") + name + ": " + description;
  return out;
}

}  // namespace

void add_partition_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<PartitionArguments>();
  PartitionRequest& request = arguments->request;
  CLI::App* command =
      app.add_subcommand("partition",
                         "Partition a network's filters or channels over devices; show loads and volume.\n"
                         "Example: epocast partition vgg16 --parts 4 --svg vgg16.svg");
  command->add_option("network", request.network, "study file, or a model's name or file");
  command->add_option("--hypergraph", request.hypergraph, "a hypergraph in PaToH's format instead of a network");
  command->add_option("--parts", arguments->parts, "number of parts; several, with commas, are compared")
      ->required()
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--algorithm", arguments->algorithms, "with commas, several. " + algorithm_help())
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  command->add_option("--grain", arguments->grain, "coarse: tasks are filters; fine: channels of filters")
      ->capture_default_str();
  command->add_option("--imbalance", request.options.imbalance, "how much more than the average a part may have")
      ->capture_default_str();
  command->add_option("--objective", arguments->objective, "connectivity or cut_net")->capture_default_str();
  command->add_flag("--heavy-alone", request.options.heavy_alone,
                    "give tasks that are too heavy for any part one of their own");
  command->add_option("--starts", request.options.starts, "independent searches")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--seed", request.options.seed, "of the first search")->capture_default_str();
  command->add_option("--effort", request.options.effort, "scales the length of a search")
      ->check(CLI::Range(0.001, 1000.0))
      ->capture_default_str();
  command->add_option("--weights", request.weights,
                      "work of layers: flop, time (of a study's cost model), or a CSV file with columns layer,work");
  command->add_option("--batch", request.batch, "samples, for a model without a study")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  command->add_option(
      "--bandwidth", arguments->bandwidth,
      "of links, for the algorithm `contiguous` where weights are times, e.g. 10Gb/s; default: free links");
  command->add_option("--import", request.import_file, "evaluate this partition: a part number per vertex");
  command->add_option("--export", arguments->export_file, "write the hypergraph in PaToH's format");
  command->add_option("--output", arguments->output_file, "write the partition: a part number per vertex");
  command->add_option("--svg", arguments->svg_file, "draw the partition");
  command->add_option("--format", arguments->format, "table, csv or json")->capture_default_str();
  command->add_option("--set", arguments->overrides, "change a key of the study; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--scenario", request.scenario, "which scenario of a study with sweep axes, from 1")
      ->check(CLI::Range(1, 1'000'000'000));
  command->callback([arguments, command, &context] {
    context.action = [arguments, command, &context] { return partition(*arguments, *command, context.registries); };
  });
}

}  // namespace epocast
