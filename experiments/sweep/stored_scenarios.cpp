#include "experiments/sweep/stored_scenarios.hpp"

#include <map>

namespace epocast {

StoredScenarios::StoredScenarios(const std::vector<Scenario>& scenarios, ResultStore& store,
                                 const Registries& registries, const SweepOptions& options, As as)
    : scenarios_(scenarios),
      store_(store),
      registries_(registries),
      options_(options),
      needs_(sweep_needs(scenarios, &store, options)) {
  if (as == As::run) run_ = open_run(scenarios_, store_, needs_, options_);
}

std::vector<ScenarioResult> StoredScenarios::results(const std::vector<std::size_t>& indices,
                                                     const std::function<void()>& progress) {
  std::vector<std::size_t> missing;
  for (const std::size_t index : indices)
    if (!needs_.present.contains(static_cast<std::int64_t>(index))) missing.push_back(index);
  std::map<std::size_t, ScenarioResult> come;
  const auto added = [&](std::size_t index, const StoredRow& row) {
    needs_.present[static_cast<std::int64_t>(index)] = row.key;
    ++simulated_;
    come.insert_or_assign(index, row.result());
  };
  if (!missing.empty())
    simulate_stored(scenarios_, missing, needs_, store_, run_, registries_, options_, {added, progress});
  std::vector<ScenarioResult> out;
  for (const std::size_t index : indices) {
    const auto found = come.find(index);
    out.push_back(found != come.end() ? found->second
                                      : store_.row(needs_.present.at(static_cast<std::int64_t>(index)))->result());
  }
  return out;
}

}  // namespace epocast
