#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <optional>
#include <set>

#include "experiments/cli/commands.hpp"
#include "experiments/cli/progress_line.hpp"
#include "experiments/cli/verbosity.hpp"
#include "experiments/cli/word_option.hpp"
#include "experiments/fork_pool.hpp"
#include "experiments/sweep/axis_check.hpp"
#include "experiments/sweep/rank.hpp"
#include "experiments/sweep/sweep.hpp"
#include "sim/text.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

struct SweepArguments {
  std::string file;
  std::string store;
  std::vector<std::string> overrides;
  std::string shard;
  std::string time_limit, memory_limit;
  bool exact = false, unfolded = false, retry = false, dry_run = false;
  int jobs = 0;
};

/// How far the sweep is, how fast, and for how long it goes on.
std::string sweep_line(const SweepState& state) {
  std::string text = fmt::format("{}/{}", state.present + state.computed, state.of);
  if (state.failed > 0) text += fmt::format(", {} failed", state.failed);
  if (state.computed == 0 || state.seconds <= 0) return text;
  const double rate = static_cast<double>(state.computed) / state.seconds;
  const auto left = static_cast<double>(state.of - state.present - state.computed);
  return text + fmt::format("  {:.3g}/s, {} to go", rate, to_string(Seconds(std::ceil(left / rate))));
}

int dry_run(const Study& study, const std::filesystem::path& file, const SweepOptions& options,
            const Registries& registries) {
  std::unique_ptr<ResultStore> store;
  if (std::filesystem::exists(file)) store = std::make_unique<ResultStore>(file, ResultStore::Use::read);
  const SweepNeeds needs = sweep_needs(study.scenarios, store.get(), options);
  std::cout << fmt::format("{}: {}, {} of them in {}, {} to simulate\n", study.name,
                           counted(needs.present.size() + needs.missing.size(), "scenario"), needs.present.size(),
                           file.string(), needs.missing.size());
  if (needs.missing.empty()) return kDone;
  const std::vector<SampledScenario> samples = sample(study.scenarios, needs.missing, registries, options);
  if (samples.empty()) return kDone;
  double sum = 0;
  int exit_code = kDone;
  std::set<std::string> errors;
  for (const SampledScenario& sampled : samples) {
    sum += sampled.seconds;
    exit_code = std::max(exit_code, sampled.exit_code);
    if (!sampled.error.empty()) errors.insert(sampled.error);
  }
  const double all =
      sum / static_cast<double>(samples.size()) * static_cast<double>(needs.missing.size()) / options.parallel;
  const auto [least, most] = std::ranges::minmax(samples, {}, &SampledScenario::seconds);
  std::cout << fmt::format("about {} with {}: {} of them took {} to {} each\n", to_string(Seconds(all)),
                           counted(options.parallel, "job"), samples.size(), to_string(Seconds(least.seconds)),
                           to_string(Seconds(most.seconds)));
  for (const std::string& error : errors) std::cerr << error << '\n';
  return exit_code;
}

std::string what_was_done(const SweepState& state) {
  return fmt::format("{} simulated now, {} stored before, {} failed", state.computed, state.present, state.failed);
}

/// Shows progress, then what failed. Throws Interrupted.
SweepState watched_sweep(const Study& study, ResultStore& store, const SweepOptions& options,
                         const Registries& registries) {
  ProgressLine line;
  SweepState state;
  std::optional<Interrupted> interrupted;
  double shown = -1;
  try {
    state = run_sweep(study.scenarios, store, registries, options, [&](const SweepState& now) {
      state = now;
      if (!line.watched() || line.elapsed() - shown < 0.1) return;
      shown = line.elapsed();
      line.show(sweep_line(now));
    });
  } catch (const Interrupted& by) {
    interrupted = by;
  }
  line.clear();
  for (const auto& [error, rows] : state.errors)
    std::cerr << error << (rows > 1 ? fmt::format("  [{} scenarios]", rows) : "") << '\n';
  if (interrupted) {
    std::cerr << fmt::format("interrupted after {} of {}; the same command goes on from there\n",
                             state.present + state.computed, counted(state.of, "scenario"));
    throw *interrupted;
  }
  if (state.computed > 0 && line.watched())
    std::cerr << fmt::format("{} at {:.3g} a second\n", to_string(Seconds(state.seconds)),
                             static_cast<double>(state.computed) / state.seconds);
  return state;
}

/// This rank's scenarios. Only the one that completes the store exits with what went wrong: launchers end the other
/// ranks when one exits with anything but 0.
int sweep_part(const Study& study, const std::filesystem::path& file, const Rank& rank, SweepOptions options,
               const Registries& registries) {
  options.shard = rank.shard();
  const std::filesystem::path part = part_of_store(file, options.shard);
  {
    ResultStore store(part, ResultStore::Use::write);
    begin_part(study.scenarios, file, store, options);
    const SweepState state = watched_sweep(study, store, options, registries);
    std::cout << fmt::format("{}: rank {} of {}: {}: {}\n", study.name, options.shard.part, options.shard.of,
                             counted(state.of, "scenario"), what_was_done(state));
  }
  int exit_code = kDone;
  std::size_t failed = 0;
  const StoredRun run = end_part(part, study.scenarios.front().study, file, [&](int code, const std::string& error) {
    exit_code = std::max(exit_code, code);
    failed += error.empty() ? 0 : 1;
  });
  if (run.stored < run.scenarios) return kDone;
  std::cout << fmt::format("{}: all {} in {}, {} failed\n", study.name, counted(run.scenarios, "scenario"),
                           file.string(), failed);
  return exit_code;
}

int sweep(const SweepArguments& arguments, const Registries& registries) {
  std::vector<Override> overrides;
  for (const std::string& text : arguments.overrides) overrides.push_back(parse_override(text));
  const Study study = load_users_study(arguments.file, overrides);
  for (const std::string& note : study.notes) print_note(note);
  check_axes(study.scenarios, registries);
  const Rank rank = arguments.shard.empty() ? launched_rank() : Rank();
  SweepOptions options{.run = {.exact = arguments.exact, .fold = !arguments.unfolded},
                       .parallel = arguments.jobs > 0 ? arguments.jobs : processors_of(rank),
                       .shard = arguments.shard.empty() ? Shard() : parse_shard(arguments.shard),
                       .retry = arguments.retry,
                       .version = program_version(),
                       .folder = std::filesystem::path(arguments.file).parent_path()};
  if (!arguments.time_limit.empty())
    options.limits.seconds =
        parse_option("--time-limit", arguments.time_limit, [](const auto& t) { return parse_seconds(t); }).value;
  if (!arguments.memory_limit.empty())
    options.limits.bytes =
        parse_option("--memory-limit", arguments.memory_limit, [](const auto& t) { return parse_bytes(t); }).value;
  const std::filesystem::path file =
      arguments.store.empty() ? default_store(arguments.file) : std::filesystem::path(arguments.store);
  if (arguments.dry_run) {
    if (rank.number > 0) return kDone;  // the first says it for all
    options.parallel *= static_cast<int>(rank.of);
    return dry_run(study, file, options, registries);
  }
  if (rank.of > 1) return sweep_part(study, file, rank, options, registries);

  ResultStore store(file, ResultStore::Use::write);
  const SweepState state = watched_sweep(study, store, options, registries);
  std::cout << fmt::format("{}: {} in {}: {}\n", study.name, counted(state.of, "scenario"), file.string(),
                           what_was_done(state));
  return state.exit_code;
}

}  // namespace

void add_sweep_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<SweepArguments>();
  CLI::App* command =
      app.add_subcommand("sweep",
                         "Simulate the scenarios of a study that a store lacks, and store each at once: may be stopped "
                         "and started at will.\n"
                         "Example: epocast sweep experiments/studies/resnet50_scaling.yaml --store scaling.sqlite");
  command->add_option("study", arguments->file, "a study (YAML)")->required();
  command->add_option("--store", arguments->store, "the file; default: the study's name with .sqlite, in this folder");
  command
      ->add_option("--set", arguments->overrides,
                   "change a key of the study, as in batch.per_worker=64; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--shard", arguments->shard, "only a part of the scenarios: the 3rd of 64 is 3/64");
  command->add_option("--time-limit", arguments->time_limit, "for a scenario, as in 30 s; one that takes longer fails");
  command->add_option("--memory-limit", arguments->memory_limit,
                      "for a scenario, as in 2 GB; one that wants more fails");
  command->add_flag("--retry", arguments->retry, "simulate again what ran into a limit or died");
  command->add_flag("--dry-run", arguments->dry_run, "say how many scenarios there are, and how long they will take");
  command->add_flag("--exact", arguments->exact,
                    "simulate all iterations instead of extrapolating from the steady state");
  command->add_flag("--unfolded", arguments->unfolded, "simulate every worker even where they are interchangeable");
  command
      ->add_option("--jobs", arguments->jobs,
                   "scenarios at a time; default: one per processor; of each rank, under mpirun or srun")
      ->check(CLI::Range(1, 4096));
  command->callback([arguments, &context] {
    context.action = [arguments, &context] { return sweep(*arguments, context.registries); };
  });
}

}  // namespace epocast
