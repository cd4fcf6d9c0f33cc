#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "experiments/cli/commands.hpp"
#include "experiments/cli/verbosity.hpp"
#include "experiments/cli/word_option.hpp"
#include "experiments/report/report_page.hpp"
#include "sim/file_output.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

struct ReportArguments {
  std::vector<std::string> files;
  std::string write = "report.html";
  std::string minimise;
  std::string under;
  double budget = 0;
};

int report(const ReportArguments& arguments) {
  ReportQuestion question;
  if (!arguments.minimise.empty())
    question.objective = static_cast<Objective>(choose("--minimise", arguments.minimise, objective_names()));
  if (!arguments.under.empty())
    question.deadline = parse_option("--under", arguments.under, [](const auto& t) { return parse_seconds(t); }).value;
  if (arguments.budget > 0) question.budget = arguments.budget;
  const ReportData data = read_report_data({arguments.files.begin(), arguments.files.end()});
  const std::string page = report_page(data, question, "epocast " + program_version());
  write_file(arguments.write, page);
  if (!data.no_currency.empty())
    print_note(
        fmt::format("{} {} not say in which currency costs are: {}; stores of `sweep` do",
                    fmt::join(data.no_currency, " and "), data.no_currency.size() == 1 ? "does" : "do",
                    data.costs_apart ? "those of several files are not compared" : "all are taken to be in one"));
  if (!has_report_script()) print_note("interactive figures need npm when epocast is built; this page has plain ones");
  std::cout << fmt::format("{}: {}, {}\n", arguments.write, counted(data.rows.size(), "scenario"),
                           to_string(Bytes(static_cast<double>(page.size()))));
  return kDone;
}

}  // namespace

void add_report_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command = app.add_subcommand(
      "report",
      "Write results as one HTML page, which fetches nothing: the answer to a question, figures, tables.\n"
      "Example: epocast report buyers_question.sqlite --minimise cost --under 5d --write buyers.html");
  command
      ->add_option(
          "results", arguments->files,
          "stores of `sweep`, results of `run` in CSV or JSON, files of `run --trace`, `run --details`, `trace "
          "--memory`")
      ->required();
  command->add_option("--write", arguments->write, "the page")->capture_default_str();
  command->add_option(
      "--minimise", arguments->minimise,
      "what the best scenario has least of: cost, time, energy, co2 or target; default: cost if there are any");
  command->add_option("--under", arguments->under, "all of training takes at most this, as in 5d or 100h");
  command->add_option("--budget", arguments->budget, "it costs at most this")->check(CLI::Range(1e-6, 1e12));
  command->callback([arguments, &context] { context.action = [arguments] { return report(*arguments); }; });
}

}  // namespace epocast
