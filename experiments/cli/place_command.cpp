#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "experiments/cli/commands.hpp"
#include "experiments/cli/given_options.hpp"
#include "experiments/cli/progress_line.hpp"
#include "experiments/cli/verbosity.hpp"
#include "experiments/cli/word_option.hpp"
#include "experiments/place/place_plot.hpp"
#include "experiments/place/place_report.hpp"
#include "experiments/svg.hpp"
#include "sim/config.hpp"
#include "sim/error.hpp"
#include "sim/file_output.hpp"
#include "sim/input_file.hpp"
#include "sim/text.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

constexpr int kMostDevices = 1024;
constexpr std::size_t kMostLoads = 1U << 28;  // nodes x devices that the load trees of a mapping may hold

struct PlaceArguments {
  std::string source, import_file, output_file, platform, profile_plot, memory_plot;
  ModelGraphRequest model;
  std::string optimizer = "sgd", gradients = "minimize", times = "operators", links = "copy_engines", format = "table";
  std::string memory = "32GB", bandwidth = "150GB/s", latency = "3.4us";
  double reserve = 0.1;
  bool alternatives = false;
  int devices = 4;
  std::vector<std::string> methods{"pardnn", "round_robin", "linear_clustering", "heft", "single"};
};

PlacementMachine machine_of(const PlaceArguments& arguments) {
  PlacementMachine machine;
  machine.devices = arguments.devices;
  const Seconds latency = parse_option("--latency", arguments.latency, parse_seconds);
  if (!(latency.value >= 0 && latency.value <= 1)) throw ConfigError("--latency: must be from 0 to 1 s");
  machine.latency = to_ticks(latency.value);
  machine.bytes_per_second = parse_option("--bandwidth", arguments.bandwidth, parse_bytes_per_second).value;
  if (!(machine.bytes_per_second >= 1)) throw ConfigError("--bandwidth: must be at least 1 B/s");
  const double memory =
      arguments.memory == "unlimited" ? 0 : parse_option("--memory", arguments.memory, parse_bytes).value;
  if (arguments.memory != "unlimited" && !(memory >= 1)) throw ConfigError("--memory: must be at least 1 B");
  machine.memory = memory * (1 - arguments.reserve);
  return machine;
}

bool is_own_graph(const std::string& source) { return source.ends_with(".csv") || source.ends_with(".json"); }

void refuse_idle_place_options(const PlaceArguments& arguments, const CLI::App& command) {
  if (is_own_graph(arguments.source))
    refuse_given(command,
                 {"--batch", "--optimizer", "--gradients", "--weight-decay", "--fused-norms", "--fused-kernels",
                  "--calibration", "--times"},
                 "is for a model; " + printable(arguments.source) + " says itself what its nodes are and take");
  if (!arguments.import_file.empty())
    refuse_given(command, {"--method"}, "nothing is placed where --import replays a placement; leave one of them out");
}

NamedGraph graph_of(PlaceArguments& arguments) {
  if (is_own_graph(arguments.source)) return read_graph_file(arguments.source);
  arguments.model.model = arguments.source;
  arguments.model.options.optimizer = parse_option("--optimizer", arguments.optimizer, parse_optimizer);
  arguments.model.options.gradients = parse_option("--gradients", arguments.gradients, parse_gradient_use);
  arguments.model.times = choose("--times", arguments.times, {"operators", "layers"}) == 0 ? OperatorTimes::operators
                                                                                           : OperatorTimes::layers;
  return model_graph(arguments.model);
}

/// Times are whole picoseconds in 64 bits: all transfers together must stay below.
void check_sizes(const NamedGraph& graph, const PlacementMachine& machine) {
  double transfers = 0;
  for (const double bytes : graph.graph.bytes)
    transfers += bytes / machine.bytes_per_second + to_seconds(machine.latency);
  if ((transfers + to_seconds(graph.graph.total_time())) * kTicksPerSecond > static_cast<double>(kMostTicks))
    throw ConfigError(
        fmt::format("{}: work and transfers add up to {:.3g} s; at most 1.1e6 s. Is the --bandwidth right?", graph.name,
                    transfers));
  if (graph.graph.size() * static_cast<std::size_t>(machine.devices) > kMostLoads)
    throw ConfigError(fmt::format("--devices: {} on {} is too much; at most {}", counted(graph.graph.size(), "node"),
                                  counted(machine.devices, "device"), kMostLoads / graph.graph.size()));
}

int place(PlaceArguments arguments, const CLI::App& command) {
  refuse_idle_place_options(arguments, command);
  const std::size_t format = choose("--format", arguments.format, {"table", "csv", "json"});
  check_svg_name("--plot-profile", arguments.profile_plot);
  check_svg_name("--plot-memory", arguments.memory_plot);
  PlaceReport report;
  report.options.links =
      choose("--links", arguments.links, {"apart", "copy_engines"}) == 0 ? Links::apart : Links::copy_engines;
  report.machine = machine_of(arguments);
  const NamedGraph graph = graph_of(arguments);
  if (verbosity != Verbosity::quiet)
    for (const std::string& warning : graph.warnings) std::cerr << "warning: " << printable(warning) << '\n';
  check_sizes(graph, report.machine);
  report.graph = &graph;
  const std::string impossible = impossible_because(graph, report.machine);
  if (!impossible.empty()) throw ConfigError(graph.name + ": no placement fits: " + impossible);
  if (!arguments.import_file.empty()) {
    const Placement placement =
        read_placement(read_input_file(arguments.import_file), arguments.import_file, graph, report.machine.devices);
    report.outcomes.push_back(
        {arguments.import_file, {judge(graph.graph, report.machine, report.options, "import", placement)}, 0});
  } else {
    ProgressLine line;
    for (const std::string& method : arguments.methods) {
      line.show(fmt::format("placing {} by {} ({} of {})", printable(graph.name), method, report.outcomes.size() + 1,
                            arguments.methods.size()));
      report.outcomes.push_back(place_by(method, graph, report.machine, report.options));
    }
  }
  if (arguments.alternatives) {
    if (arguments.model.model.empty())
      throw ConfigError("--alternatives: a graph of your own cannot be divided by samples; use a model");
    report.alternatives = alternatives(arguments.model, report.machine);
  }
  std::vector<PlacementStage> results;
  for (const MethodOutcome& outcome : report.outcomes) results.push_back(outcome.result());
  report.best = static_cast<std::size_t>(&best_of(results) - results.data());
  const Placement& best = report.outcomes[report.best].result().placement;
  if (!arguments.output_file.empty())
    write_file(arguments.output_file, [&](std::ostream& out) { write_placement(out, graph, best); });
  if (!arguments.platform.empty())
    report.simulated = simulate_placement(graph, best, report.machine.devices, arguments.platform);
  if (!arguments.profile_plot.empty()) write_file(arguments.profile_plot, placement_profile_svg(report));
  if (!arguments.memory_plot.empty()) write_file(arguments.memory_plot, placement_memory_svg(report));
  if (format == 0) write_place_table(std::cout, report);
  if (format == 1) write_place_csv(std::cout, report);
  if (format == 2) write_place_json(std::cout, report);
  return results[report.best].fits ? kDone : kMissed;
}

std::string method_help() {
  std::string out;
  for (const auto& [name, description] : placement_method_names())
    out += (out.empty() ? "" : "; ") + name + ": " + description;
  return out;
}

}  // namespace

void add_place_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<PlaceArguments>();
  CLI::App* command = app.add_subcommand(
      "place",
      "Place the single operations of a training step on devices under memory limits, and replay it.\n"
      "Example: epocast place wrn --batch 64 --devices 16 --gradients direct --output wrn.csv");
  command->add_option("graph", arguments->source, "a model's name or file, or a graph of your own (.csv, .json)")
      ->required();
  command->add_option("--devices", arguments->devices, "number of equal devices")
      ->check(CLI::Range(1, kMostDevices))
      ->capture_default_str();
  command->add_option("--method", arguments->methods, "with commas, several are compared. " + method_help())
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  command->add_option("--memory", arguments->memory, "of each device, or: unlimited")->capture_default_str();
  command->add_option("--reserve", arguments->reserve, "part of the memory that is left free")
      ->check(CLI::Range(0.0, 0.99))
      ->capture_default_str();
  command->add_option("--bandwidth", arguments->bandwidth, "of the link between two devices, each way; a DGX-2's")
      ->capture_default_str();
  command->add_option("--latency", arguments->latency, "of a transfer")->capture_default_str();
  command
      ->add_option("--links", arguments->links,
                   "copy_engines: a device sends one transfer at a time and receives one; apart: no transfer waits")
      ->capture_default_str();
  command->add_option("--batch", arguments->model.batch, "samples of a step, for a model")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--optimizer", arguments->optimizer, "for a model: sgd, momentum or adam")->capture_default_str();
  command->add_option("--gradients", arguments->gradients, "for a model: minimize, direct or clipped")
      ->capture_default_str();
  command->add_flag("--weight-decay", arguments->model.options.weight_decay,
                    "for a model: squares of its weights are part of the loss");
  command->add_flag("--fused-norms", arguments->model.options.fused_norms,
                    "for a model: a batch normalisation is one operation");
  command->add_flag("--fused-kernels", arguments->model.options.fused_kernels,
                    "for a model: cheap operations of a layer's pass that hang together are one kernel");
  command->add_option("--calibration", arguments->model.calibration, "of the device, for a model's times")
      ->capture_default_str();
  command
      ->add_option("--times", arguments->times,
                   "for a model: operators, each by itself; layers, scaled to what `fitted` says of layers")
      ->capture_default_str();
  command->add_flag("--alternatives", arguments->alternatives,
                    "for a model: data parallelism too, plain, with checkpointing, and with unified memory");
  command->add_option("--import", arguments->import_file, "replay this placement (columns node,device) instead");
  command->add_option("--simulate", arguments->platform,
                      "simulate the recommended placement on this platform too, message by message");
  command->add_option("--output", arguments->output_file, "write the recommended placement");
  command->add_option("--plot-profile", arguments->profile_plot,
                      "draw devices that compute, and transfers to computation, over time (SVG)");
  command->add_option("--plot-memory", arguments->memory_plot, "draw each device's memory over time (SVG)");
  command->add_option("--format", arguments->format, "table, csv or json")->capture_default_str();
  command->callback([arguments, command, &context] {
    context.action = [arguments, command] { return place(*arguments, *command); };
  });
}

}  // namespace epocast
