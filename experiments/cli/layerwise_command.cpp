#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "experiments/cli/commands.hpp"
#include "experiments/layerwise/layerwise_job.hpp"
#include "sim/error.hpp"
#include "sim/file_output.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

struct LayerwiseArguments {
  std::string study;
  std::vector<std::string> overrides;
  std::vector<std::string> dimensions{"n", "c", "h", "w"};
  std::vector<int> stages{1}, micro_batches;
  std::size_t scenario = 0;
  int rounds = 2;
  bool explain = false;
  std::string output_file;
};

std::vector<Dimension> parse_dimensions(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const Dimension d : kAllDimensions) names.emplace_back(to_string(d));
  std::vector<Dimension> out;
  for (const std::string& word : words) {
    const auto found = std::ranges::find(names, word);
    if (found == names.end())
      throw ConfigError("--dimensions: unknown dimension '" + word + "'" + name_hint(word, names));
    out.push_back(kAllDimensions[found - names.begin()]);
  }
  return out;
}

/// "h.*.attn" of "h.17.attn": what the operators of repeated blocks have in common.
std::string without_numbers(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (c < '0' || c > '9')
      out += c;
    else if (out.empty() || out.back() != '*')
      out += '*';
  }
  return out;
}

/// Operators next to each other with equal degrees are one line; where blocks repeat, so are those of all blocks.
struct DegreesLine {
  std::string degrees, first, last;
  std::size_t count = 0;

  std::string text() const {
    const std::string kind = without_numbers(first);
    if (count == 1) return fmt::format("  {:<28} {}\n", degrees, first);
    return fmt::format("  {:<28} {} ({} operators)\n", degrees,
                       kind == without_numbers(last) ? kind : first + " .. " + last, count);
  }
};

std::vector<DegreesLine> degrees_of(const LayerwiseOutcome& found, std::size_t first, std::size_t end) {
  std::vector<DegreesLine> runs, kinds;
  for (std::size_t op = first; op < end; ++op) {
    const DegreesLine own{found.degrees[op].text(), found.operators[op], found.operators[op], 1};
    const auto add = [&](std::vector<DegreesLine>& to, auto same) {
      const auto known = std::ranges::find_if(to, same);
      if (known == to.end()) {
        to.push_back(own);
      } else {
        known->last = own.last;
        ++known->count;
      }
    };
    add(runs, [&](const DegreesLine& of) { return &of == &runs.back() && of.degrees == own.degrees; });
    add(kinds, [&](const DegreesLine& of) {
      return of.degrees == own.degrees && without_numbers(of.first) == without_numbers(own.first);
    });
  }
  return runs.size() <= kinds.size() ? runs : kinds;
}

void write_degrees(std::ostream& out, const LayerwiseOutcome& found) {
  const std::vector<std::size_t>& stages = found.first_operators;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (stages.size() > 1) out << fmt::format("  stage {}, {}\n", s, counted(found.workers_of_stage, "worker"));
    const std::size_t end = s + 1 < stages.size() ? stages[s + 1] : found.operators.size();
    for (const DegreesLine& line : degrees_of(found, stages[s], end)) out << line.text();
  }
}

/// Those that a rule, equation 1 or an expert proposed, and the best.
void write_candidates(std::ostream& out, const LayerwiseOutcome& found) {
  std::size_t width = 28;
  const auto is_shown = [&](std::size_t c) {
    const LayerwiseCandidate& of = found.candidates[c];
    return of.proposed || c == found.best;
  };
  for (std::size_t c = 0; c < found.candidates.size(); ++c)
    if (is_shown(c)) width = std::max(width, found.candidates[c].name.size());
  out << fmt::format("\n  {:<{}} {:>12} {:>12} {:>12}\n", "candidate", width, "equation 1", "simulated", "sent");
  for (std::size_t c = 0; c < found.candidates.size(); ++c) {
    if (!is_shown(c)) continue;
    const LayerwiseCandidate& of = found.candidates[c];
    out << fmt::format("  {:<{}} {:>12} {:>12} {:>12}{}{}\n", of.name, width,
                       of.cost ? to_string(Seconds(*of.cost)) : "-", to_string(Seconds(of.simulated)),
                       to_string(Bytes(of.bytes)), c == found.best ? "  best" : "",
                       of.fits ? "" : "  does not fit into memory");
  }
  out << fmt::format("  {} simulated; rank correlation of equation 1 with them {:.2f}\n",
                     counted(found.candidates.size(), "candidate"), found.rank_correlation);
}

int layerwise(const LayerwiseArguments& arguments, const Registries& registries) {
  std::vector<Override> overrides;
  for (const std::string& text : arguments.overrides) overrides.push_back(parse_override(text));
  const Study study = load_study(arguments.study, overrides);
  if (arguments.scenario > study.scenarios.size() || (arguments.scenario == 0 && study.scenarios.size() > 1))
    throw ConfigError(fmt::format("study '{}' has {} scenarios; choose one with --scenario 1..{}", study.name,
                                  study.scenarios.size(), study.scenarios.size()));
  const Scenario& scenario = study.scenarios[std::max<std::size_t>(arguments.scenario, 1) - 1];
  const LayerwiseOutcome found = search_layerwise(
      scenario, registries,
      {parse_dimensions(arguments.dimensions), arguments.rounds, arguments.stages, arguments.micro_batches});
  std::cout << fmt::format("{}: {} on {}, batch {}; up to {} configurations each\n", found.model,
                           counted(found.operators.size(), "operator"), counted(found.workers, "worker"), found.batch,
                           found.configurations);
  std::cout << fmt::format("  links: {} of a device{}\n\n", to_string(found.links.device),
                           found.links.node_of.empty() ? "" : ", " + to_string(found.links.node) + " of a node");
  write_degrees(std::cout, found);
  write_candidates(std::cout, found);
  if (arguments.explain) std::cout << "\nBy equation 1, with all others as they are:\n" << explain(found);
  if (!arguments.output_file.empty())
    write_file(arguments.output_file, [&](std::ostream& out) { out << found.study << found.strategy; });
  return found.candidates[found.best].fits ? kDone : kMissed;
}

}  // namespace

void add_layerwise_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<LayerwiseArguments>();
  CLI::App* command = app.add_subcommand("layerwise",
                                         "Find degrees of parallelism for every operator of a study's network.\n"
                                         "Example: epocast layerwise study.yaml --explain --output found.yaml");
  command->add_option("study", arguments->study, "study file")->required();
  command->add_option("--output", arguments->output_file, "write a study that runs what was found to this file");
  command->add_flag("--explain", arguments->explain,
                    "say why each operator got its degrees, and what the next best would cost");
  command->add_option("--dimensions", arguments->dimensions, "what may be divided, of n, c, h, w, k")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  command->add_option("--rounds", arguments->rounds, "of refinement by simulation; 0: the optimum of equation 1")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  command
      ->add_option("--stages", arguments->stages,
                   "of a pipeline, one or several numbers to choose from; compared with plans of Megatron-LM")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command->add_option("--micro-batches", arguments->micro_batches, "to choose from; up to 4 for each stage by default")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 100000));
  command->add_option("--set", arguments->overrides, "change a key of the study; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--scenario", arguments->scenario, "which scenario of a study with sweep axes, from 1")
      ->check(CLI::Range(1, 1'000'000'000));
  command->callback([arguments, &context] {
    context.action = [arguments, &context] { return layerwise(*arguments, context.registries); };
  });
}

}  // namespace epocast
