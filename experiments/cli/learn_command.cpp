#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>

#include "experiments/cli/commands.hpp"
#include "experiments/cli/progress_line.hpp"
#include "experiments/fork_pool.hpp"
#include "experiments/kept_results.hpp"
#include "experiments/learning/curves.hpp"
#include "experiments/output.hpp"
#include "experiments/svg.hpp"
#include "experiments/text_table.hpp"
#include "sim/error.hpp"
#include "sim/file_output.hpp"
#include "sim/quantity.hpp"
#include "sim/text.hpp"

namespace epocast {
namespace {

struct LearnArguments {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  std::string format = "table";
  std::string curves;
  std::string plot;
  std::string plot_column = "loss";
  std::string over = "time_s";
  std::string keep;
  int jobs = 0;
};

/// "0.123", or "0.120 .. 0.131" over several seeds.
std::string range_text(std::vector<double> values) {
  if (values.empty()) return "-";
  const auto [low, high] = std::ranges::minmax_element(values);
  return *low == *high ? fmt::format("{:.4g}", *low) : fmt::format("{:.4g} .. {:.4g}", *low, *high);
}

std::vector<std::string> table_row(const ScenarioResult& r) {
  std::vector<std::string> row;
  for (const auto& [axis, value] : r.axes) row.push_back(value);
  const std::vector<learning::LearningOutcome> seeds = unpack_curves(r.curves);
  std::vector<double> losses, accuracies, times, epochs;
  std::size_t diverged = 0;
  for (const learning::LearningOutcome& seed : seeds) {
    const learning::CurvePoint& last = seed.curve.back();
    if (std::isfinite(last.loss)) losses.push_back(last.loss);
    if (last.accuracy && std::isfinite(*last.accuracy)) accuracies.push_back(*last.accuracy);
    diverged += seed.diverged ? 1 : 0;
    if (!seed.reached) continue;
    times.push_back(seed.reached->time);
    epochs.push_back(seed.reached->epoch);
  }
  const bool all = times.size() == seeds.size();
  row.insert(row.end(),
             {fmt::format("{}", r.workers), fmt::format("{}", r.global_batch),
              seeds.empty() ? "-" : to_string(Seconds(seeds.front().curve.back().time)),
              diverged > 0 ? fmt::format("diverged ({} of {})", diverged, seeds.size()) : range_text(losses),
              range_text(accuracies), r.time_to_target_s && all ? to_string(Seconds(*r.time_to_target_s)) : "-",
              seeds.empty() && r.epochs_to_target ? fmt::format("{:.4g}", *r.epochs_to_target)
              : all                               ? range_text(epochs)
                                                  : "-",
              r.mean_staleness ? fmt::format("{:.2f}", *r.mean_staleness) : "-"});
  return row;
}

void print_table(const std::vector<ScenarioResult>& results, OutputFormat format) {
  Cells rows;
  std::string study;
  const auto flush = [&] {
    if (!rows.empty() && format == OutputFormat::markdown)
      std::cout << "### " << markdown(study) << "\n\n" << markdown_table(rows) << '\n';
    else if (!rows.empty())
      std::cout << study << '\n' << align_columns(rows);
    rows.clear();
  };
  for (const ScenarioResult& result : results) {
    if (!result.error.empty()) continue;
    if (rows.empty() || result.study != study) {
      flush();
      study = result.study;
      std::vector<std::string> head;
      for (const auto& [axis, value] : result.axes) head.push_back(axis);
      head.insert(head.end(),
                  {"workers", "batch", "time", "loss", "accuracy", "time to target", "epochs to target", "staleness"});
      rows.push_back(std::move(head));
    }
    rows.push_back(table_row(result));
  }
  flush();
}

int learn(const LearnArguments& arguments, const Registries& registries) {
  const OutputFormat format = parse_output_format(arguments.format);
  check_svg_name("--plot", arguments.plot);
  const std::vector<std::string> columns = curve_columns();
  for (const auto& [option, column] : {std::pair{"--plot-column", arguments.plot_column}, {"--over", arguments.over}})
    if (std::ranges::find(columns, column) == columns.end())
      throw ConfigError(fmt::format("{}: curves have no column '{}'{}", option, column, name_hint(column, columns)));
  std::vector<Override> overrides;
  for (const std::string& text : arguments.overrides) overrides.push_back(parse_override(text));
  std::vector<Scenario> scenarios;
  for (const std::string& file : arguments.files) {
    const Study study = load_users_study(file, overrides);
    const ConfigNode config = study.scenarios.front().config();
    if (!config.has("learning"))
      throw config.error("nothing is to be learned; add `learning: {problem: digits, rate: 0.1}` (docs/learning.md)");
    scenarios.insert(scenarios.end(), study.scenarios.begin(), study.scenarios.end());
  }

  ProgressLine line;
  const int parallel = arguments.jobs > 0 ? arguments.jobs : available_processors();
  const std::vector<ScenarioResult> results =
      run_study_keeping(scenarios, registries, parallel, KeptResults(arguments.keep),
                        [&](const StudyProgress& progress) { line.show(progress); });
  line.clear();

  int code = kDone;
  for (const ScenarioResult& result : results) {
    code = std::max(code, result.exit_code);
    const std::string where = result.scenario.empty() ? "" : "  [" + abridged(printable(result.scenario)) + "]";
    if (!result.error.empty()) std::cerr << result.error << where << '\n';
    for (const std::string& warning : result.warnings) std::cerr << "warning: " << warning << where << '\n';
  }
  if (std::ranges::none_of(results, [](const ScenarioResult& r) { return r.error.empty(); })) return code;
  if (format == OutputFormat::table || format == OutputFormat::markdown)
    print_table(results, format);
  else
    write_results(std::cout, results, format);
  if (!arguments.curves.empty())
    write_file(arguments.curves, [&](std::ostream& out) { write_curves_csv(out, results); });
  if (!arguments.plot.empty()) write_file(arguments.plot, curves_svg(results, arguments.over, arguments.plot_column));
  return code;
}

}  // namespace

void add_learn_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<LearnArguments>();
  CLI::App* command = app.add_subcommand(
      "learn",
      "Train a small problem in the order that the simulated run dictates: loss and accuracy over simulated time.\n"
      "Example: epocast learn experiments/studies/learning_schemes.yaml --plot loss.svg");
  command->add_option("study", arguments->files, "study files (YAML) with a learning block")->required();
  command->add_option("--format", arguments->format, "table, markdown, csv, json or jsonl")->capture_default_str();
  command
      ->add_option("--set", arguments->overrides,
                   "change a key of the study, as in learning.rate=0.05; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--curves", arguments->curves, "write every point of every curve to this CSV file");
  command->add_option("--plot", arguments->plot, "draw the curves to this SVG file, with bands over seeds");
  command->add_option("--plot-column", arguments->plot_column, "what to draw: loss, accuracy, theta or rate")
      ->capture_default_str();
  command->add_option("--over", arguments->over, "over what: time_s, epoch or bytes")->capture_default_str();
  command->add_option("--keep", arguments->keep,
                      "keep each result in this file as it is made, and take from there what is known: to resume");
  command->add_option("--jobs", arguments->jobs, "scenarios at a time; default: one per processor")
      ->check(CLI::Range(1, 4096));
  command->callback([arguments, &context] {
    context.action = [arguments, &context] { return learn(*arguments, context.registries); };
  });
}

}  // namespace epocast
