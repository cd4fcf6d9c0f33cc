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
#include "experiments/text_table.hpp"
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
  std::string records;
  std::vector<std::string> merged;
};

int list_runs(ResultStore& store) {
  std::vector<std::vector<std::string>> rows{{"run", "study", "scenarios", "stored", "started", "program"}};
  for (const StoredRun& run : store.runs())
    rows.push_back({std::to_string(run.id), run.study, std::to_string(run.scenarios), std::to_string(run.stored),
                    run.started, run.program});
  std::cout << align_columns(rows);
  return kDone;
}

std::string cell(const nlohmann::ordered_json& value) {
  if (value.is_null()) return "";
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// What `reproduce` or `calibrate` stored: the last rows of each name. Rows of different columns are tables of their
/// own.
int list_records(ResultStore& store, const std::string& kind, OutputFormat format) {
  const std::vector<std::string> kinds{"reproduce", "calibrate"};
  if (std::ranges::find(kinds, kind) == kinds.end())
    throw ConfigError("--records: there are none of '" + kind + "'" + name_hint(kind, kinds));
  if (format == OutputFormat::csv || format == OutputFormat::markdown)
    throw ConfigError("--records are printed as table, json or jsonl");
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  Cells rows;
  std::vector<std::string> head;
  const auto print = [&] {
    if (!rows.empty()) std::cout << align_columns(rows) << '\n';
    rows.clear();
  };
  for (const StoredRecord& record : store.records(kind)) {
    const nlohmann::ordered_json columns = nlohmann::ordered_json::parse(record.columns);
    nlohmann::ordered_json row{{"name", record.name}, {"written", record.written}, {"program", record.program}};
    row.update(columns);
    if (format == OutputFormat::jsonl) {
      std::cout << row.dump() << '\n';
    } else if (format == OutputFormat::json) {
      all.push_back(std::move(row));
    } else {
      std::vector<std::string> own{"name"}, cells{record.name};
      for (const auto& [name, value] : columns.items()) {
        own.push_back(name);
        cells.push_back(abridged(printable(cell(value))));
      }
      if (own != head) print();
      if (rows.empty()) rows.push_back(head = own);
      rows.push_back(std::move(cells));
    }
  }
  print();
  if (format == OutputFormat::json) std::cout << all.dump(1) << '\n';
  return kDone;
}

/// "old.sqlite", "old.sqlite:3" or, of the same store, "3".
std::vector<StoredRow> rows_against(const std::string& text, ResultStore& store, const std::string& where) {
  const auto number = [](std::string_view digits, std::int64_t& out) {
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    return status == std::errc() && end == digits.data() + digits.size();
  };
  std::int64_t run = 0;
  const auto check = [&] {
    if (run < 1) throw ConfigError(fmt::format("--against {}: runs have numbers from 1 on, see --runs", text));
  };
  if (number(text, run)) {
    check();
    return store.rows(run, where);
  }
  const std::size_t colon = text.rfind(':');
  const bool has_run = colon != std::string::npos && number(std::string_view(text).substr(colon + 1), run);
  if (has_run) check();
  ResultStore other(has_run ? text.substr(0, colon) : text, ResultStore::Use::read);
  return other.rows(run, where);
}

std::vector<ScenarioResult> results_of(const std::vector<StoredRow>& rows) {
  std::vector<ScenarioResult> out;
  for (const StoredRow& row : rows) out.push_back(row.result());
  return out;
}

/// The columns that were asked for. The store knows them, whether or not a row meets the condition.
std::vector<std::string> columns_asked_for(const ResultsArguments& arguments, ResultStore& store) {
  if (arguments.columns.empty()) return {};
  return chosen_columns(arguments.columns, axis_names(results_of(store.rows(arguments.run, ""))));
}

/// Differences for programs: values as they are, with all digits.
void write_differences(const std::vector<Difference>& differences, OutputFormat format) {
  using nlohmann::ordered_json;
  if (format == OutputFormat::csv) {
    std::cout << "worse,study,scenario,column,before,after\n";
    const auto text = [](const std::string& json) {
      const ordered_json value = ordered_json::parse(json);
      return value.is_null() ? "" : csv_field(value.is_string() ? value.get<std::string>() : json);
    };
    for (const Difference& d : differences)
      std::cout << fmt::format("{},{},{},{},{},{}\n", d.worse, csv_field(d.study), csv_field(d.scenario), d.column,
                               text(d.before), text(d.after));
    return;
  }
  ordered_json list = ordered_json::array();
  for (const Difference& d : differences)
    list.push_back({{"worse", d.worse},
                    {"study", d.study},
                    {"scenario", d.scenario},
                    {"column", d.column},
                    {"before", ordered_json::parse(d.before)},
                    {"after", ordered_json::parse(d.after)}});
  const auto dump = [](const ordered_json& value, int indent) {
    std::cout << value.dump(indent, ' ', false, ordered_json::error_handler_t::replace) << '\n';
  };
  if (format == OutputFormat::json) return dump(list, 2);
  for (const ordered_json& entry : list) dump(entry, -1);
}

/// Differences for people. Texts that would make every line of the table as long come after it.
void show_differences(const std::vector<Difference>& differences, OutputFormat format) {
  constexpr std::size_t kLongText = 24;
  const bool aligned = format == OutputFormat::table;
  Cells rows{{"", "study", "scenario", "column", "before", "after"}};
  std::string texts;
  for (const Difference& d : differences) {
    const std::string before = abridged(printable(cell(nlohmann::ordered_json::parse(d.before))));
    const std::string after = abridged(printable(cell(nlohmann::ordered_json::parse(d.after))));
    const std::string worse = d.worse ? "worse" : "", scenario = abridged(printable(d.scenario));
    if (aligned && std::max(display_width(before), display_width(after)) > kLongText)
      texts += fmt::format("{}{}{}{}: {}\n  before: {}\n  after:  {}\n", worse, d.worse ? "  " : "", d.study,
                           scenario.empty() ? "" : " " + scenario, d.column, before, after);
    else
      rows.push_back({worse, d.study, scenario, d.column, before, after});
  }
  if (rows.size() > 1) std::cout << (aligned ? align_columns(rows) : markdown_table(rows));
  std::cout << texts;
}

int compare_with(const ResultsArguments& arguments, ResultStore& store, OutputFormat format) {
  std::vector<RegressionRule> rules;
  for (const std::string& text : arguments.fail_on) rules.push_back(parse_regression_rule(text));
  const std::vector<StoredRow> before = rows_against(arguments.against, store, arguments.where);
  const std::vector<StoredRow> after = store.rows(arguments.run, arguments.where);
  std::vector<Difference> differences = compare(before, after, rules);
  // What is worse, gone or fails is told whatever columns were asked for.
  if (const std::vector<std::string> columns = columns_asked_for(arguments, store); !columns.empty())
    std::erase_if(differences, [&](const Difference& d) {
      return !d.worse && d.column != "row" && d.column != "error" &&
             std::ranges::find(columns, d.column) == columns.end();
    });
  const auto worse = std::ranges::count(differences, true, &Difference::worse);
  if (format == OutputFormat::table || format == OutputFormat::markdown) {
    show_differences(differences, format);
    std::cout << fmt::format("{} compared, {}, {} worse\n", counted(before.size(), "row"),
                             counted(differences.size(), "difference"), worse);
  } else {
    write_differences(differences, format);
  }
  return worse > 0 ? kMissed : kDone;
}

int list_results(const ResultsArguments& arguments) {
  const OutputFormat format = parse_output_format(arguments.format);
  if (arguments.store.empty()) throw ConfigError("results: name a store, as in `epocast results study.sqlite`");
  ResultStore store(arguments.store, ResultStore::Use::read);
  if (arguments.runs) return list_runs(store);
  if (!arguments.records.empty()) return list_records(store, arguments.records, format);
  if (!arguments.against.empty()) return compare_with(arguments, store, format);
  if (!arguments.fail_on.empty()) throw ConfigError("--fail-on compares: name what with, as in --against old.sqlite");
  const std::vector<ScenarioResult> results = results_of(store.rows(arguments.run, arguments.where));
  write_results(std::cout, results, format, columns_asked_for(arguments, store));
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
  command->add_option("--format", arguments->format, "table, markdown, csv, json or jsonl")->capture_default_str();
  command->add_option("--columns", arguments->columns, "only these, as in workers,total_s,cost");
  command->add_option("--run", arguments->run, "of this run, see --runs")->check(CLI::Range(1, 1'000'000'000));
  command->add_flag("--runs", arguments->runs, "list the runs instead");
  command->add_option("--records", arguments->records,
                      "list instead what `reproduce --store` or `calibrate --store` kept: reproduce, calibrate");
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
