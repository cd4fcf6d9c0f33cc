// Hermans 2017 prints no measurements: its algorithms, followed by hand, against the simulation.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "experiments/fork_pool.hpp"
#include "experiments/reproduce/hermans2017/targets.hpp"
#include "experiments/reproduce/report.hpp"
#include "tests/support/temporary_folder.hpp"

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

TEST_CASE("Hermans 2017: every scheme is tried at each rate, on equal and on unequal workers, and kept") {
  const testing::TemporaryFolder files;
  const std::filesystem::path folder = files.path();
  const Registries registries = builtin_registries();
  const TargetContext context{.registries = registries,
                              .parallel = available_processors(),
                              .effort = 0.1,
                              .keep = (folder / "kept.jsonl").string(),
                              .figures = folder.string()};
  const TargetResult first = reproduce(hermans2017::experiments(), context);
  std::map<std::string, double> accuracy;
  for (const TargetRow& row : first.rows)
    if (row.quantity == "accuracy after 12 epochs") accuracy[row.row] = row.simulated;
  CHECK(accuracy.size() == 14);
  CHECK(accuracy.at("n=4 downpour") > 0.8);
  CHECK(accuracy.contains("n=4 aeasgd, every other worker half as fast"));
  for (const char* figure : {"accuracy_equal", "accuracy_unequal", "time_equal", "time_unequal"})
    CHECK(std::filesystem::exists(folder / (std::string("hermans2017_") + figure + ".svg")));
  // What is kept is not simulated again.
  const TargetResult second = reproduce(hermans2017::experiments(), context);
  REQUIRE(second.rows.size() == first.rows.size());
  for (std::size_t n = 0; n < first.rows.size(); ++n) CHECK(second.rows[n].simulated == first.rows[n].simulated);
  std::ifstream kept(folder / "kept.jsonl");
  std::size_t results = 0;
  for (std::string line; std::getline(kept, line);) results += line.empty() ? 0 : 1;
  CHECK(results == 28);
}

}  // namespace epocast::reproduce_hermans2017_test
