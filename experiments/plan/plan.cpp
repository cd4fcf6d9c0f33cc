#include "experiments/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "experiments/fork_pool.hpp"
#include "experiments/large_pages.hpp"
#include "experiments/plan/bounds.hpp"
#include "sim/input_memo.hpp"

namespace epocast {
namespace {

using nlohmann::json;
using PlanProgress = std::function<void(const std::string&)>;

constexpr std::size_t kInBatch = 32;             // scenarios that one process compiles
constexpr std::size_t kMostForAlternative = 32;  // scenarios simulated to tell what other choices on an axis take

/// The block of a study that gives an objective its values.
const char* what_says(Objective objective) {
  switch (objective) {
    case Objective::cost: return "`price: {node_hour: 20 $}`";
    case Objective::target: return "`learning: {given: {epochs: 90, batch: 256}}`, or with a `target` that all reach";
    default: return "`power: {device: 400 W, intensity: 380 g/kWh}`";
  }
}

std::optional<double> number(const json& value) {
  return value.is_null() ? std::nullopt : std::optional<double>(value.get<double>());
}

template <class T>
json or_none(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

/// The engine of a child: that of the first platform that it meets.
class AssessingEngine {
 public:
  /// Null for a scenario of another platform.
  SimEngine* of(const ScenarioSetup& setup) {
    if (!engine_ && !failed_) {
      try {
        engine_.emplace(setup.cluster, setup.network);
        ready_ = {&*engine_, setup.cluster.platform_file, setup.network};
      } catch (const std::exception&) {
        failed_ = true;
      }
    }
    return engine_ && ready_.fits(setup) ? &*engine_ : nullptr;
  }

 private:
  std::optional<SimEngine> engine_;
  ReadyEngine ready_;
  bool failed_ = false;
};

/// In a child: what is known of a scenario without simulating it.
json assess(const Scenario& scenario, const Registries& registries, AssessingEngine& engine) {
  try {
    const ScenarioSetup setup = read_scenario(scenario, registries);
    const CheapBounds bounds = cheap_bounds(setup, engine.of(setup));
    return {{"fits", bounds.fits},
            {"workers", bounds.least.workers},
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
  ScenarioResult& least = out.least;
  least.workers = said.at("workers").get<std::int64_t>();
  least.total_s = said.at("total_s").get<double>();
  least.cost = number(said.at("cost"));
  least.currency = said.at("currency").get<std::string>();
  least.energy_j = number(said.at("energy_j"));
  least.co2_kg = number(said.at("co2_kg"));
  least.time_to_target_s = number(said.at("time_to_target_s"));
  if (least.cost) currencies.insert(least.currency);
  out.bound = objective_value(options.objective, least).value_or(0);
  if (options.fits && !said.at("fits").get<bool>())
    out.state = PlanCandidate::too_large;
  else if (options.deadline && least.total_s > *options.deadline)
    out.state = PlanCandidate::too_late;
  else if (options.budget && least.cost && *least.cost > *options.budget)
    out.state = PlanCandidate::too_dear;
}

/// Scenarios of one platform each, in lists that one process takes.
std::vector<std::vector<std::size_t>> batches_of(const Plan& plan, const StoredScenarios& stored) {
  std::map<std::string, std::vector<std::size_t>> open;
  std::vector<std::vector<std::size_t>> out;
  for (const PlanCandidate& candidate : plan.candidates) {
    std::vector<std::size_t>& batch = open[stored.group(candidate.index)];
    batch.push_back(candidate.index);
    if (batch.size() == kInBatch) out.push_back(std::exchange(batch, {}));
  }
  for (auto& [group, batch] : open)
    if (!batch.empty()) out.push_back(std::move(batch));
  return out;
}

/// What a child that died had not told yet is unknown, so nothing is ruled out.
void assess_all(const std::vector<Scenario>& scenarios, const Registries& registries, const PlanOptions& options,
                const StoredScenarios& stored, const PlanProgress& progress, Plan& plan) {
  const std::vector<std::vector<std::size_t>> batches = batches_of(plan, stored);
  std::set<std::string> currencies;
  std::size_t done = 0, next = 0;
  ForkedWork work;
  work.next = [&] { return next < batches.size() ? std::optional<int>(static_cast<int>(next++)) : std::nullopt; };
  work.job = [&](int job) {
    use_large_pages();
    remember_inputs = true;
    AssessingEngine engine;
    for (const std::size_t i : batches[static_cast<std::size_t>(job)]) {
      json said = assess(scenarios[i], registries, engine);
      said["index"] = i;
      send_message(said.dump(-1, ' ', false, json::error_handler_t::replace));
    }
    return std::string();
  };
  work.message = [&](int, const std::string& text) {
    const json said = json::parse(text);
    take_assessment(said, options, currencies, plan.candidates[said.at("index").get<std::size_t>()]);
    if (progress) progress(fmt::format("compiled {}/{}", ++done, scenarios.size()));
  };
  work.done = [](int, const JobOutcome&) {};
  run_forked(work, options.parallel);
  const auto unpriced = std::ranges::find_if(
      plan.candidates, [](const PlanCandidate& c) { return c.least.workers > 0 && !c.least.cost; });
  if (options.budget && unpriced != plan.candidates.end()) {
    const std::string& name = scenarios[unpriced->index].name;
    throw ConfigError(fmt::format("--budget: the study does not say what {} costs; add a block {}",
                                  currencies.empty() || name.empty() ? "it" : name, what_says(Objective::cost)));
  }
  if (currencies.size() > 1)
    throw ConfigError(
        fmt::format("prices are in {}; a plan compares prices in one currency", fmt::join(currencies, " and ")));
}

/// Results of candidates, from the store or simulated.
void try_candidates(const std::vector<std::size_t>& chosen, const PlanOptions& options, StoredScenarios& stored,
                    const PlanProgress& progress, Plan& plan) {
  const auto tell = [&] {
    if (progress) progress(fmt::format("simulated {} of {}", plan.tried, plan.candidates.size()));
  };
  const std::vector<ScenarioResult> results = stored.results(chosen, tell);
  for (std::size_t c = 0; c < chosen.size(); ++c) {
    PlanCandidate& candidate = plan.candidates[chosen[c]];
    candidate.state = results[c].error.empty() ? PlanCandidate::simulated : PlanCandidate::refused;
    candidate.error = results[c].error;
    candidate.result = results[c];
    candidate.meets = options.met_by(results[c]);
    ++plan.tried;
  }
  tell();
}

/// How many are simulated before the next are chosen: enough for every process to have something to do.
std::size_t round_size(const PlanOptions& options) {
  return 2 * static_cast<std::size_t>(std::max(1, options.parallel));
}

/// Simulates candidates of a list, best bound first, until none that is left can be better than the best `value`, or
/// `most` were.
template <class Value>
void search(const PlanOptions& options, StoredScenarios& stored, const PlanProgress& progress,
            std::vector<std::pair<double, std::size_t>> list, Value value, Plan& plan,
            std::size_t most = std::numeric_limits<std::size_t>::max()) {
  std::ranges::stable_sort(list, {}, &std::pair<double, std::size_t>::first);
  double best = std::numeric_limits<double>::infinity();
  const auto note = [&](std::size_t index) {
    if (const std::optional<double> found = value(plan.candidates[index])) best = std::min(best, *found);
  };
  std::erase_if(list, [&](const auto& entry) {
    if (!plan.candidates[entry.second].result) return false;
    note(entry.second);
    return true;
  });
  for (std::size_t at = 0; at < std::min(list.size(), most);) {
    std::vector<std::size_t> chosen;
    while (at < list.size() && chosen.size() < round_size(options) && (list[at].first <= best || options.exhaustive))
      chosen.push_back(list[at++].second);
    if (chosen.empty()) break;
    try_candidates(chosen, options, stored, progress, plan);
    std::ranges::for_each(chosen, note);
  }
}

bool dominates(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t c = 0; c < a.size(); ++c)
    if (a[c] > b[c]) return false;
  return true;
}

/// Whether the candidate, which was not simulated, could be on the front.
bool could_be_on_front(const PlanCandidate& candidate, const std::vector<std::vector<double>>& front) {
  if (candidate.result || candidate.state != PlanCandidate::worse) return false;
  const std::vector<double> least = front_criteria(candidate.least);
  return std::ranges::none_of(front, [&](const auto& values) { return dominates(values, least); });
}

std::vector<std::vector<double>> front_values(const Plan& plan) {
  std::vector<std::vector<double>> out;
  for (const std::size_t i : pareto_front(plan)) out.push_back(front_criteria(*plan.candidates[i].result));
  return out;
}

void complete_front(const PlanOptions& options, StoredScenarios& stored, const PlanProgress& progress, Plan& plan) {
  while (true) {
    const std::vector<std::vector<double>> front = front_values(plan);
    std::vector<std::pair<double, std::size_t>> list;
    for (const PlanCandidate& candidate : plan.candidates)
      if (could_be_on_front(candidate, front)) list.emplace_back(candidate.least.total_s, candidate.index);
    if (list.empty()) return;
    std::ranges::sort(list);
    list.resize(std::min(list.size(), round_size(options)));
    std::vector<std::size_t> chosen;
    for (const auto& [seconds, index] : list) chosen.push_back(index);
    try_candidates(chosen, options, stored, progress, plan);
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

bool PlanOptions::met_by(const ScenarioResult& result) const {
  if (!result.error.empty()) return false;
  if (fits && !result.fits_memory.value_or(true)) return false;
  if (deadline && result.total_s > *deadline) return false;
  return !budget || (result.cost && *result.cost <= *budget);
}

namespace {

/// Those that meet the conditions, best first. What trains and does not reach the target is left out, and says so.
void rank(const PlanOptions& options, Plan& plan) {
  plan.ranking.clear();
  for (PlanCandidate& candidate : plan.candidates) {
    if (!candidate.meets) continue;
    if (objective_value(options.objective, *candidate.result)) {
      plan.ranking.push_back(candidate.index);
      continue;
    }
    if (options.objective != Objective::target || !candidate.result->loss)
      throw ConfigError(fmt::format("--minimise {}: the study does not say what it takes; add a block {}",
                                    objective_names()[static_cast<std::size_t>(options.objective)],
                                    what_says(options.objective)));
    candidate.meets = false;
    candidate.state = PlanCandidate::refused;
    candidate.error = "does not reach the target in the epochs that it has";
  }
  std::ranges::stable_sort(
      plan.ranking, {}, [&](std::size_t i) { return *objective_value(options.objective, *plan.candidates[i].result); });
}

/// Value of a candidate that meets the conditions.
auto value_for(const PlanOptions& options) {
  return [&options](const PlanCandidate& candidate) {
    return candidate.meets ? objective_value(options.objective, *candidate.result) : std::nullopt;
  };
}

bool chooses_otherwise(const Scenario& scenario, const Scenario& first, std::size_t axis) {
  return scenario.axes[axis].second != first.axes[axis].second;
}

void find_alternatives(const std::vector<Scenario>& scenarios, const PlanOptions& options, StoredScenarios& stored,
                       const PlanProgress& progress, Plan& plan) {
  const Scenario& first = scenarios[plan.ranking.front()];
  for (std::size_t axis = 0; axis < first.axes.size(); ++axis) {
    std::vector<std::pair<double, std::size_t>> list;
    for (const PlanCandidate& candidate : plan.candidates)
      if ((candidate.state == PlanCandidate::worse || candidate.meets) &&
          chooses_otherwise(scenarios[candidate.index], first, axis))
        list.emplace_back(candidate.bound, candidate.index);
    search(options, stored, progress, std::move(list), value_for(options), plan, kMostForAlternative);
  }
}

/// Nothing meets the conditions: then the fastest that fits.
void find_closest(const PlanOptions& options, StoredScenarios& stored, const PlanProgress& progress, Plan& plan) {
  std::vector<std::pair<double, std::size_t>> list;
  for (const PlanCandidate& candidate : plan.candidates)
    if (candidate.state != PlanCandidate::refused && candidate.state != PlanCandidate::too_large)
      list.emplace_back(candidate.least.total_s, candidate.index);
  PlanOptions fastest = options;
  fastest.exhaustive = false;
  search(
      fastest, stored, progress, std::move(list),
      [](const PlanCandidate& candidate) {
        return candidate.error.empty() ? std::optional<double>(candidate.result->total_s) : std::nullopt;
      },
      plan);
  for (const PlanCandidate& candidate : plan.candidates)
    if (candidate.result && candidate.error.empty() &&
        (!options.fits || candidate.result->fits_memory.value_or(true)) &&
        (!plan.closest || candidate.result->total_s < plan.candidates[*plan.closest].result->total_s))
      plan.closest = candidate.index;
}

}  // namespace

Plan make_plan(const std::vector<Scenario>& scenarios, const Registries& registries, const PlanOptions& options,
               StoredScenarios& stored, const PlanProgress& progress) {
  Plan plan;
  for (std::size_t i = 0; i < scenarios.size(); ++i) plan.candidates.push_back({.index = i});
  assess_all(scenarios, registries, options, stored, progress, plan);

  std::vector<std::pair<double, std::size_t>> list;
  for (const PlanCandidate& candidate : plan.candidates)
    if (candidate.state == PlanCandidate::worse) list.emplace_back(candidate.bound, candidate.index);
  search(options, stored, progress, std::move(list), value_for(options), plan);
  rank(options, plan);
  if (plan.ranking.empty()) {
    find_closest(options, stored, progress, plan);
    return plan;
  }
  if (options.alternatives) find_alternatives(scenarios, options, stored, progress, plan);
  if (options.whole_front) complete_front(options, stored, progress, plan);
  rank(options, plan);
  return plan;
}

std::optional<OtherChoice> best_other_choice(const std::vector<Scenario>& scenarios, const Plan& plan,
                                             Objective objective, std::size_t axis) {
  const Scenario& first = scenarios[plan.ranking.front()];
  const auto simulated =
      std::ranges::find_if(plan.ranking, [&](std::size_t i) { return chooses_otherwise(scenarios[i], first, axis); });
  const PlanCandidate* least = nullptr;  // of those that nobody has simulated
  for (const PlanCandidate& candidate : plan.candidates)
    if (candidate.state == PlanCandidate::worse && chooses_otherwise(scenarios[candidate.index], first, axis) &&
        (least == nullptr || candidate.bound < least->bound))
      least = &candidate;
  if (simulated != plan.ranking.end() &&
      (least == nullptr || *objective_value(objective, *plan.candidates[*simulated].result) <= least->bound))
    return OtherChoice{*simulated, true};
  if (least == nullptr) return std::nullopt;
  return OtherChoice{least->index, false};
}

std::vector<double> front_criteria(const ScenarioResult& result) {
  std::vector<double> out{result.total_s, static_cast<double>(result.workers)};
  for (const std::optional<double>& value : {result.cost, result.energy_j})
    if (value) out.push_back(*value);
  return out;
}

std::vector<std::size_t> pareto_front(const Plan& plan) {
  std::vector<std::size_t> by_time = plan.ranking;
  std::ranges::stable_sort(by_time, {}, [&](std::size_t i) { return front_criteria(*plan.candidates[i].result); });
  std::vector<std::size_t> front;
  for (const std::size_t i : by_time) {  // whatever beats it comes before it
    const std::vector<double> own = front_criteria(*plan.candidates[i].result);
    if (std::ranges::none_of(front,
                             [&](std::size_t f) { return dominates(front_criteria(*plan.candidates[f].result), own); }))
      front.push_back(i);
  }
  return front;
}

std::size_t possibly_on_front(const Plan& plan) {
  const std::vector<std::vector<double>> front = front_values(plan);
  return static_cast<std::size_t>(std::ranges::count_if(
      plan.candidates, [&](const PlanCandidate& candidate) { return could_be_on_front(candidate, front); }));
}

}  // namespace epocast
