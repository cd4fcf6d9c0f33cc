#include "experiments/kept_results.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/error.hpp"

namespace epocast {
namespace {

std::string key_of(const Scenario& scenario) { return scenario.config().flow_text(); }

}  // namespace

KeptResults::KeptResults(std::string file) : file_(std::move(file)) {
  if (file_.empty()) return;
  std::ifstream in(file_);
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
    if (entry.is_object() && entry.contains("key") && entry.contains("result"))
      known_[entry["key"].get<std::string>()] = entry["result"].get<std::string>();
  }
}

std::optional<ScenarioResult> KeptResults::find(const Scenario& scenario) const {
  if (known_.empty()) return std::nullopt;
  const auto found = known_.find(key_of(scenario));
  return found == known_.end() ? std::nullopt : std::optional(deserialize(found->second));
}

void KeptResults::add(const Scenario& scenario, const ScenarioResult& result) const {
  if (file_.empty() || !result.error.empty()) return;
  std::ofstream out(file_, std::ios::app);
  out << '\n' << nlohmann::json{{"key", key_of(scenario)}, {"result", serialize(result)}}.dump() << '\n';
  if (!out.flush()) throw ConfigError("--keep: cannot write to '" + file_ + "'");
}

std::vector<ScenarioResult> run_study_keeping(const std::vector<Scenario>& scenarios, const Registries& registries,
                                              int parallel, const KeptResults& kept, const Progress& progress) {
  std::vector<ScenarioResult> results(scenarios.size());
  std::vector<Scenario> missing;
  std::vector<std::size_t> place;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    if (const auto found = kept.find(scenarios[i])) {
      results[i] = *found;
      continue;
    }
    missing.push_back(scenarios[i]);
    place.push_back(i);
  }
  std::vector<ScenarioResult> made;
  run_study(
      missing, registries, {}, parallel,
      [&](const StudyProgress& state) {
        if (state.latest != nullptr) kept.add(missing[state.index], *state.latest);
        if (progress) progress(state);
      },
      made);
  for (std::size_t i = 0; i < made.size(); ++i) results[place[i]] = std::move(made[i]);
  return results;
}

}  // namespace epocast
