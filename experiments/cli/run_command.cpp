#include <unistd.h>

#include <fmt/format.h>
#include <algorithm>
#include <iostream>
#include <memory>

#include "experiments/cli/commands.hpp"
#include "experiments/fork_pool.hpp"
#include "experiments/line_plot.hpp"
#include "experiments/output.hpp"
#include "experiments/run_study.hpp"
#include "sim/error.hpp"
#include "sim/file_output.hpp"

namespace epocast {
namespace {

struct RunArguments {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  std::string format = "table";
  std::string trace;
  std::string details;
  std::string plot;
  std::string plot_column = "samples_per_s";
  bool explain = false;
  bool exact = false;
  bool unfolded = false;
  int jobs = 0;
  std::size_t scenario = 0;  ///< from 1; 0: all
};

/// A line on the terminal that tells how far a long run is; nothing where stderr is not a terminal.
void show_progress(std::size_t done, std::size_t of, const ScenarioResult& latest) {
  if (of < 2 || isatty(STDERR_FILENO) == 0) return;
  constexpr std::size_t kWidth = 24;
  const std::size_t filled = done * kWidth / of;
  std::cerr << fmt::format("\r\033[K[{:#<{}}{:.<{}}] {}/{}  {:.60}", "", filled, "", kWidth - filled, done, of,
                           latest.scenario);
  if (done == of) std::cerr << "\r\033[K";
  std::cerr << std::flush;
}

/// One line on stderr for each error, however many scenarios share it. Returns the worst exit code.
int report_errors(const std::vector<ScenarioResult>& results) {
  int code = kDone;
  std::vector<std::pair<std::string, std::vector<const ScenarioResult*>>> errors;
  for (const ScenarioResult& result : results) {
    code = std::max(code, result.exit_code);
    if (result.error.empty()) continue;
    auto same = std::find_if(errors.begin(), errors.end(), [&](const auto& e) { return e.first == result.error; });
    if (same == errors.end()) same = errors.insert(errors.end(), {result.error, {}});
    same->second.push_back(&result);
  }
  for (const auto& [error, of] : errors) {
    const std::string first = of.front()->scenario.empty() ? of.front()->study : of.front()->scenario;
    std::cerr << error;
    if (of.size() > 1) std::cerr << fmt::format("  [{} scenarios; the first: {}]", of.size(), first);
    if (of.size() == 1 && results.size() > 1) std::cerr << "  [" << first << ']';
    std::cerr << '\n';
  }
  return code;
}

int run(const RunArguments& arguments, const Registries& registries) {
  const OutputFormat format = parse_output_format(arguments.format);
  if (!arguments.plot.empty()) check_plot_column(arguments.plot_column);
  std::vector<Override> overrides;
  for (const std::string& text : arguments.overrides) overrides.push_back(parse_override(text));
  std::vector<Scenario> scenarios;
  for (const std::string& file : arguments.files) {
    Study study = load_study(file, overrides);
    if (arguments.scenario > study.scenarios.size())
      throw ConfigError(
          fmt::format("--scenario {}: study '{}' has {}", arguments.scenario, study.name, study.scenarios.size()));
    if (arguments.scenario > 0) study.scenarios = {study.scenarios[arguments.scenario - 1]};
    std::move(study.scenarios.begin(), study.scenarios.end(), std::back_inserter(scenarios));
  }
  const RunOptions options{.exact = arguments.exact,
                           .fold = !arguments.unfolded,
                           .explain = arguments.explain,
                           .details = !arguments.details.empty(),
                           .trace_file = arguments.trace};
  const int parallel = arguments.jobs > 0 ? arguments.jobs : available_processors();
  const std::vector<ScenarioResult> results = run_study(scenarios, registries, options, parallel, show_progress);

  const int code = report_errors(results);
  if (!arguments.details.empty())
    write_file(arguments.details, [&](std::ostream& out) { write_details(out, results); });
  if (!arguments.plot.empty()) {
    const std::string picture = line_plot_svg(results, arguments.plot_column);
    write_file(arguments.plot, [&](std::ostream& out) { out << picture; });
  }
  // After the files: whoever reads this may stop reading. Where nothing came out, the errors have said all there is to
  // say.
  if (std::any_of(results.begin(), results.end(), [](const auto& r) { return r.error.empty(); }))
    write_results(std::cout, results, format);
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
  command->add_option("--format", arguments->format, "table, csv, json or jsonl")->capture_default_str();
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
  command->add_flag("--exact", arguments->exact,
                    "simulate all iterations instead of extrapolating from the steady state");
  command->add_flag("--unfolded", arguments->unfolded, "simulate every worker even where they are interchangeable");
  command->add_option("--scenario", arguments->scenario, "run only this scenario of a study with sweep axes, from 1");
  command->add_option("--jobs", arguments->jobs, "scenarios at a time; default: one per processor")
      ->check(CLI::Range(1, 4096));
  command->callback([arguments, &context] {
    context.action = [arguments, &context] { return run(*arguments, context.registries); };
  });
}

}  // namespace epocast
