// Several seeds as one row: means, and nothing where some run has nothing.
#include "experiments/seeds.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace epocast::seeds_test {

namespace {

ScenarioResult run(double iteration, std::optional<double> bound, std::optional<std::int64_t> staleness) {
  ScenarioResult result;
  result.workers = 4;
  result.iteration_s = iteration;
  result.bound_s = bound;
  result.mean_staleness = staleness ? std::optional(static_cast<double>(*staleness)) : std::nullopt;
  result.max_staleness = staleness;
  result.iterations_simulated = 10;
  result.exact = true;
  return result;
}

}  // namespace

TEST_CASE("columns are means over seeds", "[seeds]") {
  const ScenarioResult mean = mean_over_seeds({run(1, 0.5, 2), run(2, 0.7, 5), run(6, 0.9, 3)});
  CHECK(mean.workers == 4);
  CHECK(mean.iteration_s == Approx(3));
  CHECK(*mean.bound_s == Approx(0.7));
  CHECK(*mean.mean_staleness == Approx(10.0 / 3));
  CHECK(*mean.max_staleness == 5);
  CHECK(mean.iterations_simulated == 30);
  CHECK(mean.exact);
}

TEST_CASE("what a run lacks, their mean lacks, whichever run it is", "[seeds]") {
  const std::vector<ScenarioResult> runs{run(1, 0.5, 2), run(2, std::nullopt, std::nullopt), run(6, 0.9, 3)};
  for (std::size_t first = 0; first < runs.size(); ++first) {
    CAPTURE(first);
    const ScenarioResult mean =
        mean_over_seeds({runs[first], runs[(first + 1) % runs.size()], runs[(first + 2) % runs.size()]});
    CHECK(mean.iteration_s == Approx(3));
    CHECK_FALSE(mean.bound_s);
    CHECK_FALSE(mean.mean_staleness);
    CHECK_FALSE(mean.max_staleness);
  }
  const nlohmann::ordered_json section = seeds_section(runs, {1, 2, 3});
  CHECK_FALSE(section.contains("bound_s"));
  CHECK(section.at("iteration_s").at("mean").get<double>() == Approx(3));
}

}  // namespace epocast::seeds_test
