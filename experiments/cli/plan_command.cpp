#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <optional>

#include "experiments/cli/commands.hpp"
#include "experiments/cli/progress_line.hpp"
#include "experiments/cli/verbosity.hpp"
#include "experiments/cli/word_option.hpp"
#include "experiments/fork_pool.hpp"
#include "experiments/output.hpp"
#include "experiments/plan/plan_report.hpp"
#include "experiments/plan/sensitivity.hpp"
#include "experiments/sweep/axis_check.hpp"
#include "sim/file_output.hpp"
#include "sim/text.hpp"

namespace epocast {
namespace {

struct PlanArguments {
  std::string file;
  std::vector<std::string> overrides;
  std::string minimise = "cost";
  std::string under;
  double budget = 0;
  bool fits = false, exhaustive = false;
  std::string format = "table";
  std::string write, store;
  bool whole_front = false, no_sensitivity = false;
  std::size_t top = 5;
  int jobs = 0;
};

int plan(const PlanArguments& arguments, const Registries& registries) {
  const OutputFormat format = parse_output_format(arguments.format);
  std::vector<Override> overrides;
  for (const std::string& text : arguments.overrides) overrides.push_back(parse_override(text));
  const Study study = load_users_study(arguments.file, overrides);
  for (const std::string& note : study.notes) print_note(note);
  check_axes(study.scenarios, registries);
  PlanOptions options{.objective = static_cast<Objective>(choose("--minimise", arguments.minimise, objective_names())),
                      .fits = arguments.fits,
                      .exhaustive = arguments.exhaustive,
                      .whole_front = arguments.whole_front,
                      .alternatives = format == OutputFormat::table,
                      .parallel = arguments.jobs > 0 ? arguments.jobs : available_processors()};
  if (!arguments.under.empty())
    options.deadline = parse_option("--under", arguments.under, [](const auto& t) { return parse_seconds(t); }).value;
  if (arguments.budget > 0) options.budget = arguments.budget;

  const SweepOptions sweep{.parallel = options.parallel,
                           .version = program_version(),
                           .folder = std::filesystem::path(arguments.file).parent_path()};
  ResultStore store(arguments.store.empty() ? default_store(arguments.file) : std::filesystem::path(arguments.store),
                    ResultStore::Use::write);
  StoredScenarios stored(study.scenarios, store, registries, sweep, StoredScenarios::As::run);
  ProgressLine line;
  const auto progress = [&](const std::string& text) { line.show(text); };
  const Plan found = make_plan(study.scenarios, registries, options, stored, progress);
  if (format == OutputFormat::table) {
    std::optional<Sensitivity> changes;
    if (!arguments.no_sensitivity && !found.ranking.empty())
      changes = sensitivity(study.scenarios, found, options, stored, store, registries, sweep, progress);
    line.clear();
    write_plan(std::cout, study.scenarios, found, options, arguments.top);
    if (changes) {
      std::cout << fmt::format("\nwhat would change the decision, among the {} that come closest\n",
                               changes->rivals.size())
                << sensitivity_text(study.scenarios, *changes, options.objective,
                                    found.candidates[found.ranking.front()].result->currency);
      std::cout << "\nthe study of the first (--write FILE)\n" << study_text(study.scenarios[found.ranking.front()]);
    }
  } else {
    line.clear();
    std::vector<ScenarioResult> results;
    for (const std::size_t i : found.ranking) results.push_back(*found.candidates[i].result);
    write_results(std::cout, results, format);
  }
  if (!arguments.write.empty() && !found.ranking.empty())
    write_file(arguments.write, study_text(study.scenarios[found.ranking.front()]));
  return found.ranking.empty() ? kMissed : kDone;
}

}  // namespace

void add_plan_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command = app.add_subcommand(
      "plan",
      "Find the best scenario of a study with sweep axes, simulating only those that could be it.\n"
      "Example: epocast plan experiments/studies/buyers_question.yaml --minimise cost --under 5d --fits");
  command->add_option("study", arguments->file, "a study (YAML) whose axes are the choices")->required();
  command->add_option("--minimise", arguments->minimise, "cost, time, energy, co2 or target")->capture_default_str();
  command->add_option("--under", arguments->under, "training has to end within this time, as in 5d");
  command->add_option("--budget", arguments->budget, "it may cost this much, in the currency of the prices")
      ->check(CLI::Range(1e-6, 1e12));
  command->add_flag("--fits", arguments->fits, "only what fits into the memory of the devices");
  command->add_flag("--exhaustive", arguments->exhaustive, "simulate all that could meet the conditions, to be sure");
  command->add_flag("--front", arguments->whole_front, "simulate all that could be on the Pareto front, too");
  command->add_flag("--no-sensitivity", arguments->no_sensitivity,
                    "do not find out what would change the decision, which takes more simulations");
  command->add_option("--store", arguments->store,
                      "where results are kept, as of sweep; default: the study's name with .sqlite, in this folder");
  command->add_option("--top", arguments->top, "rows of the ranking to show")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--format", arguments->format, "table, or the ranking as markdown, csv, json or jsonl")
      ->capture_default_str();
  command->add_option("--write", arguments->write, "write the best scenario to this file, as a study");
  command
      ->add_option("--set", arguments->overrides, "change a key of the study, as in batch.global=1024; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--jobs", arguments->jobs, "scenarios at a time; default: one per processor")
      ->check(CLI::Range(1, 4096));
  command->callback([arguments, &context] {
    context.action = [arguments, &context] { return plan(*arguments, context.registries); };
  });
}

}  // namespace epocast
