#include "experiments/change_trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "experiments/fork_pool.hpp"
#include "sim/error.hpp"

namespace epocast {
namespace {

/// Which changes are to be tried, and what came of those that have been.
class Trials {
 public:
  explicit Trials(const std::vector<StudyChange>& changes)
      : changes_(changes), state_(changes.size(), State::waiting), iterations_(changes.size()) {}

  /// The first whose milder changes are all known not to fit. Nothing for now where there is none.
  std::optional<int> next() {
    for (std::size_t i = 0; i < changes_.size(); ++i) {
      if (state_[i] != State::waiting) continue;
      if (!std::ranges::all_of(changes_[i].milder, [&](std::size_t m) { return state_[m] == State::ended; })) continue;
      if (std::ranges::any_of(changes_[i].milder, [&](std::size_t m) { return iterations_[m].has_value(); })) {
        state_[i] = State::ended;
        continue;
      }
      state_[i] = State::under_way;
      return static_cast<int>(i);
    }
    return std::nullopt;
  }

  void end(int change, std::optional<double> iteration) {
    state_[static_cast<std::size_t>(change)] = State::ended;
    iterations_[static_cast<std::size_t>(change)] = iteration;
  }

  /// Those under way were not tried after all.
  void take_back() { std::ranges::replace(state_, State::under_way, State::waiting); }

  std::vector<Remedy> remedies() const {
    std::vector<Remedy> out;
    for (std::size_t i = 0; i < changes_.size(); ++i)
      if (iterations_[i]) out.push_back({changes_[i].text, *iterations_[i]});
    std::ranges::stable_sort(out, {}, &Remedy::iteration_s);
    return out;
  }

 private:
  enum class State { waiting, under_way, ended };
  const std::vector<StudyChange>& changes_;
  std::vector<State> state_;
  std::vector<std::optional<double>> iterations_;  ///< where it fits
};

}  // namespace

std::vector<Remedy> try_changes(const std::vector<StudyChange>& changes, const SimulateChange& simulate, int parallel) {
  Trials trials(changes);
  const auto iteration = [&](int i) { return simulate(changes[static_cast<std::size_t>(i)]); };
  try {
    run_forked({.next = [&] { return trials.next(); },
                .job =
                    [&](int i) {
                      const std::optional<double> seconds = iteration(i);
                      return seconds ? fmt::format("{:.17g}", *seconds) : std::string();
                    },
                .done =
                    [&](int i, const JobOutcome& outcome) {
                      const bool fits = outcome.finished && !outcome.output.empty();
                      trials.end(i, fits ? std::optional(std::stod(outcome.output)) : std::nullopt);
                    }},
               parallel);
  } catch (const ConfigError&) {  // the system allows no further process: here, then
    trials.take_back();
    while (const std::optional<int> i = trials.next()) trials.end(*i, iteration(*i));
  }
  return trials.remedies();
}

}  // namespace epocast
