#include "experiments/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "experiments/fork_pool.hpp"
#include "experiments/large_pages.hpp"
#include "experiments/plan/bounds.hpp"
#include "experiments/run_study.hpp"
#include "experiments/sweep/input_memo.hpp"

namespace epocast {
namespace {

using nlohmann::json;

constexpr int kInBatch = 16;  // scenarios that one process compiles

std::optional<double> number(const json& value) {
  return value.is_null() ? std::nullopt : std::optional<double>(value.get<double>());
}

template <class T>
json or_none(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

/// In a child: what is known of a scenario without simulating it.
json assess(const Scenario& scenario, const Registries& registries) {
  try {
    const CheapBounds bounds = cheap_bounds(read_scenario(scenario, registries));
    return {{"fits", bounds.fits},
            {"total_s", bounds.least.total_s},
            {"cost", or_none(bounds.least.cost)},
            {"currency", bounds.least.currency},
            {"energy_j", or_none(bounds.least.energy_j)},
            {"co2_kg", or_none(bounds.least.co2_kg)},
            {"time_to_target_s", or_none(bounds.least.time_to_target_s)}};
  } catch (const std::exception& problem) {
    return {{"error", problem.what()}};
  }
}

void take_assessment(const json& said, const PlanOptions& options, std::set<std::string>& currencies,
                     PlanCandidate& out) {
  if (said.contains("error")) {
    out.state = PlanCandidate::refused;
    out.error = said.at("error").get<std::string>();
    return;
  }
  ScenarioResult least;
  least.total_s = out.least_s = said.at("total_s").get<double>();
  least.cost = number(said.at("cost"));
  least.energy_j = number(said.at("energy_j"));
  least.co2_kg = number(said.at("co2_kg"));
  least.time_to_target_s = number(said.at("time_to_target_s"));
  if (least.cost) currencies.insert(said.at("currency").get<std::string>());
  out.bound = objective_value(options.objective, least).value_or(0);
  if (options.fits && !said.at("fits").get<bool>())
    out.state = PlanCandidate::too_large;
  else if (options.deadline && least.total_s > *options.deadline)
    out.state = PlanCandidate::too_late;
  else if (options.budget && least.cost && *least.cost > *options.budget)
    out.state = PlanCandidate::too_dear;
}

void assess_all(const std::vector<Scenario>& scenarios, const Registries& registries, const PlanOptions& options,
                const std::function<void(const std::string&)>& progress, Plan& plan) {
  const int jobs = (static_cast<int>(scenarios.size()) + kInBatch - 1) / kInBatch;
  std::set<std::string> currencies;
  std::size_t done = 0;
  std::vector<bool> told(scenarios.size());
  ForkedWork work;
  int next = 0;
  work.next = [&] { return next < jobs ? std::optional<int>(next++) : std::nullopt; };
  work.job = [&](int job) {
    use_large_pages();
    remember_inputs = true;
    const std::size_t begin = static_cast<std::size_t>(job) * kInBatch;
    for (std::size_t i = begin; i < std::min(begin + kInBatch, scenarios.size()); ++i) {
      json said = assess(scenarios[i], registries);
      said["index"] = i;
      send_message(said.dump(-1, ' ', false, json::error_handler_t::replace));
    }
    return std::string();
  };
  work.message = [&](int, const std::string& text) {
    const json said = json::parse(text);
    const auto index = said.at("index").get<std::size_t>();
    told[index] = true;
    take_assessment(said, options, currencies, plan.candidates[index]);
    if (progress) progress(fmt::format("compiled {}/{}", ++done, scenarios.size()));
  };
  work.done = [](int, const JobOutcome&) {};
  run_forked(work, options.parallel);
  for (std::size_t i = 0; i < told.size(); ++i)
    if (!told[i]) {  // a child died: nothing is known, so nothing is ruled out
      plan.candidates[i].bound = 0;
      plan.candidates[i].least_s = 0;
    }
  if (currencies.size() > 1)
    throw ConfigError(
        fmt::format("prices are in {}; a plan compares prices in one currency", fmt::join(currencies, " and ")));
}

bool meets(const ScenarioResult& result, const PlanOptions& options) {
  if (!result.error.empty()) return false;
  if (options.fits && !result.fits_memory.value_or(true)) return false;
  if (options.deadline && result.total_s > *options.deadline) return false;
  return !options.budget || !result.cost || *result.cost <= *options.budget;
}

/// Simulates candidates of a list, best bound first, until none that is left can be better than `best`.
template <class Value>
void search(const std::vector<Scenario>& scenarios, const Registries& registries, const PlanOptions& options,
            const std::function<void(const std::string&)>& progress, std::vector<std::pair<double, std::size_t>> list,
            Value value, Plan& plan) {
  std::ranges::stable_sort(list, {}, &std::pair<double, std::size_t>::first);
  double best = std::numeric_limits<double>::infinity();
  std::erase_if(list, [&](const auto& entry) {
    const PlanCandidate& candidate = plan.candidates[entry.second];
    if (!candidate.result) return false;
    if (const std::optional<double> found = value(candidate)) best = std::min(best, *found);
    return true;
  });
  for (std::size_t at = 0; at < list.size();) {
    std::vector<std::size_t> chosen;
    std::vector<Scenario> round;
    while (at < list.size() && static_cast<int>(chosen.size()) < options.parallel) {
      if (list[at].first > best && !options.exhaustive) break;
      chosen.push_back(list[at++].second);
      round.push_back(scenarios[chosen.back()]);
    }
    if (chosen.empty()) break;
    const std::vector<ScenarioResult> results = run_study(round, registries, {}, options.parallel, {});
    for (std::size_t c = 0; c < chosen.size(); ++c) {
      PlanCandidate& candidate = plan.candidates[chosen[c]];
      candidate.state = results[c].error.empty() ? PlanCandidate::simulated : PlanCandidate::refused;
      candidate.error = results[c].error;
      candidate.result = results[c];
      candidate.meets = meets(results[c], options);
      ++plan.simulated;
      if (const std::optional<double> found = value(candidate)) best = std::min(best, *found);
    }
    if (progress) progress(fmt::format("simulated {} of {}", plan.simulated, scenarios.size()));
  }
}

const char* what_says(Objective objective) {
  switch (objective) {
    case Objective::cost: return "`price: {node_hour: 20 $}`";
    case Objective::target: return "`learning: {given: {epochs: 90, batch: 256}}`, or with a `target` that all reach";
    default: return "`power: {device: 400 W, intensity: 380 g/kWh}`";
  }
}

}  // namespace

std::vector<std::string> objective_names() { return {"cost", "time", "energy", "co2", "target"}; }

std::optional<double> objective_value(Objective objective, const ScenarioResult& result) {
  switch (objective) {
    case Objective::cost: return result.cost;
    case Objective::time: return result.total_s;
    case Objective::energy: return result.energy_j;
    case Objective::co2: return result.co2_kg;
    case Objective::target: return result.time_to_target_s;
  }
  return std::nullopt;
}

Plan make_plan(const std::vector<Scenario>& scenarios, const Registries& registries, const PlanOptions& options,
               const std::function<void(const std::string&)>& progress) {
  Plan plan;
  for (std::size_t i = 0; i < scenarios.size(); ++i) plan.candidates.push_back({.index = i});
  assess_all(scenarios, registries, options, progress, plan);

  std::vector<std::pair<double, std::size_t>> list;
  for (const PlanCandidate& candidate : plan.candidates)
    if (candidate.state == PlanCandidate::worse) list.emplace_back(candidate.bound, candidate.index);
  search(
      scenarios, registries, options, progress, std::move(list),
      [&](const PlanCandidate& candidate) {
        return candidate.meets ? objective_value(options.objective, *candidate.result) : std::nullopt;
      },
      plan);
  for (const PlanCandidate& candidate : plan.candidates) {
    if (!candidate.meets) continue;
    if (!objective_value(options.objective, *candidate.result))
      throw ConfigError(fmt::format("--minimise {}: the study does not say what it takes; add a block {}",
                                    objective_names()[static_cast<std::size_t>(options.objective)],
                                    what_says(options.objective)));
    plan.ranking.push_back(candidate.index);
  }
  std::ranges::stable_sort(
      plan.ranking, {}, [&](std::size_t i) { return *objective_value(options.objective, *plan.candidates[i].result); });
  if (!plan.ranking.empty()) return plan;

  // Nothing does: then the fastest that fits.
  list.clear();
  for (const PlanCandidate& candidate : plan.candidates)
    if (candidate.state != PlanCandidate::refused && candidate.state != PlanCandidate::too_large)
      list.emplace_back(candidate.least_s, candidate.index);
  PlanOptions fastest = options;
  fastest.exhaustive = false;
  search(
      scenarios, registries, fastest, progress, std::move(list),
      [](const PlanCandidate& candidate) {
        return candidate.error.empty() ? std::optional<double>(candidate.result->total_s) : std::nullopt;
      },
      plan);
  for (const PlanCandidate& candidate : plan.candidates)
    if (candidate.result && candidate.error.empty() &&
        (!options.fits || candidate.result->fits_memory.value_or(true)) &&
        (!plan.closest || candidate.result->total_s < plan.candidates[*plan.closest].result->total_s))
      plan.closest = candidate.index;
  return plan;
}

std::vector<std::size_t> pareto_front(const Plan& plan, Objective objective) {
  std::vector<std::size_t> by_time = plan.ranking;
  std::ranges::stable_sort(by_time, {}, [&](std::size_t i) { return plan.candidates[i].result->total_s; });
  std::vector<std::size_t> front;
  double best = std::numeric_limits<double>::infinity();
  for (const std::size_t i : by_time) {
    const double value = *objective_value(objective, *plan.candidates[i].result);
    if (value >= best) continue;
    best = value;
    front.push_back(i);
  }
  return front;
}

}  // namespace epocast
