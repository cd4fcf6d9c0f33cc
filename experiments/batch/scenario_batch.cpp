#include "experiments/batch/scenario_batch.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "experiments/batch/scenario_outcome.hpp"
#include "experiments/fork_pool.hpp"
#include "experiments/large_pages.hpp"
#include "sim/input_memo.hpp"
#include "sim/input_record.hpp"
#include "sim/simgrid/restart.hpp"
#include "sim/simgrid/simgrid.hpp"

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
bool make_engine(const Scenario& scenario, const Registries& registries, std::unique_ptr<SimEngine>& engine,
                 ReadyEngine& ready) {
  std::optional<ScenarioSetup> setup;
  try {
    setup.emplace(read_scenario(scenario, registries));
  } catch (const std::exception&) {
    return true;
  }
  try {
    engine = std::make_unique<SimEngine>(setup->cluster, setup->network);
  } catch (const std::exception&) {
    return false;
  }
  ready = {&*engine, setup->cluster.platform_file, setup->network};
  return true;
}

std::filesystem::path numbered(std::filesystem::path file, std::size_t number) {
  return file.replace_filename(fmt::format("{}-{}{}", file.stem().string(), number, file.extension().string()));
}

struct Numbers {
  std::uint64_t index;
  double seconds;
  int exit_code;
  bool killed, wrong, with_simgrid;
};

}  // namespace

void put_text(std::string& out, std::string_view text) {
  const std::uint64_t size = text.size();
  out.append(reinterpret_cast<const char*>(&size), sizeof size);
  out.append(text);
}

std::string_view take_text(std::string_view& text) {
  std::uint64_t size = 0;
  std::memcpy(&size, text.data(), sizeof size);
  const std::string_view part = text.substr(sizeof size, size);
  text.remove_prefix(sizeof size + size);
  return part;
}

std::string pack(const BatchedScenario& batched) {
  const Numbers numbers{batched.index,  batched.seconds, batched.exit_code,
                        batched.killed, batched.wrong,   batched.with_simgrid};
  std::string out(sizeof numbers, '\0');
  std::memcpy(out.data(), &numbers, sizeof numbers);
  put_text(out, batched.result);
  put_text(out, batched.inputs);
  return out;
}

BatchedScenario unpack_batched(const std::string& text) {
  Numbers numbers;
  std::memcpy(&numbers, text.data(), sizeof numbers);
  std::string_view rest = std::string_view(text).substr(sizeof numbers);
  BatchedScenario batched{.index = numbers.index,
                          .exit_code = numbers.exit_code,
                          .killed = numbers.killed,
                          .wrong = numbers.wrong,
                          .seconds = numbers.seconds,
                          .with_simgrid = numbers.with_simgrid};
  batched.result = take_text(rest);
  batched.inputs = take_text(rest);
  return batched;
}

BatchProcess::BatchProcess(const Registries& registries, BatchOptions options)
    : registries_(registries), options_(std::move(options)) {
  remember_inputs = true;
  limit_memory(options_.limits.bytes);
  use_large_pages();
  options_.run.progress = report_progress;
}

BatchProcess::~BatchProcess() = default;

BatchedScenario BatchProcess::simulate(const Scenario& scenario, const RunOptions& run) const {
  std::optional<InputRecord> record;
  if (options_.record_inputs) record.emplace();
  BatchedScenario batched;
  try {
    const ScenarioResult result = run_or_fail(scenario, registries_, run);
    batched.result = options_.encode(result);
    batched.exit_code = result.exit_code;
  } catch (const WrongEngine&) {
    batched.wrong = true;
  }
  if (record)
    batched.inputs = nlohmann::json(record->files()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return batched;
}

void BatchProcess::run(const std::vector<Scenario>& scenarios, const std::vector<std::size_t>& indices, bool alone,
                       const std::function<void(const BatchedScenario&)>& done) {
  for (const std::size_t index : indices) {
    const Clock::time_point start = Clock::now();
    if (!restart_engine()) return;
    report_progress(0);
    limit_time(options_.limits.seconds);
    const bool possible =
        alone || engine_ || make_engine(scenarios[index], registries_, engine_, options_.run.ready_engine);
    RunOptions run = options_.run;
    if (scenarios.size() > 1 && !run.trace_file.empty()) run.trace_file = numbered(run.trace_file, index + 1);
    BatchedScenario batched;
    if (possible) batched = simulate(scenarios[index], run);
    // What went wrong here may be the fault of those before.
    if (!possible || (!alone && batched.exit_code != 0 && batched.exit_code != 2)) batched = {.wrong = true};
    limit_time(0);
    batched.index = index;
    batched.seconds = since(start);
    batched.with_simgrid = simgrid_is_loaded();
    done(batched);
  }
}

}  // namespace epocast
