#include "experiments/sweep/scenario_batch.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "experiments/large_pages.hpp"
#include "experiments/run_study.hpp"
#include "experiments/sweep/input_memo.hpp"
#include "sim/input_record.hpp"
#include "sim/simgrid/restart.hpp"

namespace epocast {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// This process ends with SIGALRM unless another call comes before so many seconds have passed; 0: never.
void limit_time(double seconds) {
  itimerval timer = {};
  timer.it_value.tv_sec = static_cast<time_t>(seconds);
  if (seconds > 0) timer.it_value.tv_usec = static_cast<suseconds_t>((seconds - std::floor(seconds)) * 1e6) + 1;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

void limit_memory(double bytes) {
  if (!(bytes > 0)) return;
  const rlimit limit{static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
  setrlimit(RLIMIT_AS, &limit);
}

/// Makes the engine of a scenario that can be read; one that cannot will say why. Returns whether all went well.
bool make_engine(const Scenario& scenario, const Registries& registries, std::optional<SimEngine>& engine,
                 ReadyEngine& ready) {
  std::optional<ScenarioSetup> setup;
  try {
    setup.emplace(read_scenario(scenario, registries));
  } catch (const std::exception&) {
    return true;
  }
  try {
    engine.emplace(setup->cluster.platform_file.string(), setup->network);
  } catch (const std::exception&) {
    return false;
  }
  ready = {&*engine, setup->cluster.platform_file, setup->network};
  return true;
}

SweptScenario simulate(const Scenario& scenario, const Registries& registries, const RunOptions& options) {
  const InputRecord record;
  SweptScenario swept;
  try {
    const ScenarioResult result = run_or_fail(scenario, registries, options);
    if (result.error.empty())
      swept.columns = columns_of(result).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    swept.currency = result.currency;
    swept.error = result.error;
    swept.exit_code = result.exit_code;
    if (result.exit_code != 0) swept.death = result.exit_code == 2 ? Death::outside : Death::own;
  } catch (const WrongEngine&) {
    swept.wrong = true;
  }
  swept.inputs = nlohmann::json(record.files()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return swept;
}

void put(std::string& out, std::string_view text) {
  const std::uint64_t size = text.size();
  out.append(reinterpret_cast<const char*>(&size), sizeof size);
  out.append(text);
}

std::string_view take(std::string_view& text) {
  std::uint64_t size = 0;
  std::memcpy(&size, text.data(), sizeof size);
  const std::string_view part = text.substr(sizeof size, size);
  text.remove_prefix(sizeof size + size);
  return part;
}

struct Numbers {
  std::uint64_t index;
  double seconds;
  int exit_code;
  Death death;
  bool wrong;
};

}  // namespace

std::string pack(const SweptScenario& swept) {
  const Numbers numbers{swept.index, swept.seconds, swept.exit_code, swept.death, swept.wrong};
  std::string out(sizeof numbers, '\0');
  std::memcpy(out.data(), &numbers, sizeof numbers);
  for (const std::string* text : {&swept.columns, &swept.currency, &swept.error, &swept.inputs}) put(out, *text);
  return out;
}

SweptScenario unpack_swept(const std::string& text) {
  Numbers numbers;
  std::memcpy(&numbers, text.data(), sizeof numbers);
  std::string_view rest = std::string_view(text).substr(sizeof numbers);
  SweptScenario swept{.index = numbers.index,
                      .exit_code = numbers.exit_code,
                      .death = numbers.death,
                      .wrong = numbers.wrong,
                      .seconds = numbers.seconds};
  for (std::string* part : {&swept.columns, &swept.currency, &swept.error, &swept.inputs}) *part = take(rest);
  return swept;
}

SweptScenario after_end(const Scenario& scenario, const Registries& registries, const JobOutcome& outcome,
                        const ScenarioLimits& limits) {
  SweptScenario swept;
  ScenarioResult result =
      outcome.signal == SIGALRM
          ? failed_scenario(scenario, 1,
                            fmt::format("took longer than {}; raise --time-limit", to_string(Seconds(limits.seconds))))
          : after_death(scenario, registries, outcome);
  swept.error = std::move(result.error);
  swept.exit_code = result.exit_code;
  swept.death = outcome.signal == SIGKILL ? Death::outside : Death::own;
  swept.inputs = "{}";
  return swept;
}

void run_batch(const std::vector<Scenario>& scenarios, const std::vector<std::size_t>& indices, bool alone,
               const Registries& registries, RunOptions options, const ScenarioLimits& limits,
               const std::function<void(const SweptScenario&)>& done) {
  remember_inputs = true;
  limit_memory(limits.bytes);
  use_large_pages();
  std::optional<SimEngine> engine;
  for (const std::size_t index : indices) {
    const Clock::time_point start = Clock::now();
    if (!restart_engine()) return;
    limit_time(limits.seconds);
    const bool possible = alone || engine || make_engine(scenarios[index], registries, engine, options.ready_engine);
    SweptScenario swept;
    if (possible) swept = simulate(scenarios[index], registries, options);
    // What went wrong here may be the fault of those before.
    if (!possible || (!alone && swept.exit_code != 0 && swept.exit_code != 2)) swept = {.wrong = true};
    limit_time(0);
    swept.index = index;
    swept.seconds = since(start);
    done(swept);
  }
}

}  // namespace epocast
