#include "experiments/sweep/sweep.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <ctime>
#include <deque>
#include <nlohmann/json.hpp>
#include <set>

#include "experiments/run_study.hpp"
#include "experiments/sweep/scenario_key.hpp"
#include "sim/error.hpp"
#include "sim/fingerprint.hpp"

namespace epocast {
namespace {

using Clock = std::chrono::steady_clock;

double elapsed_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Of a process: long enough for what it prepares to be worth it, and short enough for all to end at about the same
// time.
constexpr double kLeastSeconds = 0.2, kMostSeconds = 10;

/// Which scenarios are to be simulated by which process.
class Batches {
 public:
  Batches(const std::vector<std::size_t>& missing, const std::vector<std::string>& groups, int parallel)
      : parallel_(static_cast<std::size_t>(std::max(1, parallel))) {
    std::map<std::string, std::size_t> number;
    for (const std::size_t index : missing) {
      const auto [group, fresh] = number.emplace(groups[index], waiting_.size());
      if (fresh) waiting_.emplace_back();
      waiting_[group->second].push_back(index);
    }
    left_ = missing.size();
  }

  struct Batch {
    std::vector<std::size_t> indices;
    std::size_t reported = 0;
    bool alone = false;
  };

  /// The next batch's number; none if nothing waits.
  std::optional<int> next() {
    Batch batch;
    if (!alone_.empty()) {
      batch = {{alone_.front()}, 0, true};
      alone_.pop_front();
    } else {
      while (!waiting_.empty() && waiting_.front().empty()) waiting_.pop_front();
      if (waiting_.empty()) return std::nullopt;
      std::deque<std::size_t>& group = waiting_.front();
      const double mean = simulated_ > 0 ? seconds_ / static_cast<double>(simulated_) : kLeastSeconds / 4;
      const auto lasting = [&](double seconds) {
        return static_cast<std::size_t>(std::clamp(std::ceil(seconds / mean), 1.0, 1e6));
      };
      const std::size_t fair = (left_ + 2 * parallel_ - 1) / (2 * parallel_);
      const std::size_t size = std::clamp(fair, lasting(kLeastSeconds), lasting(kMostSeconds));
      while (!group.empty() && batch.indices.size() < size) {
        batch.indices.push_back(group.front());
        group.pop_front();
      }
      // The next process takes another group, if there is one, so that none comes last as a whole.
      if (waiting_.size() > 1) std::rotate(waiting_.begin(), waiting_.begin() + 1, waiting_.end());
    }
    left_ -= batch.indices.size();
    batches_.push_back(std::move(batch));
    return static_cast<int>(batches_.size()) - 1;
  }
  const Batch& batch(int number) const { return batches_[static_cast<std::size_t>(number)]; }

  void reported(int number, const SweptScenario& swept) {
    ++batches_[static_cast<std::size_t>(number)].reported;
    seconds_ += swept.seconds;
    ++simulated_;
  }
  /// To be tried again, by a process of its own.
  void again(std::size_t index) {
    alone_.push_back(index);
    ++left_;
  }
  /// Whether the scenario has had its second chance.
  bool last_chance(std::size_t index) { return !tried_.insert(index).second; }
  /// What a batch has not begun.
  void give_back(const Batch& batch, std::size_t from) {
    if (from >= batch.indices.size()) return;
    waiting_.emplace_back(batch.indices.begin() + static_cast<std::ptrdiff_t>(from), batch.indices.end());
    left_ += batch.indices.size() - from;
  }

 private:
  std::size_t parallel_;
  std::deque<std::deque<std::size_t>> waiting_;  // by group
  std::deque<std::size_t> alone_;
  std::deque<Batch> batches_;
  std::set<std::size_t> tried_;
  std::size_t left_ = 0, simulated_ = 0;
  double seconds_ = 0;
};

StoredRow stored(const Scenario& scenario, const std::string& config, const SweptScenario& swept,
                 const InputNames& names) {
  StoredRow row{.config = config,
                .inputs = names.named(swept.inputs),
                .study = scenario.study,
                .scenario = scenario.name,
                .axes = nlohmann::json(scenario.axes).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                .columns = swept.columns,
                .currency = swept.currency,
                .error = swept.error,
                .exit_code = swept.exit_code,
                .death = swept.death,
                .seconds = swept.seconds};
  row.key = row_key(row.config, row.inputs);
  return row;
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
  Batches batches(indices, needs.groups, options.parallel);
  std::vector<std::pair<std::int64_t, StoredRow>> come;  // not stored yet
  const auto take_row = [&](const SweptScenario& swept) {
    come.emplace_back(static_cast<std::int64_t>(swept.index),
                      stored(scenarios[swept.index], needs.configs[swept.index], swept, names));
  };
  const auto store_rows = [&] {
    if (come.empty()) return;
    store.add(run, come);
    for (const auto& [index, row] : come) rows.added(static_cast<std::size_t>(index), row);
    come.clear();
    if (rows.progress) rows.progress();
  };
  ForkedWork work;
  work.next = [&] { return batches.next(); };
  work.job = [&](int number) {
    const Batches::Batch& batch = batches.batch(number);
    run_batch(scenarios, batch.indices, batch.alone, registries, options.run, options.limits,
              [](const SweptScenario& swept) { send_message(pack(swept)); });
    return std::string();
  };
  work.message = [&](int number, const std::string& text) {
    const SweptScenario swept = unpack_swept(text);
    batches.reported(number, swept);
    if (swept.wrong) return batches.again(swept.index);
    take_row(swept);
  };
  work.after_messages = store_rows;
  work.done = [&](int number, const JobOutcome& outcome) {
    const Batches::Batch& batch = batches.batch(number);
    if (batch.reported == batch.indices.size()) return;
    const std::size_t at = batch.indices[batch.reported];
    if (outcome.finished) return batches.give_back(batch, batch.reported);  // another process goes on
    // It has ended in the middle of a scenario; those behind it have not begun.
    batches.give_back(batch, batch.reported + 1);
    // Whoever ended it may have meant another one, unless it was the clock.
    if (outcome.signal != SIGALRM && !batches.last_chance(at)) return batches.again(at);
    SweptScenario dead = after_end(scenarios[at], registries, outcome, options.limits);
    dead.index = at;
    take_row(dead);
    store_rows();
  };
  if (rows.progress) work.progress = [&](double) { rows.progress(); };
  run_forked(work, options.parallel);
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

std::vector<SweptScenario> sample(const std::vector<Scenario>& scenarios, const std::vector<std::size_t>& indices,
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
    run_batch(scenarios, {index, index}, false, registries, options.run, options.limits,
              [](const SweptScenario& swept) { send_message(pack(swept)); });
    return std::string();
  };
  std::map<int, SweptScenario> latest;
  work.message = [&](int number, const std::string& text) { latest[number] = unpack_swept(text); };
  work.done = [](int, const JobOutcome&) {};
  run_forked(work, options.parallel);
  std::vector<SweptScenario> out;
  for (auto& [number, swept] : latest) out.push_back(std::move(swept));
  return out;
}

}  // namespace epocast
