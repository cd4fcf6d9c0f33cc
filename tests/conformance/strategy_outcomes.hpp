#pragma once
// The runs that the conformance suite looks at: every case, in every way that a test compares.

#include <catch2/catch.hpp>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/conformance/strategy_case.hpp"

namespace epocast::conformance {

inline const Cluster& cluster() {
  static const Cluster loaded = testing::platform("skylake_10gbe");
  return loaded;
}

/// The same platform with links twice as fast.
inline const Cluster& faster_cluster() {
  static const testing::TemporaryPlatform platform([] {
    std::stringstream text;
    text << std::ifstream(cluster().platform_file).rdbuf();
    std::string xml = text.str();
    const std::string slow = "bw=\"10Gbps\"";
    const std::size_t at = xml.find(slow);
    REQUIRE(at != std::string::npos);
    return xml.replace(at, slow.size(), "bw=\"20Gbps\"");
  }());
  return platform.cluster();
}

constexpr std::int64_t kLong = 500, kShort = 20;
inline const NoiseModel kNoise{.compute_cv = 0.1, .seed = 1}, kOtherSeed{.compute_cv = 0.1, .seed = 2};

// What a case is run with; positions in the list of results.
enum RunIndex : std::size_t {
  kRecorded,
  kRecordedAgain,
  kExact,
  kExtrapolated,
  kFolded,
  kFoldedAgain,
  kOne,
  kTwo,
  kMore,
  kNoisy,
  kNoisyAgain,
  kNoisyOther,
  kFaster
};
inline const std::vector<ExecutionOptions> kRuns{
    {.iterations = kShort, .exact = true, .fold = false, .record_timeline = true},
    {.iterations = kShort, .exact = true, .fold = false, .record_timeline = true},
    {.iterations = kLong, .exact = true, .fold = false},
    {.iterations = kLong, .fold = false},
    {.iterations = kLong},
    {.iterations = kLong},
    {.iterations = 1},
    {.iterations = 2},
    {.iterations = kShort + 1},
    {.iterations = kShort, .noise = kNoise},
    {.iterations = kShort, .noise = kNoise},
    {.iterations = kShort, .noise = kOtherSeed},
    {.iterations = kLong, .fold = false},  // on the faster platform
};

/// A link is busier than all the time, or an iteration shorter than its bound.
inline bool contradicts_itself(const ExecutionResult& result) {
  return result.metrics.max_link_utilization > 1 + 1e-6 ||
         (result.bound && result.iteration < result.bound->seconds * (1 - 1e-6));
}

struct Outcome {
  Case is;
  TrainingStep step;
  std::vector<std::string> packed;       ///< by RunIndex
  std::vector<ExecutionResult> results;  ///< by RunIndex
};

/// Runs all cases once, each run on an engine as new: the clock's resolution depends on its date, and where events tie
/// even a rounding error may decide who goes first. Every test looks at the same outcomes.
inline const std::vector<Outcome>& outcomes() {
  static const std::vector<Outcome> all = [] {
    std::vector<Outcome> made;
    for (const Case& c : all_cases()) made.push_back({c, {}, {}, {}});
    const auto run_all = [&](const Cluster& where, std::size_t first, std::size_t last) {
      const std::size_t runs = last - first;
      const auto packed =
          testing::on_engines(where, static_cast<int>(made.size() * runs), [&](int job, SimEngine& engine) {
            const Outcome& o = made[static_cast<std::size_t>(job) / runs];
            const ExecutionOptions& options = kRuns[first + static_cast<std::size_t>(job) % runs];
            return testing::execute_packed(where, engine, {{o.is.compile(where).graph, options}});
          });
      for (std::size_t job = 0; job < packed.size(); ++job) {
        Outcome& o = made[job / runs];
        o.packed.push_back(packed[job]);
        o.results.push_back(testing::unpack(packed[job]).front());
      }
    };
    run_all(cluster(), 0, kFaster);
    run_all(faster_cluster(), kFaster, kRuns.size());
    for (Outcome& o : made) o.step = o.is.compile(cluster());  // here, where no child has to carry them all
    return made;
  }();
  return all;
}

}  // namespace epocast::conformance
