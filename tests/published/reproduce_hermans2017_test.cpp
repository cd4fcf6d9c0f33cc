// Hermans 2017 prints no measurements: its algorithms, followed by hand, against the simulation.
#include <catch2/catch.hpp>

#include <map>
#include <string>
#include <vector>

#include "experiments/fork_pool.hpp"
#include "experiments/reproduce/hermans2017/targets.hpp"
#include "experiments/reproduce/report.hpp"

namespace epocast::reproduce_hermans2017_test {

TEST_CASE("Hermans 2017: versions and staleness of ten commits of two workers") {
  // Steps of 10 and 13 s. In order of time: 10, 13, 20, 26, 30, 39, 40, 50, 52, 65: versions 1 to 10. A worker's commit
  // is as stale as the other made commits since the worker's last: between 40 and 50 none, between 39 and 52 two (40,
  // 50), between 52 and 65 none; the first of the second worker misses that at 10, the first of all nothing.
  const Registries registries = builtin_registries();
  const TargetResult result = reproduce(hermans2017::algorithms(), {registries, available_processors()});
  std::map<std::string, std::vector<double>> found;  // by quantity and worker, in order of commits
  for (const TargetRow& row : result.rows)
    if (row.row.starts_with("worker ")) found[row.quantity + " " + row.row.substr(7, 1)].push_back(row.simulated);
  CHECK(found["makes version 1"] == std::vector<double>{1, 3, 5, 7, 8});
  CHECK(found["makes version 2"] == std::vector<double>{2, 4, 6, 9, 10});
  CHECK(found["staleness 1"] == std::vector<double>{0, 1, 1, 1, 0});
  CHECK(found["staleness 2"] == std::vector<double>{1, 1, 1, 2, 0});
  CHECK(result.summary.exact == 32);
  CHECK(result.summary.met());
}

TEST_CASE("Hermans 2017: what the text prints and what it should be") {
  const Registries registries = builtin_registries();
  const TargetResult result = reproduce(hermans2017::algorithms(), {registries, available_processors()});
  std::map<std::string, double> value;
  for (const TargetRow& row : result.rows) value[row.row + ": " + row.quantity] = row.simulated;
  CHECK(value["equation 4.1, lambda = 5: gradients in a commit, as printed"] == 6);
  CHECK(value["equation 4.1, lambda = 5: gradients in a commit, corrected"] == 5);
  CHECK(value["shard: samples, corrected"] == 3000);
}

}  // namespace epocast::reproduce_hermans2017_test
