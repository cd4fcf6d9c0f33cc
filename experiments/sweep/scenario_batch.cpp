#include "experiments/sweep/scenario_batch.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "experiments/run_study.hpp"
#include "experiments/sweep/input_memo.hpp"
#include "experiments/sweep/isolated.hpp"

namespace epocast {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// What a scenario may read from files is named in these places of a study.
constexpr const char* kFilesOf[] = {"platform", "model",      "compute",   "stack",
                                    "steps",    "collective", "optimizer", "precision"};

/// The parts of a configuration that say what is read from files.
std::string files_text(const ConfigNode& config) {
  std::string text;
  for (const char* key : kFilesOf)
    if (config.has(key)) text += std::string(key) + ": " + config.at(key).flow_text() + '\n';
  return text;
}

/// What this process knows that its children need not find out again.
class Preparation {
 public:
  Preparation(const Registries& registries, bool alone) : registries_(registries), alone_(alone) {
    remember_inputs = true;
  }

  /// Reads what the scenario names, unless another has named the same.
  void prepare(const Scenario& scenario) {
    if (alone_) return;
    try {
      if (!known_.insert(files_text(scenario.config())).second) return;
      const ScenarioSetup setup = read_scenario(scenario, registries_);
      if (engine_) return;
      engine_.emplace(setup.cluster.platform_file.string(), setup.network);
      ready_ = {&*engine_, setup.cluster.platform_file, setup.network};
    } catch (const std::exception&) {  // the child will say what is wrong
    }
  }
  const ReadyEngine& ready() const { return ready_; }

 private:
  const Registries& registries_;
  bool alone_;
  std::set<std::string> known_;
  std::optional<SimEngine> engine_;
  ReadyEngine ready_;
};

constexpr const char* kWrongEngine = "!";

/// In the child.
std::string simulate(const Scenario& scenario, const Registries& registries, const RunOptions& options) {
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
    return kWrongEngine;
  }
  swept.inputs = nlohmann::json(record.files()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return pack(swept);
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

void run_batch(const std::vector<Scenario>& scenarios, const std::vector<std::size_t>& indices, bool alone,
               const Registries& registries, const RunOptions& options, const ScenarioLimits& limits,
               const std::function<void(const SweptScenario&)>& done) {
  Preparation preparation(registries, alone);
  for (const std::size_t index : indices) {
    const Scenario& scenario = scenarios[index];
    const Clock::time_point start = Clock::now();
    preparation.prepare(scenario);
    RunOptions own = options;
    own.ready_engine = preparation.ready();
    const JobOutcome outcome =
        run_isolated([&] { return simulate(scenario, registries, own); }, limits.seconds, limits.bytes);
    SweptScenario swept;
    // Whoever ended the process may have meant another one, and it may not have died by itself: once more, alone.
    if (!outcome.finished && outcome.signal != SIGALRM && !alone)
      swept.wrong = true;
    else if (!outcome.finished)
      swept = after_end(scenario, registries, outcome, limits);
    else if (outcome.output == kWrongEngine)
      swept.wrong = true;
    else
      swept = unpack_swept(outcome.output);
    swept.index = index;
    swept.seconds = since(start);
    done(swept);
  }
}

}  // namespace epocast
