#include "experiments/sweep/sweep.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "experiments/batch/scenario_batches.hpp"
#include "experiments/sweep/scenario_key.hpp"
#include "sim/error.hpp"
#include "sim/fingerprint.hpp"

namespace epocast {
namespace {

using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double elapsed_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// What a row holds of a result.
std::string encode_row(const ScenarioResult& result) {
  std::string out;
  put_text(out, result.error.empty() ? columns_of(result).dump(-1, ' ', false, ordered_json::error_handler_t::replace)
                                     : std::string());
  put_text(out, result.currency);
  put_text(out, result.error);
  return out;
}

StoredRow stored(const Scenario& scenario, const std::string& config, const BatchedScenario& batched,
                 const InputNames& names) {
  std::string_view rest = batched.result;
  StoredRow row{.config = config,
                .inputs = names.named(batched.inputs),
                .study = scenario.study,
                .scenario = scenario.name,
                .axes = nlohmann::json(scenario.axes).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                .exit_code = batched.exit_code,
                .seconds = batched.seconds};
  row.columns = take_text(rest);
  row.currency = take_text(rest);
  row.error = take_text(rest);
  if (batched.exit_code != 0) row.death = batched.killed || batched.exit_code == 2 ? Death::outside : Death::own;
  row.key = row_key(row.config, row.inputs);
  return row;
}

BatchOptions batch_options(const SweepOptions& options) {
  RunOptions run = options.run;
  run.advise = false;  // what might do better is what the sweep is for
  return {.run = run, .limits = options.limits, .encode = encode_row, .record_inputs = true};
}

void count(SweepState& state, int exit_code, const std::string& error) {
  state.exit_code = std::max(state.exit_code, exit_code);
  if (error.empty()) return;
  ++state.failed;
  ++state.errors[error];
}

/// The study that a scenario is of, as YAML, with what the command line changed.
std::string text_of_study(const Scenario& scenario) {
  Scenario whole = scenario;
  std::erase_if(whole.settings, [&](const auto& setting) {
    return std::ranges::any_of(scenario.axes, [&](const auto& axis) { return axis.first == setting.first; });
  });
  const ConfigNode config = whole.config();
  std::string text;
  for (const std::string& key : config.keys()) text += key + ": " + config.at(key).flow_text() + '\n';
  if (scenario.base.has("sweep")) text += "sweep: " + scenario.base.at("sweep").flow_text() + '\n';
  return text;
}

/// The number of the run that these rows belong to: the last one of the study if it has the same plan and no other
/// rows.
std::int64_t choose_run(ResultStore& store, const SweepNeeds& needs, const Scenario& first, std::size_t scenarios,
                        const SweepOptions& options) {
  const std::optional<StoredRun> last = store.last_run(first.study);
  if (last && last->plan == needs.plan) {
    const std::map<std::int64_t, std::string> members = store.members(last->id);
    const bool same = std::ranges::all_of(members, [&](const auto& member) {
      const auto is_in = [&](const auto& keys) {
        const auto found = keys.find(member.first);
        return found != keys.end() && found->second == member.second;
      };
      return needs.configs[static_cast<std::size_t>(member.first)].empty() || is_in(needs.present) ||
             is_in(needs.again);
    });
    if (same) return last->id;
  }
  const StoredRun run{.plan = needs.plan,
                      .study = first.study,
                      .program = program_identity(options.version),
                      .started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))),
                      .scenarios = static_cast<std::int64_t>(scenarios),
                      .text = text_of_study(first)};
  return store.begin_run(run);
}

}  // namespace

Shard parse_shard(const std::string& text) {
  Shard shard;
  const std::size_t slash = text.find('/');
  const auto number = [&](std::string_view part, std::int64_t& out) {
    const auto [end, status] = std::from_chars(part.data(), part.data() + part.size(), out);
    return status == std::errc() && end == part.data() + part.size();
  };
  if (slash == std::string::npos || !number(std::string_view(text).substr(0, slash), shard.part) ||
      !number(std::string_view(text).substr(slash + 1), shard.of) || shard.of < 1 || shard.part < 1 ||
      shard.part > shard.of || shard.of > 1'000'000)
    throw ConfigError("--shard wants PART/PARTS, as in --shard 3/64, got '" + text + "'");
  return shard;
}

SweepNeeds sweep_needs(const std::vector<Scenario>& scenarios, ResultStore* store, const SweepOptions& options) {
  SweepNeeds needs;
  const std::string program = program_identity(options.version);
  std::multimap<std::string, KnownRow> known;
  if (store != nullptr) known = store->known();
  InputNames names(options.folder);
  std::map<std::int64_t, bool> unchanged;
  std::string plan;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    ScenarioKey key;
    try {
      key = scenario_key(scenarios[i], program, options.run);
    } catch (const ConfigError& problem) {  // the scenario's row will say so
      key.config = fingerprint(program + scenarios[i].study + scenarios[i].name + problem.what());
    }
    plan += key.config;
    const bool ours = options.shard.has(i);
    needs.configs.push_back(ours ? key.config : "");
    needs.groups.push_back(std::move(key.group));
    if (!ours) continue;
    const KnownRow* found = nullptr;
    for (auto [row, end] = known.equal_range(key.config); row != end && found == nullptr; ++row) {
      const auto [fresh, first] = unchanged.emplace(row->second.inputs, false);
      if (first) fresh->second = names.unchanged(store->inputs(row->second.inputs));
      if (!fresh->second) continue;
      if (row->second.death == Death::outside || (options.retry && row->second.death == Death::own))
        needs.again.insert_or_assign(static_cast<std::int64_t>(i), row->second.key);
      else
        found = &row->second;
    }
    if (found != nullptr)
      needs.present.emplace(static_cast<std::int64_t>(i), found->key);
    else
      needs.missing.push_back(i);
  }
  needs.plan = fingerprint(plan);
  return needs;
}

void simulate_stored(const std::vector<Scenario>& scenarios, const std::vector<std::size_t>& indices,
                     const SweepNeeds& needs, ResultStore& store, std::int64_t run, const Registries& registries,
                     const SweepOptions& options, const SweptRows& rows) {
  const InputNames names(options.folder);
  std::vector<std::pair<std::int64_t, StoredRow>> come;  // not stored yet
  BatchSink sink;
  sink.ended = [&](const BatchedScenario& batched) {
    come.emplace_back(static_cast<std::int64_t>(batched.index),
                      stored(scenarios[batched.index], needs.configs[batched.index], batched, names));
  };
  sink.after_several = [&] {
    if (come.empty()) return;
    store.add(run, come);
    for (const auto& [index, row] : come) rows.added(static_cast<std::size_t>(index), row);
    come.clear();
    if (rows.progress) rows.progress();
  };
  if (rows.progress) sink.progress = [&](double) { rows.progress(); };
  run_batches(scenarios, indices, needs.groups, registries, batch_options(options), options.parallel, sink);
}

std::int64_t open_run(const std::vector<Scenario>& scenarios, ResultStore& store, const SweepNeeds& needs,
                      const SweepOptions& options) {
  const std::int64_t run = choose_run(store, needs, scenarios.front(), scenarios.size(), options);
  const std::map<std::int64_t, std::string> members = store.members(run);
  std::map<std::int64_t, std::string> absent;
  for (const auto& [position, key] : needs.present)
    if (!members.contains(position)) absent.emplace(position, key);
  if (!absent.empty()) store.add_members(run, absent);
  return run;
}

SweepState run_sweep(const std::vector<Scenario>& scenarios, ResultStore& store, const Registries& registries,
                     const SweepOptions& options, const SweepProgress& progress) {
  const Clock::time_point start = Clock::now();
  const SweepNeeds needs = sweep_needs(scenarios, &store, options);
  SweepState state{.of = needs.present.size() + needs.missing.size(), .present = needs.present.size()};
  const std::int64_t run = open_run(scenarios, store, needs, options);
  SweptRows rows;
  rows.added = [&](std::size_t, const StoredRow& row) {
    ++state.computed;
    count(state, row.exit_code, row.error);
  };
  rows.progress = [&] {
    state.seconds = elapsed_since(start);
    if (progress) progress(state);
  };
  simulate_stored(scenarios, needs.missing, needs, store, run, registries, options, rows);
  state.failed = 0;
  state.exit_code = 0;
  state.errors.clear();
  store.for_each_error(run, [&](int exit_code, const std::string& error) { count(state, exit_code, error); });
  rows.progress();
  return state;
}

std::vector<SampledScenario> sample(const std::vector<Scenario>& scenarios, const std::vector<std::size_t>& indices,
                                    const Registries& registries, const SweepOptions& options) {
  constexpr std::size_t kSamples = 8;
  std::vector<std::size_t> chosen;
  const std::size_t samples = std::min(kSamples, indices.size());
  for (std::size_t s = 0; s < samples; ++s) chosen.push_back(indices[s * indices.size() / samples]);
  std::size_t next = 0;
  ForkedWork work;
  work.next = [&] { return next < chosen.size() ? std::optional<int>(static_cast<int>(next++)) : std::nullopt; };
  work.job = [&](int number) {
    // Twice: the second time is that of a scenario among many.
    const std::size_t index = chosen[static_cast<std::size_t>(number)];
    BatchOptions batch = batch_options(options);
    batch.encode = [](const ScenarioResult& result) { return result.error; };
    BatchProcess(registries, batch).run(scenarios, {index, index}, false, [](const BatchedScenario& batched) {
      send_message(pack(batched));
    });
    return std::string();
  };
  std::map<int, SampledScenario> latest;
  work.message = [&](int number, const std::string& text) {
    const BatchedScenario batched = unpack_batched(text);
    latest[number] = {batched.seconds, batched.exit_code, batched.result};
  };
  work.done = [](int, const JobOutcome&) {};
  run_forked(work, options.parallel);
  std::vector<SampledScenario> out;
  for (auto& [number, sampled] : latest) out.push_back(std::move(sampled));
  return out;
}

}  // namespace epocast
