#include "experiments/plan/sensitivity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "experiments/plan/input_changes.hpp"
#include "experiments/plan/plan_report.hpp"
#include "experiments/text_table.hpp"

namespace epocast {
namespace {

constexpr double kShare = 0.1;  // by which inputs are off
constexpr double kNear = 1.25;  // how much more than allowed, or than the first, may become less by that
constexpr std::size_t kMostRivals = 10, kNext = 3;

std::string label_of(const Scenario& scenario, std::size_t axis) { return scenario.axes[axis].second; }

/// Whether a scenario misses the deadline or the budget by little, and would be better than the first or nearly so.
bool is_near_miss(const PlanCandidate& candidate, const PlanOptions& options, double value) {
  if (candidate.state == PlanCandidate::refused || candidate.state == PlanCandidate::too_large || candidate.meets)
    return false;
  if (candidate.state == PlanCandidate::worse) return candidate.bound < kNear * value;
  const ScenarioResult& known = candidate.result ? *candidate.result : candidate.least;
  if (options.fits && !known.fits_memory.value_or(true)) return false;
  if (options.deadline && known.total_s > kNear * *options.deadline) return false;
  if (options.budget && known.cost && *known.cost > kNear * *options.budget) return false;
  const std::optional<double> own = objective_value(options.objective, known);
  return own && *own < kNear * value;
}

std::vector<std::size_t> choose_rivals(const std::vector<Scenario>& scenarios, const Plan& plan,
                                       const PlanOptions& options) {
  std::vector<std::size_t> out;
  const auto add = [&](std::size_t index) {
    if (out.size() < kMostRivals && std::ranges::find(out, index) == out.end()) out.push_back(index);
  };
  const std::size_t first = plan.ranking.front();
  add(first);
  // The best that chooses otherwise on each axis.
  for (std::size_t a = 0; a < scenarios[first].axes.size(); ++a)
    if (const auto other = best_other_choice(scenarios, plan, options.objective, a)) add(other->index);
  const double value = *objective_value(options.objective, *plan.candidates[first].result);
  std::vector<std::pair<double, std::size_t>> near;
  for (const PlanCandidate& candidate : plan.candidates)
    if (is_near_miss(candidate, options, value)) near.emplace_back(candidate.bound, candidate.index);
  std::ranges::sort(near);
  for (std::size_t n = 0; n < std::min(near.size(), kNext); ++n) add(near[n].second);
  for (std::size_t r = 0; r < std::min(plan.ranking.size(), kNext + 1); ++r) add(plan.ranking[r]);
  return out;
}

/// What is best among these results, and what has become of the first.
ChangedInput decide(const InputChange& change, const std::vector<std::size_t>& rivals,
                    const std::vector<ScenarioResult>& results, const PlanOptions& options) {
  ChangedInput out{.input = change.input, .change = change.change};
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t r = 0; r < rivals.size(); ++r) {
    const std::optional<double> value = objective_value(options.objective, results[r]);
    if (!value || !options.met_by(results[r])) continue;
    if (r == 0) out.value = value;
    if (*value >= best) continue;
    best = *value;
    out.best = rivals[r];
    out.best_value = value;
  }
  return out;
}

}  // namespace

bool Sensitivity::survives() const {
  return std::ranges::all_of(inputs, [&](const ChangedInput& input) { return input.best == rivals.front(); });
}

Sensitivity sensitivity(const std::vector<Scenario>& scenarios, const Plan& plan, const PlanOptions& options,
                        StoredScenarios& stored, ResultStore& store, const Registries& registries,
                        const SweepOptions& sweep, const std::function<void(const std::string&)>& progress) {
  Sensitivity out;
  out.rivals = choose_rivals(scenarios, plan, options);
  const std::vector<ScenarioResult> base = stored.results(out.rivals, {});
  std::vector<Scenario> own;
  std::vector<ConfigNode> configs;
  for (const std::size_t rival : out.rivals) {
    own.push_back(scenarios[rival]);
    configs.push_back(own.back().config());
  }
  const std::vector<InputChange> changes = input_changes(own, base, kShare);

  std::vector<Scenario> changed;
  std::vector<std::map<std::size_t, std::size_t>> place(changes.size());  // by rival: its number in `changed`
  for (std::size_t c = 0; c < changes.size(); ++c)
    for (std::size_t r = 0; r < own.size(); ++r) {
      if (changes[c].key.empty() || !changes[c].applies(own[r], configs[r], base[r])) continue;
      std::optional<Scenario> other = changes[c].applied(own[r], configs[r]);
      if (!other) continue;
      place[c].emplace(r, changed.size());
      changed.push_back(std::move(*other));
    }
  std::vector<ScenarioResult> simulated;
  if (!changed.empty()) {
    StoredScenarios others(changed, store, registries, sweep, StoredScenarios::As::nothing);
    std::vector<std::size_t> all(changed.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    simulated = others.results(all, [&] {
      if (progress) progress(fmt::format("changed inputs {}/{}", others.simulated(), changed.size()));
    });
  }

  for (std::size_t c = 0; c < changes.size(); ++c) {
    std::vector<ScenarioResult> results = base;
    std::string refused;
    for (std::size_t r = 0; r < own.size(); ++r) {
      if (const auto found = place[c].find(r); found != place[c].end())
        results[r] = simulated[found->second];
      else if (changes[c].key.empty() && changes[c].applies(own[r], configs[r], base[r]))
        results[r] = changes[c].applied(base[r]);
      if (!results[r].error.empty() && base[r].error.empty()) refused = results[r].error;
    }
    if (refused.empty())
      out.inputs.push_back(decide(changes[c], out.rivals, results, options));
    else
      out.unknown.push_back(changes[c].input + " " + changes[c].change + ": " + refused);
  }
  return out;
}

std::string sensitivity_text(const std::vector<Scenario>& scenarios, const Sensitivity& found, Objective objective,
                             const std::string& currency) {
  const std::size_t first = found.rivals.front();
  const auto text = [&](double value) {
    ScenarioResult result;
    result.currency = currency;
    result.total_s = value;
    result.cost = result.energy_j = result.co2_kg = result.time_to_target_s = value;
    return objective_text(objective, result);
  };
  const auto difference = [&](std::size_t other) {
    std::string out;
    for (std::size_t a = 0; a < scenarios[other].axes.size(); ++a)
      if (label_of(scenarios[other], a) != label_of(scenarios[first], a))
        out += (out.empty() ? "" : ", ") + scenarios[other].axes[a].first + "=" + label_of(scenarios[other], a);
    return out;
  };
  Cells rows{{"input", "changed by", "the first then takes", "best then"}};
  std::vector<const ChangedInput*> sorted;
  for (const ChangedInput& input : found.inputs) sorted.push_back(&input);
  std::map<std::string, std::size_t> order;
  for (const ChangedInput& input : found.inputs) order.emplace(input.input, order.size());
  std::ranges::stable_sort(sorted, {}, [&](const ChangedInput* input) { return order.at(input->input); });
  std::size_t changing = 0;
  for (const ChangedInput* input : sorted) {
    const bool stays = input->best == first;
    changing += stays ? 0 : 1;
    rows.push_back({input->input, input->change, input->value ? text(*input->value) : "does not meet the conditions",
                    stays         ? "the first"
                    : input->best ? difference(*input->best) + ": " + text(*input->best_value)
                                  : "nothing meets the conditions"});
  }
  std::string out = align_columns(rows);
  for (const std::string& unknown : found.unknown) out += "not tried: " + unknown + '\n';
  return out + (changing == 0 ? "the decision survives each of these\n"
                              : fmt::format("the decision changes with {} of {}\n", changing, found.inputs.size()));
}

}  // namespace epocast
