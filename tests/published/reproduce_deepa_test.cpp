// DeePa: equation 1 to the printed digit.
#include <catch2/catch.hpp>

#include "experiments/reproduce/deepa/targets.hpp"
#include "experiments/reproduce/report.hpp"

using namespace epocast;

TEST_CASE("tables of DeePa: every cell by the paper's rules") {
  const Registries registries = builtin_registries();
  for (const Target& target : {deepa::table_1(), deepa::table_2(), deepa::table_3()}) {
    const TargetResult result = reproduce(target, {registries});
    INFO(target.name());
    CHECK(result.summary.exact > 10);
    CHECK(result.summary.exact_matched == result.summary.exact);
    CHECK(result.summary.inputs_matched == result.summary.inputs);
    CHECK(result.misses.empty());
  }
}
