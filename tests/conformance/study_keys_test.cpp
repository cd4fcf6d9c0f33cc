// Keys of a study x strategies: two features that know nothing of each other meet in some study. So every key is tried
// with every strategy, against what the key must do to the result whatever the strategy is: recomputation takes time,
// slower links take none from computing, a reserve adds to memory and to nothing else.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <regex>
#include <set>
#include <sstream>

#include "experiments/batch/scenario_batches.hpp"
#include "experiments/scenario.hpp"
#include "sim/error.hpp"
#include "strategies/register.hpp"
#include "tests/conformance/study_keys.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::study_keys_test {

using namespace epocast::conformance;

namespace {

/// Residual blocks, so that recomputation has all its words, and two layers with most of the parameters.
constexpr const char* kModel = R"(model: small
description: two residual blocks
source: made up
input: {channels: 3, height: 16, width: 16}
layers:
  - {conv: conv1, filters: 16, kernel: 3, padding: 1}
  - {relu: relu1}
  - {conv: conv2, filters: 16, kernel: 3, padding: 1}
  - {add: sum2, inputs: [conv2, relu1]}
  - {batch_norm: norm2}
  - {relu: relu2}
  - {conv: conv3, filters: 16, kernel: 3, padding: 1}
  - {add: sum3, inputs: [conv3, relu2]}
  - {pool: pool3, kernel: 2, stride: 2}
  - {fc: fc1, units: 512}
  - {relu: relu4}
  - {fc: fc2, units: 10}
  - softmax
)";

constexpr const char* kPlatform = R"(<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="small_star" routing="Full">
    <prop id="epocast.device_model" value="synthetic"/>
    <prop id="epocast.peak_rate" value="1 TFLOP/s"/>
    <prop id="epocast.peak_rate_fp16" value="4 TFLOP/s"/>
    <prop id="epocast.memory" value="16 GB"/>
    <prop id="epocast.memory_bandwidth" value="500 GB/s"/>
    <prop id="epocast.cores" value="8"/>
    <cluster id="star" prefix="d" radical="0-5" suffix="" speed="1Tf" bw="1GBps" lat="10us" sharing_policy="SPLITDUPLEX"/>
  </zone>
</platform>
)";

constexpr std::int64_t kIterations = 100;  // or more, on fewer than four workers

struct StrategyOptions {
  std::string text;  ///< YAML
  int workers = 4;
  /// Whether a rank only ever waits for given others, and in a given order: only then does what takes longer make
  /// nobody faster (Graham 1969: anomalies of list scheduling).
  bool in_step = true;
};

std::vector<StrategyOptions> all_strategies() {
  std::vector<StrategyOptions> out{
      {"{name: single}", 1},
      {"{name: data_parallel}"},
      {"{name: data_parallel, overlap: false, accumulation: 2}"},
      {"{name: data_parallel, granularity: cycle}", 4, false},
      {"{name: local_sgd, period: 4}"},
      {"{name: two_chunk_data_parallel, k: 2}"},
      {"{name: gossip}", 4, false},
      {"{name: hogwild}", 1, false},
      {"{name: filter_parallel}", 2, false},
      {"{name: layerwise}"},
      // Other methods place another graph, such as that of another optimizer, anew.
      {"{name: operators, bandwidth: 1 GB/s, method: single, devices: 1}"},
      {"{name: operators, nodes: passes, bandwidth: 1 GB/s, method: single, devices: 2}"},
      {"{name: composition, mesh: {data: rest}, synchronisation: sharded}"},
      {"{name: composition, mesh: {pipeline: 2, data: 2}, schedule: {split: even}}", 4, false},
      {"{name: collective_benchmark, bytes: 1 MB}"}};
  for (const int stage : {1, 2, 3}) out.push_back({fmt::format("{{name: sharded_data_parallel, stage: {}}}", stage)});
  for (const char* gradients : {"all_reduce", "reduce_scatter", "all_to_all", "pcnn"})
    out.push_back({fmt::format("{{name: layerwise_data_parallel, gradients: {}}}", gradients)});
  for (const char* mode : {"sync", "async", "stale", "backup"})
    out.push_back({fmt::format("{{name: parameter_server, mode: {}}}", mode), 4, false});
  for (const char* name :
       {"downpour", "agn", "adag", "async_momentum", "async_local_sgd", "model_averaging", "easgd", "aeasgd"})
    out.push_back({fmt::format("{{name: {}, period: 2}}", name), 3, false});
  // With two stages, messages and all-reduces of replicas share links.
  for (const int stages : {2, 4}) {
    const auto add = [&](const char* schedule, bool in_step) {
      out.push_back({fmt::format("{{name: pipeline, stages: {}, split: even, schedule: {}}}", stages, schedule), 4,
                     in_step && stages == 4});
    };
    for (const char* schedule : {"naive", "gpipe", "gpipe, recompute: true"}) add(schedule, true);
    for (const char* schedule : {"1f1b", "interleaved", "zb_h1", "zb_h2", "pipedream", "2bw", "threaded"})
      add(schedule, false);  // activations and gradients share links
  }
  return out;
}

std::string replaced(std::string text, const std::string& word, const std::string& by) {
  const auto at = text.find(word);
  return at == std::string::npos ? text : text.replace(at, word.size(), by);
}

/// The base study with the lines of one key instead of its own.
std::string study_with(const StrategyOptions& strategy, const std::string& lines, const std::string& files) {
  std::string hosts;
  for (int w = strategy.workers; w-- > 0;) hosts += fmt::format("d{}{}", w, w > 0 ? ", " : "");
  const std::string own = replaced(replaced(lines, "PERMUTED", hosts), "GLOBAL", std::to_string(16 * strategy.workers));
  std::string out =
      fmt::format("study: keys\nplatform: {0}.xml\nmodel: {0}.yaml\nstrategy: {1}\n{2}\n", files, strategy.text, own);
  for (const auto& [key, line] : {std::pair<std::string, std::string>{"workers", std::to_string(strategy.workers)},
                                  {"batch", "{per_worker: 16}"},
                                  {"dataset", "{samples: 6400}"}})
    if (("\n" + own).find("\n" + key + ": ") == std::string::npos) out += key + ": " + line + "\n";
  return out;
}

/// What comes of each study's first scenario, as text.
std::vector<std::string> run(const std::vector<std::string>& studies) {
  std::vector<std::string> results(studies.size());
  std::vector<Scenario> scenarios;
  std::vector<std::size_t> numbers;  // by scenario
  for (std::size_t i = 0; i < studies.size(); ++i) {
    try {
      scenarios.push_back(parse_study(studies[i], "study.yaml").scenarios.front());
      numbers.push_back(i);
    } catch (const ConfigError& problem) {
      ScenarioResult refused;
      refused.exit_code = 2;
      refused.error = problem.what();
      results[i] = serialize(refused);
    }
  }
  std::vector<std::size_t> all(scenarios.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<std::string> groups;
  for (const Scenario& scenario : scenarios) groups.push_back(network_group(scenario.config()));
  run_batches(scenarios, all, groups, builtin_registries(), {.encode = serialize}, available_processors(),
              {.ended = [&](BatchedScenario&& ended) { results[numbers[ended.index]] = std::move(ended.result); }});
  return results;
}

/// Checks that a column changes as it may.
void check(const char* column, Change change, double from, double to) {
  INFO(column << ": " << fmt::format("{:.17g} -> {:.17g}", from, to));
  const double rounding = 1e-9 * std::max(std::abs(from), std::abs(to));
  switch (change) {
    case Change::none: CHECK(std::abs(to - from) <= rounding); break;
    case Change::not_less: CHECK(to >= from - rounding); break;
    case Change::not_more: CHECK(to <= from + rounding); break;
    case Change::more: CHECK(to > from + rounding); break;
    case Change::any: break;
  }
}

}  // namespace

TEST_CASE("every key of a study does to every strategy what it must", "[conformance][studies]") {
  const std::string files =
      (std::filesystem::temp_directory_path() / fmt::format("epocast-keys-{}", getpid())).string();
  std::ofstream(files + ".yaml") << kModel;
  std::ofstream(files + ".xml") << kPlatform;
  const std::vector<StrategyOptions> strategies = all_strategies();
  const std::vector<KeyEffect> effects = key_effects();
  // Studies that come more than once run once.
  std::vector<std::string> studies;
  const auto number_of = [&](const std::string& study) {
    const auto known = std::find(studies.begin(), studies.end(), study) - studies.begin();
    if (known == std::ssize(studies)) studies.push_back(study);
    return static_cast<std::size_t>(known);
  };
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const StrategyOptions& strategy : strategies)
    for (const KeyEffect& effect : effects)
      pairs.emplace_back(number_of(study_with(strategy, effect.from, files)),
                         number_of(study_with(strategy, effect.to, files)));
  const std::vector<std::string> results = run(studies);
  for (const char* ending : {".yaml", ".xml"}) std::filesystem::remove(files + ending);

  std::size_t next = 0, refusals = 0;
  for (const StrategyOptions& strategy : strategies)
    for (const KeyEffect& effect : effects) {
      const auto [before, after] = pairs[next++];
      INFO("strategy " << strategy.text << ", " << effect.key << " from '" << effect.from << "' to '" << effect.to
                       << "'");
      const ScenarioResult from = deserialize(results[before]);
      const ScenarioResult to = deserialize(results[after]);
      INFO(from.error << to.error);
      REQUIRE(from.error.empty());
      if (!to.error.empty()) {
        ++refusals;
        CHECK(effect.some_refuse);
        CHECK(to.exit_code == 2);
        CHECK(to.error.find(effect.key) != std::string::npos);
        continue;
      }
      const bool trains = from.peak_memory_bytes.has_value();
      const auto for_training = [&](Change change) {
        return !trains && change == Change::more ? Change::not_less : change;
      };
      // Without a period, averages are over a window in which workers that drift apart do unequal numbers of steps;
      // that is little beside what recomputation or another cost model makes.
      const auto periodic = [](const ScenarioResult& result) {
        return result.exact && result.iterations_simulated < kIterations;
      };
      if (effect.compute == Change::more || (periodic(from) && periodic(to)))
        check("compute_s", for_training(effect.compute), from.compute_s, to.compute_s);
      const bool promised = strategy.in_step || (effect.time != Change::not_less && effect.time != Change::not_more);
      if (promised) check("iteration_s", effect.time, from.iteration_s, to.iteration_s);
      if (promised) check("total_s", effect.time, from.total_s, to.total_s);
      check("comm_bytes_per_iteration", effect.bytes, from.comm_bytes_per_iteration, to.comm_bytes_per_iteration);
      check("peak_memory_bytes", for_training(effect.memory), from.peak_memory_bytes.value_or(0),
            to.peak_memory_bytes.value_or(0));
    }
  CHECK(refusals < pairs.size() / 20);
}

TEST_CASE("every strategy and every documented key is tried", "[conformance]") {
  std::set<std::string> names;
  for (const StrategyOptions& strategy : all_strategies())
    names.insert(ConfigNode::load_text(strategy.text, "strategy").at("name").as_string());
  for (const EntryInfo& info : builtin_strategies().infos()) {
    INFO("strategy " << info.name << ": add it to tests/conformance/study_keys_test.cpp");
    CHECK((names.contains(info.name) || !info.preset_of.empty()));
  }
  std::set<std::string> keys;
  for (const KeyEffect& effect : key_effects()) keys.insert(effect.key);
  for (const std::string& key : keys_without_effects()) keys.insert(key);
  std::ifstream page(std::filesystem::path(EPOCAST_SOURCE_DIR) / "docs" / "study-format.md");
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  const std::string table = text.substr(text.find("## Keys"), text.find("## compute") - text.find("## Keys"));
  static const std::regex row("\n\\| `([a-z_.]+)`");
  int found = 0;
  for (std::sregex_iterator at(table.begin(), table.end(), row), none; at != none; ++at, ++found) {
    INFO("key " << (*at)[1] << ": say in tests/conformance/study_keys.hpp what it does");
    CHECK(keys.contains((*at)[1]));
  }
  CHECK(found > 35);
}

}  // namespace epocast::study_keys_test
