#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <iterator>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/cli/commands.hpp"
#include "experiments/cli/verbosity.hpp"
#include "experiments/fork_pool.hpp"
#include "experiments/sweep/scenario_key.hpp"
#include "experiments/terminal.hpp"
#include "sim/config.hpp"
#include "sim/data_directory.hpp"
#include "sim/error.hpp"
#include "sim/input_record.hpp"
#include "sim/process.hpp"

namespace epocast {
namespace {

/// Makes sure that files 0 to 2 are open: a pipe that took the place of a closed standard output would get the results.
/// Opened for reading only, a stand-in for standard output fails on writing, as the closed one would have.
void open_standard_files() {
  while (true) {
    const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (file < 0 || file > 2) {
      if (file > 2) close(file);
      return;
    }
  }
}

void flush_output() {
  std::cout.flush();
  if (!std::cout)
    throw ConfigError("cannot write the results to standard output: is the disk full, or the output closed?");
}

/// What is wrong with the arguments, on one line and with the nearest valid word.
std::string usage_problem(const CLI::App& app, const CLI::ParseError& problem,
                          const std::vector<std::string>& arguments) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  if (chosen.empty()) {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(command->get_name());
    if (arguments.empty()) return "no command" + name_hint("", names) + "; see epocast --help";
    if (!arguments.front().starts_with('-'))
      return "unknown command '" + arguments.front() + "'" + name_hint(arguments.front(), names) +
             "; see epocast --help";
  }
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  const std::string help = std::string("; see epocast ") + (chosen.empty() ? "" : command.get_name() + " ") + "--help";
  for (const std::string& extra : command.remaining()) {
    if (!extra.starts_with('-')) return "unexpected argument '" + extra + "'" + help;
    std::vector<std::string> options;
    for (const CLI::Option* option : command.get_options())
      for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
    return extra + ": unknown option" + name_hint(extra, options) + help;
  }
  const std::string what = problem.what();
  return (what.starts_with("--") || chosen.empty() ? what : command.get_name() + ": " + what) + help;
}

struct Command {
  std::string_view name;
  void (*add)(CLI::App&, CommandContext&);
};
constexpr Command kCommands[] = {
    {"run", add_run_command},           {"sweep", add_sweep_command},         {"results", add_results_command},
    {"report", add_report_command},     {"plan", add_plan_command},           {"learn", add_learn_command},
    {"trace", add_trace_command},       {"validate", add_validate_command},   {"list", add_list_command},
    {"platform", add_platform_command}, {"reproduce", add_reproduce_command}, {"partition", add_partition_command},
    {"place", add_place_command},       {"layerwise", add_layerwise_command}, {"calibrate", add_calibrate_command}};

/// The one that is asked for; or all, of which help, the manual and messages speak.
void add_commands(CLI::App& app, CommandContext& context, std::string_view asked) {
  const auto* const one = std::ranges::find(kCommands, asked, &Command::name);
  if (one != std::end(kCommands)) return one->add(app, context);
  for (const Command& command : kCommands) command.add(app, context);
  add_manual_command(app, context);
}

/// Every command says more or less if it is asked to.
void add_verbosity(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const auto says = [](Verbosity how) { return [how](std::int64_t) { verbosity = how; }; };
    CLI::Option* quiet =
        command->add_flag_function("-q,--quiet", says(Verbosity::quiet), "say only results and errors");
    command
        ->add_flag_function("-v,--verbose", says(Verbosity::verbose),
                            "say which program and files this is made of, and how long it took")
        ->excludes(quiet);
  }
}

void say_more(const InputRecord& record, double seconds) {
  std::cerr << "program: epocast " << program_identity(program_version()) << "\ndata: " << data_directory().string()
            << '\n';
  for (const auto& [file, print] : record.files()) std::cerr << "read: " << file << ' ' << print.substr(0, 12) << '\n';
  std::cerr << fmt::format("took {:.3g} s\n", seconds);
}

int run_guarded(CLI::App& app, CommandContext& context, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    // `nonsense --help` asks for the help of a command that there is not.
    const bool no_command = app.get_subcommands().empty() && !arguments.empty() && !arguments.front().starts_with('-');
    if (problem.get_exit_code() != 0 || no_command) throw ConfigError(usage_problem(app, problem, arguments));
    app.exit(problem, std::cout, std::cerr);  // asked for: help or the version
    flush_output();
    return kDone;
  }
  const auto start = std::chrono::steady_clock::now();
  std::optional<InputRecord> record;
  if (verbosity == Verbosity::verbose) record.emplace();
  const int code = context.action();
  flush_output();
  if (record) say_more(*record, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return code;
}

}  // namespace

std::string program_version() { return EPOCAST_VERSION; }

int report_lack_of_memory() {
  std::cerr << "there is too little memory for this; make the study smaller, or run fewer --jobs at a time\n";
  return kBadInput;
}

int run_command_line(int argc, char** argv, Registries registries) {
  open_standard_files();
  clean_up_on_signals();
  report_lack_of_memory_in_destructors(report_lack_of_memory);
  try {
    CommandContext context{std::move(registries), {}};
    CLI::App app{
        "Forecasts the time, traffic and memory of distributed neural-network training.\n"
        "Example: epocast run experiments/studies/vgg16_skylake.yaml",
        "epocast"};
    app.set_version_flag("--version", "epocast " EPOCAST_VERSION);
    app.require_subcommand(1);
    add_commands(app, context, argc > 1 ? argv[1] : "");
    add_verbosity(app);
    return run_guarded(app, context, argc, argv);
  } catch (const Interrupted& by) {
    std::cout.flush();
    die_of(by.signal);
  } catch (const ConfigError& problem) {
    std::cerr << styled(problem.what(), Style::problem, has_colours(std::cerr)) << '\n';
    return kBadInput;
  } catch (const SimulationError& problem) {
    std::cerr << styled(problem.what(), Style::problem, has_colours(std::cerr)) << '\n';
    return kMissed;
  } catch (const std::bad_alloc&) {
    return report_lack_of_memory();
  } catch (const std::exception& problem) {
    std::cerr << "internal error: " << problem.what() << '\n';
    return kInternalError;
  }
}

}  // namespace epocast
