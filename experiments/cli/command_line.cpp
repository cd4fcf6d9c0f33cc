#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <iostream>

#include "experiments/cli/commands.hpp"
#include "sim/error.hpp"

namespace epocast {

int run_command_line(int argc, char** argv, Registries registries) {
  CommandContext context{std::move(registries), {}};
  CLI::App app{"Forecasts the time, traffic and memory of distributed neural-network training.\n"
               "Example: epocast run experiments/studies/vgg16_skylake.yaml",
               "epocast"};
  app.set_version_flag("--version", "epocast " EPOCAST_VERSION);
  app.require_subcommand(1);
  add_run_command(app, context);
  add_trace_command(app, context);
  add_validate_command(app, context);
  add_list_command(app, context);
  add_reproduce_command(app, context);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    const int code = app.exit(problem, std::cout, std::cerr);  // prints help too, which is no error
    return code == 0 ? kDone : kBadInput;
  }
  try {
    const int code = context.action();
    std::cout.flush();
    if (!std::cout) throw ConfigError("cannot write the results to standard output");
    return code;
  } catch (const ConfigError& problem) {
    std::cerr << problem.what() << '\n';
    return kBadInput;
  } catch (const SimulationError& problem) {
    std::cerr << problem.what() << '\n';
    return kMissed;
  } catch (const std::exception& problem) {
    std::cerr << "internal error: " << problem.what() << '\n';
    return kInternalError;
  }
}

}  // namespace epocast
