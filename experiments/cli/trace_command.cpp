#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <stdexcept>

#include "experiments/cli/commands.hpp"
#include "experiments/learning/event_log.hpp"
#include "experiments/output.hpp"
#include "sim/error.hpp"
#include "workloads/memory_writer.hpp"
#include "workloads/operators/operator_graph_builder.hpp"
#include "workloads/operators/operator_writer.hpp"
#include "workloads/trace_writer.hpp"

namespace epocast {
namespace {

struct TraceArguments {
  std::string file;
  std::vector<std::string> overrides;
  std::string format = "csv";
  std::size_t scenario = 0;
  bool memory = false;
  bool operators = false;
  bool events = false;
  std::int64_t iterations = 10;
  std::string gradients = "minimize";
};

GradientUse parse_gradients(const std::string& word) {
  try {
    return parse_gradient_use(word);
  } catch (const std::invalid_argument& problem) {
    throw ConfigError(std::string("--gradients: ") + problem.what());
  }
}

/// The output's format, which `--operators` has one more of.
void check_format(const TraceArguments& arguments) {
  const std::vector<std::string> formats =
      arguments.operators ? std::vector<std::string>{"csv", "json", "dot"} : std::vector<std::string>{"csv", "json"};
  if (std::find(formats.begin(), formats.end(), arguments.format) == formats.end())
    throw ConfigError("--format: unknown format '" + arguments.format + "'" + name_hint(arguments.format, formats));
  if (arguments.memory + arguments.operators + arguments.events > 1)
    throw ConfigError("--memory, --operators and --events: give one of them");
  if (arguments.events && arguments.format != "csv") throw ConfigError("--format: events are written as csv only");
}

void write_operators(const OperatorGraph& graph, const std::string& format) {
  if (format == "csv") return write_operators_csv(std::cout, graph);
  if (format == "json") return write_operators_json(std::cout, graph);
  write_operators_dot(std::cout, graph);
}

/// Who does what to parameters, simulated here: this process has no other engine.
void write_events(const ScenarioSetup& setup, std::int64_t iterations) {
  SimEngine engine(setup.cluster, setup.network);
  const ParameterLog log = record_parameter_log(setup, setup.phases.front(), engine, setup.irregularity.seeds.front(),
                                                0, iterations, nullptr);
  std::cout << "date_s,iteration,worker,event,piece,partner\n";
  const auto name = [](std::int32_t rank) { return rank == ParameterEvent::kAll ? "all" : std::to_string(rank); };
  ParameterLogCursor cursor(log);
  while (const std::optional<ParameterEvent> event = cursor.next()) {
    const bool whole = event->piece == ParameterEvent::kAll;
    const std::string piece = whole ? "" : log.pieces[static_cast<std::size_t>(event->piece)].name;
    std::cout << fmt::format("{},{},{},{},{},{}\n", event->date, event->iteration, name(event->rank),
                             to_string(event->kind), csv_field(piece),
                             event->partner == ParameterEvent::kAll ? "" : name(event->partner));
  }
}

int trace(const TraceArguments& arguments, const Registries& registries) {
  check_format(arguments);
  const GradientUse gradients = parse_gradients(arguments.gradients);
  std::vector<Override> overrides;
  for (const std::string& text : arguments.overrides) overrides.push_back(parse_override(text));
  const Study study = load_users_study(arguments.file, overrides);
  if (arguments.scenario == 0 && study.scenarios.size() > 1)
    throw ConfigError(fmt::format("study '{}' has {} scenarios; choose one with --scenario 1..{}, first: {}",
                                  study.name, study.scenarios.size(), study.scenarios.size(),
                                  study.scenarios.front().name));
  if (arguments.scenario > study.scenarios.size())
    throw ConfigError(
        fmt::format("--scenario {}: study '{}' has {}", arguments.scenario, study.name, study.scenarios.size()));

  const ScenarioSetup setup =
      read_scenario(study.scenarios[std::max<std::size_t>(arguments.scenario, 1) - 1], registries);
  if (arguments.events) {
    write_events(setup, arguments.iterations);
    return kDone;
  }
  if (setup.model.layers.empty()) throw ConfigError("the study has no model to trace");
  const StrategyContext context = setup.context(setup.phases.front());
  if (arguments.operators) {
    write_operators(build_operator_graph(setup.model, context.worker_batch(), {setup.optimizer, gradients}),
                    arguments.format);
    return kDone;
  }
  const std::vector<DeviceId> first{context.workers.front()};
  const WorkloadTrace workload =
      context.trace(context.worker_batch(), std::make_shared<const DeviceKinds>(context.cluster, first));
  const bool csv = arguments.format == "csv";
  if (arguments.memory) {
    const std::vector<MemoryMoment> timeline = memory_timeline(workload, context.optimizer);
    csv ? write_memory_csv(std::cout, workload, timeline) : write_memory_json(std::cout, workload, timeline);
  } else {
    csv ? write_trace_csv(std::cout, workload) : write_trace_json(std::cout, workload);
  }
  return kDone;
}

}  // namespace

void add_trace_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<TraceArguments>();
  CLI::App* command =
      app.add_subcommand("trace",
                         "Write the layer-wise workload trace of the first worker, as the strategies replay it.\n"
                         "Example: epocast trace experiments/studies/vgg16_skylake.yaml > vgg16.csv");
  command->add_option("study", arguments->file, "study file (YAML)")->required();
  command->add_option("--format", arguments->format, "csv or json; dot too with --operators")->capture_default_str();
  command->add_flag("--memory", arguments->memory,
                    "instead: memory during each pass of each layer, for a worker that holds the whole network");
  command->add_flag("--operators", arguments->operators,
                    "instead: the step as a graph of single operations, with gradients and updates");
  command->add_flag("--events", arguments->events,
                    "instead: simulate, and say who reads, computes with, commits, averages or writes which parameters "
                    "when (CSV)");
  command->add_option("--iterations", arguments->iterations, "with --events: how many of the first phase")
      ->check(CLI::Range(1, 1'000'000))
      ->needs("--events")
      ->capture_default_str();
  command
      ->add_option("--gradients", arguments->gradients,
                   "with --operators: minimize, direct or clipped, as the program applies them")
      ->needs("--operators")
      ->capture_default_str();
  command->add_option("--set", arguments->overrides, "change a key of the study; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--scenario", arguments->scenario, "which scenario of a study with sweep axes, from 1")
      ->check(CLI::Range(1, 1'000'000'000));
  command->callback([arguments, &context] {
    context.action = [arguments, &context] { return trace(*arguments, context.registries); };
  });
}

}  // namespace epocast
