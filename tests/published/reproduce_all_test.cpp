// Every target keeps what it promises, but for the misses that it declares.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

#include "experiments/fork_pool.hpp"
#include "experiments/reproduce/eserol2019/targets.hpp"
#include "experiments/reproduce/report.hpp"

namespace epocast::reproduce_all_test {

namespace {

bool searches(const Target& target) {
  return std::ranges::any_of(eserol2019::hypergraph_tables(),
                             [&](const Target& search) { return search.name() == target.name(); });
}

/// Places graphs of hundreds of thousands of operations many times, measures times, or trains thousands of networks.
bool takes_minutes(const Target& target) {
  if (target.paper == "hermans2017") return target.table == "experiments";
  return target.paper == "pardnn2020" &&
         (target.table == "table_6_1" || target.table == "placements" || target.table == "table_4_1");
}

}  // namespace

TEST_CASE("what targets promise holds, searches apart") {
  const Registries registries = builtin_registries();
  for (const Target& target : builtin_targets()) {
    if (searches(target) || takes_minutes(target)) continue;
    const TargetResult result = reproduce(target, {registries, available_processors()});
    for (const Miss& miss : result.misses) {
      INFO(target.name() << ": " << describe(miss));
      CHECK_FALSE(miss.known.empty());
      WARN(target.name() << ": " << describe(miss));  // shown, not hidden
    }
  }
}

TEST_CASE("searches that end soon come near to what they promise") {
  // A fiftieth of the effort: every part within its limit, and volumes at most half as much again as published.
  const Registries registries = builtin_registries();
  for (const Target& target : eserol2019::hypergraph_tables()) {
    const TargetResult result =
        reproduce(target, {.registries = registries, .parallel = available_processors(), .effort = 0.02});
    REQUIRE(result.summary.bounds >= 7);
    INFO(target.name() << ", " << result.summary.most_above->name());
    CHECK(*result.summary.most_above->error_pct() < 50);
  }
}

TEST_CASE("what searches promise holds", "[long]") {
  const Registries registries = builtin_registries();
  for (const Target& target : builtin_targets()) {
    if (!searches(target) && !takes_minutes(target)) continue;
    const TargetResult result = reproduce(target, {registries, available_processors()});
    for (const Miss& miss : result.misses) {
      INFO(target.name() << ": " << describe(miss));
      CHECK_FALSE(miss.known.empty());
    }
  }
}

}  // namespace epocast::reproduce_all_test
