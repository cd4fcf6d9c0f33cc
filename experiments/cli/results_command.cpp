#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "experiments/cli/commands.hpp"
#include "experiments/output.hpp"
#include "experiments/store/compare.hpp"
#include "experiments/store/result_store.hpp"
#include "sim/config.hpp"
#include "sim/text.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

struct ResultsArguments {
  std::string store;
  std::string where;
  std::string format = "table";
  std::string columns;
  std::string against;
  std::vector<std::string> fail_on;
  std::int64_t run = 0;
  bool runs = false;
  std::vector<std::string> merged;
};

/// A table for people of all values of these columns.
void write_columns(std::ostream& out, const std::vector<ScenarioResult>& results,
                   const std::vector<std::string>& columns, OutputFormat format) {
  if (format == OutputFormat::csv) {
    write_csv_head(out, columns);
    for (const ScenarioResult& result : results) write_csv_row(out, columns, result);
    return;
  }
  std::vector<std::vector<std::string>> rows{columns};
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ScenarioResult& result : results) {
    const nlohmann::ordered_json row = to_json(result);
    nlohmann::ordered_json chosen;
    std::vector<std::string> cells;
    for (const std::string& column : columns) {
      chosen[column] = row.contains(column) ? row.at(column) : nlohmann::ordered_json(nullptr);
      const nlohmann::ordered_json& value = chosen[column];
      cells.push_back(value.is_null()           ? "-"
                      : value.is_string()       ? value.get<std::string>()
                      : value.is_number_float() ? fmt::format("{:.6g}", value.get<double>())
                                                : value.dump());
    }
    rows.push_back(std::move(cells));
    if (format == OutputFormat::jsonl) out << chosen.dump() << '\n';
    list.push_back(std::move(chosen));
  }
  if (format == OutputFormat::table) out << align_columns(rows);
  if (format == OutputFormat::json) out << list.dump(2) << '\n';
}

std::vector<std::string> chosen_columns(const std::string& text, const std::vector<ScenarioResult>& results) {
  std::vector<std::string> axes;
  for (const ScenarioResult& result : results)
    for (const auto& [axis, value] : result.axes) add_name(axes, axis);
  const std::vector<std::string> all = result_columns(axes);
  std::vector<std::string> columns;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    columns.push_back(trimmed(text.substr(at, end - at)));
    if (std::find(all.begin(), all.end(), columns.back()) == all.end())
      throw ConfigError("--columns: no column '" + columns.back() + "'" + name_hint(columns.back(), all));
    at = end + 1;
  }
  return columns;
}

int list_runs(ResultStore& store) {
  std::vector<std::vector<std::string>> rows{{"run", "study", "scenarios", "stored", "started", "program"}};
  for (const StoredRun& run : store.runs())
    rows.push_back({std::to_string(run.id), run.study, std::to_string(run.scenarios), std::to_string(run.stored),
                    run.started, run.program});
  std::cout << align_columns(rows);
  return kDone;
}

/// "old.sqlite", "old.sqlite:3" or, of the same store, "3".
std::vector<StoredRow> rows_against(const std::string& text, ResultStore& store, const std::string& where) {
  const auto number = [](std::string_view digits, std::int64_t& out) {
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    return status == std::errc() && end == digits.data() + digits.size();
  };
  std::int64_t run = 0;
  if (number(text, run)) return store.rows(run, where);
  const std::size_t colon = text.rfind(':');
  const bool has_run = colon != std::string::npos && number(std::string_view(text).substr(colon + 1), run);
  ResultStore other(has_run ? text.substr(0, colon) : text, ResultStore::Use::read);
  return other.rows(run, where);
}

int compare_with(const ResultsArguments& arguments, ResultStore& store) {
  std::vector<RegressionRule> rules;
  for (const std::string& text : arguments.fail_on) rules.push_back(parse_regression_rule(text));
  const std::vector<StoredRow> before = rows_against(arguments.against, store, arguments.where);
  const std::vector<StoredRow> after = store.rows(arguments.run, arguments.where);
  const std::vector<Difference> differences = compare(before, after, rules);
  std::vector<std::vector<std::string>> rows{{"", "study", "scenario", "column", "before", "after"}};
  std::size_t worse = 0;
  for (const Difference& d : differences) {
    worse += d.worse ? 1 : 0;
    rows.push_back({d.worse ? "worse" : "", d.study, abridged(printable(d.scenario)), d.column,
                    abridged(printable(d.before)), abridged(printable(d.after))});
  }
  if (!differences.empty()) std::cout << align_columns(rows);
  std::cout << fmt::format("{} compared, {}, {} worse\n", counted(before.size(), "row"),
                           counted(differences.size(), "difference"), worse);
  return worse > 0 ? kMissed : kDone;
}

int list_results(const ResultsArguments& arguments) {
  const OutputFormat format = parse_output_format(arguments.format);
  if (arguments.store.empty()) throw ConfigError("results: name a store, as in `epocast results study.sqlite`");
  ResultStore store(arguments.store, ResultStore::Use::read);
  if (arguments.runs) return list_runs(store);
  if (!arguments.against.empty()) return compare_with(arguments, store);
  if (!arguments.fail_on.empty()) throw ConfigError("--fail-on compares: name what with, as in --against old.sqlite");
  std::vector<ScenarioResult> results;
  for (const StoredRow& row : store.rows(arguments.run, arguments.where)) results.push_back(row.result());
  if (!arguments.columns.empty())
    write_columns(std::cout, results, chosen_columns(arguments.columns, results), format);
  else
    write_results(std::cout, results, format);
  return kDone;
}

int merge_stores(const ResultsArguments& arguments) {
  if (arguments.merged.size() < 2)
    throw ConfigError("results merge: name the store to write, and those to take rows from");
  ResultStore into(arguments.merged.front(), ResultStore::Use::write);
  for (std::size_t s = 1; s < arguments.merged.size(); ++s) {
    ResultStore from(arguments.merged[s], ResultStore::Use::read);
    std::cout << fmt::format("{}: {} new\n", arguments.merged[s], counted(into.merge(from), "row"));
  }
  return kDone;
}

}  // namespace

void add_results_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<ResultsArguments>();
  CLI::App* command = app.add_subcommand(
      "results",
      "List, filter, export and compare what `sweep` has stored.\n"
      "Example: epocast results scaling.sqlite --where 'workers >= 8 and efficiency < 0.9' --format csv");
  command->add_option("store", arguments->store, "a store; what is listed is the last run of each study in it");
  command->add_option("--where", arguments->where, "only rows for which this holds, as SQL writes it");
  command->add_option("--format", arguments->format, "table, csv, json or jsonl")->capture_default_str();
  command->add_option("--columns", arguments->columns, "only these, as in workers,total_s,cost");
  command->add_option("--run", arguments->run, "of this run, see --runs")->check(CLI::Range(1, 1'000'000'000));
  command->add_flag("--runs", arguments->runs, "list the runs instead");
  command->add_option("--against", arguments->against,
                      "say what differs from another store, a run of it (old.sqlite:3), or a run of this one (3)");
  command
      ->add_option(
          "--fail-on", arguments->fail_on,
          "with --against, exit with 1 if a column gets worse by more than this: 'iteration_s 1 %'; repeatable")
      ->allow_extra_args(false);
  CLI::App* merging = command->add_subcommand("merge",
                                              "Put the rows of several stores, such as shards, into one.\n"
                                              "Example: epocast results merge all.sqlite part-*.sqlite");
  merging->add_option("stores", arguments->merged, "the store to write, and those to take rows from")->required();
  merging->callback([arguments, &context] { context.action = [arguments] { return merge_stores(*arguments); }; });
  command->callback([arguments, &context] {
    if (arguments->merged.empty()) context.action = [arguments] { return list_results(*arguments); };
  });
}

}  // namespace epocast
