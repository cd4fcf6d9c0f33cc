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

/// Operators next to each other with equal degrees are one line.
void write_degrees(std::ostream& out, const LayerwiseOutcome& found) {
  for (std::size_t first = 0, end = 0; first < found.operators.size(); first = end) {
    while (end < found.operators.size() && found.degrees[end] == found.degrees[first]) ++end;
    out << fmt::format("  {:<28} {}\n", found.degrees[first].text(),
                       end - first > 1 ? fmt::format("{} .. {} ({} operators)", found.operators[first],
                                                     found.operators[end - 1], end - first)
                                       : found.operators[first]);
  }
}

int layerwise(const LayerwiseArguments& arguments, const Registries& registries) {
  std::vector<Override> overrides;
  for (const std::string& text : arguments.overrides) overrides.push_back(parse_override(text));
  const Study study = load_study(arguments.study, overrides);
  if (arguments.scenario > study.scenarios.size() || (arguments.scenario == 0 && study.scenarios.size() > 1))
    throw ConfigError(fmt::format("study '{}' has {} scenarios; choose one with --scenario 1..{}", study.name,
                                  study.scenarios.size(), study.scenarios.size()));
  const Scenario& scenario = study.scenarios[std::max<std::size_t>(arguments.scenario, 1) - 1];
  const LayerwiseOutcome found =
      search_layerwise(scenario, registries, {parse_dimensions(arguments.dimensions), arguments.rounds});
  std::cout << fmt::format("{}: {} on {}, batch {}; up to {} configurations each\n", found.model,
                           counted(found.operators.size(), "operator"), counted(found.workers, "worker"), found.batch,
                           found.configurations);
  std::cout << fmt::format("  links: {} of a device{}\n\n", to_string(found.links.device),
                           found.links.node_of.empty() ? "" : ", " + to_string(found.links.node) + " of a node");
  write_degrees(std::cout, found);
  std::cout << fmt::format("\n  {:<28} {:>12} {:>12} {:>12}\n", "candidate", "equation 1", "simulated", "sent");
  for (std::size_t c = 0; c < found.candidates.size(); ++c) {
    const LayerwiseCandidate& of = found.candidates[c];
    if (c > 2 && c != found.best) continue;
    std::cout << fmt::format("  {:<28} {:>12} {:>12} {:>12}{}{}\n", of.name, to_string(Seconds(of.cost)),
                             to_string(Seconds(of.simulated)), to_string(Bytes(of.bytes)),
                             c == found.best ? "  best" : "", of.fits ? "" : "  does not fit into memory");
  }
  std::cout << fmt::format("  {} simulated; rank correlation of equation 1 with them {:.2f}\n",
                           counted(found.candidates.size(), "candidate"), found.rank_correlation);
  if (arguments.explain) std::cout << "\nBy equation 1, with all others as they are:\n" << explain(found);
  if (!arguments.output_file.empty())
    write_file(arguments.output_file, [&](std::ostream& out) { out << found.to_yaml(); });
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
  command->add_option("--set", arguments->overrides, "change a key of the study; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--scenario", arguments->scenario, "which scenario of a study with sweep axes, from 1");
  command->callback([arguments, &context] {
    context.action = [arguments, &context] { return layerwise(*arguments, context.registries); };
  });
}

}  // namespace epocast
