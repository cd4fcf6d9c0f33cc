// Ours: the draft plans these experiments and has no numbers, so that nothing here is compared with anything. Seven
// schemes on 1 to 64 workers, equal ones and such that every other one takes twice as long: accuracy after equally many
// epochs, and the simulated time to 80 %, each at the scheme's best rate, over five seeds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/learning/curves.hpp"
#include "experiments/line_plot.hpp"
#include "experiments/reproduce/hermans2017/targets.hpp"
#include "experiments/reproduce/simulate.hpp"
#include "sim/data_directory.hpp"
#include "sim/file_output.hpp"

namespace epocast::hermans2017 {
namespace {

/// Over seeds.
struct Spread {
  double low = 0, median = 0, high = 0;
};

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  return {values.front(), values[values.size() / 2], values.back()};
}

/// What a scheme does at one rate.
struct Trial {
  std::string rate;
  Spread accuracy;             ///< at the end; of what diverged, a guess among ten digits
  std::optional<Spread> time;  ///< s to the target, if all seeds reach it
};

struct Key {
  bool unequal = false;
  std::int64_t workers = 1;
  std::string scheme;
  auto operator<=>(const Key&) const = default;
};

constexpr double kGuess = 0.1;

Trial trial_of(const ScenarioResult& result) {
  std::vector<double> accuracies, times;
  for (const learning::LearningOutcome& seed : unpack_curves(result.curves)) {
    const double last = seed.curve.back().accuracy.value_or(kGuess);
    accuracies.push_back(seed.diverged || !std::isfinite(last) ? kGuess : last);
    if (seed.reached) times.push_back(seed.reached->time);
  }
  Trial trial{.rate = result.axes[1].second, .accuracy = spread_of(accuracies), .time = {}};
  if (times.size() == accuracies.size()) trial.time = spread_of(times);
  return trial;
}

/// The study's scenarios, or those of the same in which every other worker takes twice as long.
std::vector<Scenario> scenarios_on(const std::filesystem::path& file, bool unequal, const TargetContext& context) {
  std::vector<Scenario> out;
  for (const int workers : {1, 2, 4, 8, 16, 32, 64}) {
    if ((unequal && workers == 1) || (context.effort < 1 && workers != 4)) continue;
    std::vector<Override> changes{{"sweep.workers", fmt::format("[{}]", workers)}};
    if (context.effort < 1)
      changes.insert(changes.end(),
                     {{"learning.seeds", "1"}, {"noise.seeds", "1"}, {"sweep.learning.rate", "[0.03, 0.1]"}});
    if (unequal) {
      std::string slow;
      for (int w = 1; w < workers; w += 2) slow += fmt::format("{}{{worker: {}, slowdown: 2}}", w > 1 ? ", " : "", w);
      changes.push_back({"stragglers", "[" + slow + "]"});
    }
    const Study study = load_study(file, changes);
    out.insert(out.end(), study.scenarios.begin(), study.scenarios.end());
  }
  return out;
}

TargetRow ours(std::string row, std::string quantity, std::string unit, const Spread& value, std::string note) {
  return {.row = std::move(row),
          .quantity = std::move(quantity),
          .unit = std::move(unit),
          .published = std::nullopt,
          .simulated = value.median,
          .role = Role::stated,
          .note = std::move(note),
          .low = value.low,
          .high = value.high};
}

/// Median and band over workers, a line for each scheme.
void draw(const std::filesystem::path& folder, bool unequal, const std::string& name, const std::string& label,
          const std::map<Key, Spread>& values) {
  std::vector<PlotLine> lines;
  for (const auto& [key, value] : values) {
    if (key.unequal != unequal) continue;
    auto line = std::ranges::find(lines, key.scheme, &PlotLine::name);
    if (line == lines.end()) line = lines.insert(lines.end(), PlotLine{.name = key.scheme, .points = {}});
    line->points[static_cast<double>(key.workers)] = value.median;
    line->band[static_cast<double>(key.workers)] = {value.low, value.high};
  }
  if (lines.empty()) return;
  std::filesystem::create_directories(folder);
  write_file(folder / fmt::format("hermans2017_{}_{}.svg", name, unequal ? "unequal" : "equal"),
             lines_svg(lines, unequal ? "workers, every other one half as fast" : "workers", label, true));
}

std::vector<TargetRow> run_experiments(const TargetContext& context) {
  const std::filesystem::path file =
      data_directory() / "experiments" / "reproduce" / "hermans2017" / "experiments.yaml";
  std::vector<Scenario> scenarios = scenarios_on(file, false, context);
  const std::size_t equal = scenarios.size();
  const std::vector<Scenario> slower = scenarios_on(file, true, context);
  scenarios.insert(scenarios.end(), slower.begin(), slower.end());
  const std::vector<ScenarioResult> results = simulate_keeping(scenarios, context);

  std::map<Key, std::vector<Trial>> trials;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string& strategy = results[i].axes[2].second;
    trials[{i >= equal, results[i].workers, strategy.substr(0, strategy.find('('))}].push_back(trial_of(results[i]));
  }
  std::vector<TargetRow> rows;
  std::map<Key, Spread> accuracies, times;
  for (const auto& [key, at_rates] : trials) {
    const std::string row =
        fmt::format("n={} {}{}", key.workers, key.scheme, key.unequal ? ", every other worker half as fast" : "");
    const Trial& most = *std::ranges::max_element(at_rates, {}, [](const Trial& t) { return t.accuracy.median; });
    accuracies[key] = most.accuracy;
    rows.push_back(ours(row, "accuracy after 12 epochs", "", most.accuracy, fmt::format("ours, rate {}", most.rate)));
    const Trial* first = nullptr;
    for (const Trial& trial : at_rates)
      if (trial.time && (first == nullptr || trial.time->median < first->time->median)) first = &trial;
    if (first == nullptr) continue;
    times[key] = *first->time;
    rows.push_back(ours(row, "time to 80 %", "s", *first->time, fmt::format("ours, rate {}", first->rate)));
  }
  if (!context.figures.empty())
    for (const bool unequal : {false, true}) {
      draw(context.figures, unequal, "accuracy", "accuracy after 12 epochs", accuracies);
      draw(context.figures, unequal, "time", "s to 80 %", times);
    }
  return rows;
}

}  // namespace

Target experiments() {
  return {.paper = "hermans2017",
          .table = "experiments",
          .description = "seven schemes on drawn digits, 1 to 64 workers: ours, the draft has no numbers",
          .mape_bound = std::nullopt,
          .run = run_experiments};
}

}  // namespace epocast::hermans2017
