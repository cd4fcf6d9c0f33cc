#pragma once
// The subcommands of the program. Each adds itself to the parser; what it does runs after parsing and returns the exit
// code.

#include <CLI/App.hpp>
#include <functional>

#include "experiments/scenario.hpp"

namespace epocast {

/// Exit codes of the program.
enum ExitCode { kDone = 0, kMissed = 1, kBadInput = 2, kInternalError = 3 };

/// What commands share.
struct CommandContext {
  Registries registries;
  std::function<int()> action;  ///< set by the subcommand that was chosen
};

void add_run_command(CLI::App& app, CommandContext& context);
void add_sweep_command(CLI::App& app, CommandContext& context);
void add_results_command(CLI::App& app, CommandContext& context);
void add_report_command(CLI::App& app, CommandContext& context);
void add_plan_command(CLI::App& app, CommandContext& context);
void add_learn_command(CLI::App& app, CommandContext& context);
void add_trace_command(CLI::App& app, CommandContext& context);
void add_validate_command(CLI::App& app, CommandContext& context);
void add_list_command(CLI::App& app, CommandContext& context);
void add_platform_command(CLI::App& app, CommandContext& context);
void add_reproduce_command(CLI::App& app, CommandContext& context);
void add_partition_command(CLI::App& app, CommandContext& context);
void add_place_command(CLI::App& app, CommandContext& context);
void add_layerwise_command(CLI::App& app, CommandContext& context);
void add_calibrate_command(CLI::App& app, CommandContext& context);
/// The manual page and completions for shells, of the commands that were added before and after.
void add_manual_command(CLI::App& app, CommandContext& context);

/// "0.3.0".
std::string program_version();

/// Says so on stderr, without needing any; returns the exit code.
int report_lack_of_memory();

/// Parses the arguments, runs the command and turns exceptions into exit codes and one line on stderr.
int run_command_line(int argc, char** argv, Registries registries);

}  // namespace epocast
