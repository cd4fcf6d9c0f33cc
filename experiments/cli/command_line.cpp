#include <fcntl.h>
#include <unistd.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/cli/commands.hpp"
#include "experiments/fork_pool.hpp"
#include "sim/config.hpp"
#include "sim/error.hpp"
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
  const int code = context.action();
  flush_output();
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
  try {
    CommandContext context{std::move(registries), {}};
    CLI::App app{
        "Forecasts the time, traffic and memory of distributed neural-network training.\n"
        "Example: epocast run experiments/studies/vgg16_skylake.yaml",
        "epocast"};
    app.set_version_flag("--version", "epocast " EPOCAST_VERSION);
    app.require_subcommand(1);
    add_run_command(app, context);
    add_sweep_command(app, context);
    add_results_command(app, context);
    add_report_command(app, context);
    add_plan_command(app, context);
    add_learn_command(app, context);
    add_trace_command(app, context);
    add_validate_command(app, context);
    add_list_command(app, context);
    add_platform_command(app, context);
    add_reproduce_command(app, context);
    add_partition_command(app, context);
    add_place_command(app, context);
    add_layerwise_command(app, context);
    add_calibrate_command(app, context);
    add_manual_command(app, context);
    return run_guarded(app, context, argc, argv);
  } catch (const Interrupted& by) {
    std::cout.flush();
    die_of(by.signal);
  } catch (const ConfigError& problem) {
    std::cerr << problem.what() << '\n';
    return kBadInput;
  } catch (const SimulationError& problem) {
    std::cerr << problem.what() << '\n';
    return kMissed;
  } catch (const std::bad_alloc&) {
    return report_lack_of_memory();
  } catch (const std::exception& problem) {
    std::cerr << "internal error: " << problem.what() << '\n';
    return kInternalError;
  }
}

}  // namespace epocast
