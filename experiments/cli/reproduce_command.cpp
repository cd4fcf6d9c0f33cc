#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "experiments/cli/commands.hpp"
#include "experiments/cli/progress_line.hpp"
#include "experiments/fork_pool.hpp"
#include "experiments/reproduce/measured_runs/forecast.hpp"
#include "experiments/reproduce/report.hpp"
#include "experiments/reproduce/target.hpp"
#include "experiments/store/record_writer.hpp"
#include "experiments/text_table.hpp"
#include "sim/error.hpp"

namespace epocast {
namespace {

struct ReproduceArguments {
  std::vector<std::string> targets;
  std::vector<std::string> settings;
  std::string format = "table";
  std::string keep, figures, store;
  bool list = false;
  bool strict = false;
  int jobs = 0;
};

/// Whether it names a file with a user's own measured runs.
bool is_file(const std::string& name) { return name.ends_with(".yaml"); }

/// The targets of these names, each once; a paper's name stands for all of its own. Those in files come last. No names:
/// all that ship. `changes`: to the studies of files.
std::vector<Target> choose_targets(const std::vector<std::string>& names, const std::vector<Override>& changes) {
  const std::vector<Target> all = builtin_targets();
  std::vector<bool> chosen(all.size(), names.empty());
  std::vector<std::string> valid;
  for (const Target& target : all) valid.push_back(target.name());
  for (const std::string& name : names) {
    if (is_file(name)) continue;
    if (!changes.empty()) throw ConfigError("--set: '" + name + "' is a published result, whose settings are fixed");
    bool known = false;
    for (std::size_t t = 0; t < all.size(); ++t) {
      if (name != all[t].name() && name != all[t].paper) continue;
      known = chosen[t] = true;
    }
    if (!known) throw ConfigError("unknown target '" + name + "'" + name_hint(name, valid));
  }
  std::vector<Target> out;
  for (std::size_t t = 0; t < all.size(); ++t)
    if (chosen[t]) out.push_back(all[t]);
  for (const std::string& name : names)
    if (is_file(name)) out.push_back(measured_target(read_runs_file(name, changes)));
  return out;
}

/// How many targets met what they declare, and what the others missed.
void write_verdict(std::ostream& out, const std::vector<TargetResult>& results) {
  const auto met = std::ranges::count_if(results, [](const TargetResult& r) { return r.misses.empty(); });
  const auto declared = std::ranges::count_if(results, &TargetResult::as_declared);
  out << fmt::format("\n{} targets: {} met, {} with known misses only, {} missed\n", results.size(), met,
                     declared - met, static_cast<std::ptrdiff_t>(results.size()) - declared);
  for (const TargetResult& result : results)
    for (const Miss& miss : result.misses) out << "  " << result.name() << ": " << describe(miss) << '\n';
}

void store_rows(const std::string& store, const TargetResult& result) {
  std::vector<nlohmann::ordered_json> rows;
  for (const TargetRow& row : result.rows) rows.push_back(columns_of(result, row));
  store_records(store, "reproduce", result.name(), program_version(), rows);
}

int reproduce_all(const ReproduceArguments& arguments, const Registries& registries) {
  const std::vector<std::string>& formats = TargetWriter::formats();
  if (std::find(formats.begin(), formats.end(), arguments.format) == formats.end())
    throw ConfigError("--format: unknown format '" + arguments.format + "'" + name_hint(arguments.format, formats));
  std::vector<Override> changes;
  for (const std::string& setting : arguments.settings) changes.push_back(parse_override(setting));
  if (!changes.empty() && arguments.targets.empty())
    throw ConfigError("--set: name the file with measured runs whose study it changes");
  const std::vector<Target> targets = choose_targets(arguments.targets, changes);
  if (arguments.list) {
    std::vector<std::vector<std::string>> rows{{"target", "description"}};
    for (const Target& target : targets) rows.push_back({target.name(), target.description});
    std::cout << align_columns(rows);
    return kDone;
  }

  std::vector<TargetResult> results;
  {
    TargetWriter writer(std::cout, arguments.format);
    for (const Target& target : targets) {
      const int parallel = arguments.jobs > 0 ? arguments.jobs : available_processors();
      ProgressLine line(target.name());
      line.show(fmt::format("{} ({} of {})", target.name(), results.size() + 1, targets.size()));
      results.push_back(reproduce(target, {.registries = registries,
                                           .parallel = parallel,
                                           .progress = line.observer(),
                                           .keep = arguments.keep,
                                           .figures = arguments.figures}));
      line.clear();
      writer.write(results.back());  // as they come: some targets take long
      if (!arguments.store.empty()) store_rows(arguments.store, results.back());
      if (arguments.format == "table") continue;
      for (const Miss& miss : results.back().misses) std::cerr << target.name() << ": " << describe(miss) << '\n';
    }
  }
  if (arguments.format == "table" && results.size() > 1) write_verdict(std::cout, results);
  return std::ranges::all_of(results,
                             [&](const TargetResult& result) {
                               return arguments.strict ? result.misses.empty() : result.as_declared();
                             })
             ? kDone
             : kMissed;
}

}  // namespace

void add_reproduce_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<ReproduceArguments>();
  CLI::App* command = app.add_subcommand(
      "reproduce",
      "Regenerate published tables, or forecast measured runs of your own, and show how far off that is.\n"
      "Example: epocast reproduce eserol2019/table_5_14");
  command->add_option("target", arguments->targets,
                      "targets, papers for all of theirs, or files with runs of your own; default: all published");
  command->add_option("--set", arguments->settings, "change a key of the study of a file: KEY=VALUE, repeatable")
      ->allow_extra_args(false);
  command->add_option("--format", arguments->format, "table, csv or json")->capture_default_str();
  command->add_option("--keep", arguments->keep,
                      "keep results of hermans2017/experiments in this file as they are made: to resume");
  command->add_option("--figures", arguments->figures, "write the pictures of hermans2017/experiments to this folder");
  command->add_option("--store", arguments->store, "also keep the rows in this store, see `results --records`");
  command->add_flag("--list", arguments->list, "say which targets there are");
  command->add_flag("--strict", arguments->strict, "exit with 1 for known misses, too");
  command->add_option("--jobs", arguments->jobs, "simulations at a time; default: one per processor")
      ->check(CLI::Range(1, 4096));
  command->callback([arguments, &context] {
    context.action = [arguments, &context] { return reproduce_all(*arguments, context.registries); };
  });
}

}  // namespace epocast
