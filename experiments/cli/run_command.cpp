#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <tuple>

#include "experiments/cli/commands.hpp"
#include "experiments/cli/progress_line.hpp"
#include "experiments/cli/verbosity.hpp"
#include "experiments/fork_pool.hpp"
#include "experiments/line_plot.hpp"
#include "experiments/output.hpp"
#include "experiments/result_stream.hpp"
#include "experiments/run_study.hpp"
#include "experiments/scaled_setting.hpp"
#include "experiments/svg.hpp"
#include "experiments/sweep/axis_check.hpp"
#include "experiments/time_scale.hpp"
#include "sim/error.hpp"
#include "sim/file_output.hpp"
#include "sim/process.hpp"
#include "sim/text.hpp"

namespace epocast {
namespace {

struct RunArguments {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  std::string format = "table";
  std::string columns;
  std::string trace;
  std::string details;
  std::string plot;
  std::string plot_column = "samples_per_s";
  bool explain = false;
  bool interval = false;
  bool exact = false;
  bool unfolded = false;
  int jobs = 0;
  std::size_t scenario = 0;  ///< from 1; 0: all
};

/// Texts, and the results that each belongs to.
using Notes = std::vector<std::pair<std::string, std::vector<const ScenarioResult*>>>;

void add_note(Notes& notes, const std::string& text, const ScenarioResult& of) {
  auto same = std::find_if(notes.begin(), notes.end(), [&](const auto& note) { return note.first == text; });
  if (same == notes.end()) same = notes.insert(notes.end(), {text, {}});
  same->second.push_back(&of);
}

/// One line on stderr for each text, however many of the `all` scenarios share it.
void print_notes(const Notes& notes, const std::string& head, std::size_t all) {
  for (const auto& [text, of] : notes) {
    const std::string first =
        abridged(printable(of.front()->scenario.empty() ? of.front()->study : of.front()->scenario));
    std::cerr << head << text;
    if (of.size() > 1) std::cerr << fmt::format("  [{} scenarios; the first: {}]", of.size(), first);
    if (of.size() == 1 && all > 1) std::cerr << "  [" << first << ']';
    std::cerr << '\n';
  }
}

/// Says on stderr what went wrong. Returns the worst exit code.
int report_errors(const std::vector<ScenarioResult>& results) {
  int code = kDone;
  Notes errors;
  for (const ScenarioResult& result : results) {
    code = std::max(code, result.exit_code);
    if (!result.error.empty()) add_note(errors, result.error, result);
  }
  print_notes(errors, "", results.size());
  return code;
}

void report_warnings(const std::vector<ScenarioResult>& results) {
  if (verbosity == Verbosity::quiet) return;
  Notes warnings;
  for (const ScenarioResult& result : results)
    for (const std::string& warning : result.warnings) add_note(warnings, warning, result);
  print_notes(warnings, "warning: ", results.size());
}

/// Whether nobody reads standard output any more.
bool reader_is_gone() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}

/// Writes what was asked for beside the rows.
void write_files(const RunArguments& arguments, const std::vector<ScenarioResult>& results) {
  if (!arguments.details.empty())
    write_file(arguments.details, [&](std::ostream& out) { write_details(out, results); });
  if (!arguments.plot.empty()) write_file(arguments.plot, line_plot_svg(results, arguments.plot_column));
}

/// Adds to each explanation what links or devices twice as fast would give, which takes simulations of their own.
void explain_by_doubling(const std::vector<Scenario>& scenarios, const Registries& registries, const RunOptions& as,
                         int parallel, std::vector<ScenarioResult>& results) {
  const std::tuple<const char*, const char*, double> ways[] = {{"Links", "network.efficiency", 2},
                                                               {"Devices", "compute.scale", 0.5}};
  std::vector<Scenario> doubled;
  for (const Scenario& scenario : scenarios)
    for (const auto& [what, key, factor] : ways)
      doubled.push_back(with_scaled(scenario, scenario.config(), key, factor, 1).value_or(scenario));
  const std::vector<ScenarioResult> other =
      run_study(doubled, registries, {.exact = as.exact, .fold = as.fold}, parallel, {});
  for (std::size_t s = 0; s < results.size(); ++s)
    for (std::size_t w = 0; w < std::size(ways); ++w) {
      const ScenarioResult& then = other[s * std::size(ways) + w];
      if (results[s].explanation.empty() || !then.error.empty()) continue;
      results[s].explanation += fmt::format("{} twice as fast would give {} ({:+.1f} %).\n", std::get<0>(ways[w]),
                                            TimeScale(results[s].iteration_s).text(then.iteration_s),
                                            100 * (then.iteration_s / results[s].iteration_s - 1));
    }
}

int run(const RunArguments& arguments, const Registries& registries) {
  const OutputFormat format = parse_output_format(arguments.format);
  if (!arguments.plot.empty()) check_svg_name("--plot", arguments.plot);
  std::vector<Override> overrides;
  for (const std::string& text : arguments.overrides) overrides.push_back(parse_override(text));
  std::vector<Scenario> scenarios;
  for (const std::string& file : arguments.files) {
    Study study = load_users_study(file, overrides);
    for (const std::string& note : study.notes) print_note(note);
    check_axes(study.scenarios, registries);
    if (verbosity == Verbosity::verbose && !study.scenarios.empty())
      read_scenario(study.scenarios.front(), registries);  // so that its files are among those that were read
    if (arguments.scenario > study.scenarios.size())
      throw ConfigError(
          fmt::format("--scenario {}: study '{}' has {}", arguments.scenario, study.name, study.scenarios.size()));
    if (arguments.scenario > 0) study.scenarios = {study.scenarios[arguments.scenario - 1]};
    std::move(study.scenarios.begin(), study.scenarios.end(), std::back_inserter(scenarios));
  }
  if (!arguments.plot.empty()) {
    std::vector<PlotAxes> axes;
    for (const Scenario& scenario : scenarios) axes.push_back(scenario.axes);
    check_plot(axes, arguments.plot_column);
  }
  const RunOptions options{.exact = arguments.exact,
                           .fold = !arguments.unfolded,
                           .explain = arguments.explain,
                           .interval = arguments.interval,
                           .details = !arguments.details.empty(),
                           .trace_file = arguments.trace};
  const int parallel = arguments.jobs > 0 ? arguments.jobs : available_processors();
  const bool has_files = !arguments.details.empty() || !arguments.plot.empty();
  if (has_files) std::signal(SIGPIPE, SIG_IGN);  // they are written even if whoever reads the rows stops reading

  std::vector<ScenarioResult> results;
  ResultStream rows(std::cout, format, arguments.columns, scenarios, results);
  ProgressLine line;
  std::optional<Interrupted> interrupted;
  try {
    run_study(
        scenarios, registries, options, parallel,
        [&](const StudyProgress& progress) {
          if (progress.latest != nullptr) {
            line.clear();
            rows.add(progress.index);
          }
          line.show(progress);
        },
        results);
  } catch (const Interrupted& by) {
    interrupted = by;
  }
  if (options.explain && !interrupted) explain_by_doubling(scenarios, registries, options, parallel, results);
  line.clear();
  const std::vector<ScenarioResult> ended = rows.ended();
  const int code = report_errors(ended);
  // Tables for people end with them.
  const bool says_them =
      arguments.columns.empty() && (format == OutputFormat::table || format == OutputFormat::markdown);
  if (!says_them) report_warnings(ended);
  rows.finish();
  if (interrupted) {
    std::cerr << fmt::format("interrupted after {} of {} scenarios\n", ended.size(), scenarios.size());
    throw *interrupted;
  }
  write_files(arguments, ended);
  if (has_files && !std::cout.flush() && reader_is_gone()) die_of(SIGPIPE);
  return code;
}

}  // namespace

void add_run_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command =
      app.add_subcommand("run",
                         "Simulate studies; one with sweep axes runs their product on all processors.\n"
                         "Example: epocast run experiments/studies/vgg16_skylake.yaml --set workers=8 --explain");
  command->add_option("study", arguments->files, "study files (YAML)")->required();
  command->add_option("--format", arguments->format, "table, markdown, csv, json or jsonl")->capture_default_str();
  command->add_option("--columns", arguments->columns, "only these, as in workers,iteration_s,limited_by");
  command
      ->add_option("--set", arguments->overrides,
                   "change a key of the study, as in batch.per_worker=64; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--trace", arguments->trace,
                      "write the timeline for chrome://tracing or ui.perfetto.dev to this file");
  command->add_option("--details", arguments->details,
                      "write what the columns leave out, such as memory by purpose, to this JSON file");
  command->add_option(
      "--plot", arguments->plot,
      "write a column over the first sweep axis of numbers to this SVG file, a line for each of the rest");
  command->add_option("--plot-column", arguments->plot_column, "which column to plot")->capture_default_str();
  command->add_flag("--explain", arguments->explain, "say what limits each run, step by step");
  command->add_flag("--interval", arguments->interval,
                    "how long an iteration may take as the stack's constants are uncertain: two simulations for each");
  command->add_flag("--exact", arguments->exact,
                    "simulate all iterations instead of extrapolating from the steady state");
  command->add_flag("--unfolded", arguments->unfolded, "simulate every worker even where they are interchangeable");
  command->add_option("--scenario", arguments->scenario, "run only this scenario of a study with sweep axes, from 1")
      ->check(CLI::Range(1, 1'000'000'000));
  command->add_option("--jobs", arguments->jobs, "scenarios at a time; default: one per processor")
      ->check(CLI::Range(1, 4096));
  command->callback([arguments, &context] {
    context.action = [arguments, &context] { return run(*arguments, context.registries); };
  });
}

}  // namespace epocast
