// A store holds what was committed, whatever happened to who wrote it.

#include "experiments/store/result_store.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "experiments/result.hpp"
#include "tests/support/temporary_folder.hpp"

namespace epocast::result_store_test {

TEST_CASE("what a killed writer left half done does not keep a store from being read") {
  const testing::TemporaryFolder folder;
  const std::filesystem::path store = folder.path() / "s.sqlite", killed = folder.path() / "killed.sqlite";
  ResultStore(store, ResultStore::Use::write).begin_run({.plan = "p", .study = "committed", .scenarios = 1});
  {
    Database writer(store, Database::Access::create);
    writer.run("PRAGMA cache_size = 1");  // so that changes reach the file before they are committed
    writer.run("BEGIN; UPDATE runs SET study = 'half done'");
    writer.run(
        "INSERT INTO runs(plan, study, program, started, scenarios) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
        "SELECT i + 1 FROM n WHERE i < 5000) SELECT 'p' || i, 'half done', '', '', 1 FROM n");
    // As the disk would be if the writer were killed here.
    for (const std::string behind : {"", "-journal"})
      std::filesystem::copy_file(store.string() + behind, killed.string() + behind);
    CHECK(std::filesystem::file_size(killed) > 100'000);
    writer.run("ROLLBACK");
  }
  ResultStore reader(killed, ResultStore::Use::read);
  const std::vector<StoredRun> runs = reader.runs();
  REQUIRE(runs.size() == 1);
  CHECK(runs.front().study == "committed");
  CHECK_THROWS(reader.begin_run({.plan = "q", .study = "not to be", .scenarios = 1}));
}

TEST_CASE("a merged store has the result where one of two has failed, whatever their order") {
  const testing::TemporaryFolder folder;
  ScenarioResult result;
  result.total_s = 7;
  const StoredRow good{.config = "c", .inputs = R"({"m":"1"})", .columns = columns_of(result).dump()};
  // Files that were read are not known of what was killed.
  const StoredRow failed{.config = "c", .inputs = "{}", .error = "too long", .exit_code = 1, .death = Death::own};
  const auto store = [&](const std::string& name, StoredRow row, const std::string& key) {
    ResultStore made(folder.path() / name, ResultStore::Use::write);
    row.study = "s";
    row.axes = "[]";
    row.key = key;
    made.add(made.begin_run({.plan = "p", .study = "s", .scenarios = 1}), {{0, row}});
  };
  for (const std::string failed_key : {"f", "g"}) {  // another key, and the same
    store("good-" + failed_key, good, "g");
    store("failed-" + failed_key, failed, failed_key);
    for (const auto& [into, from] : {std::pair("good-", "failed-"), std::pair("failed-", "good-")}) {
      const std::filesystem::path copy = folder.path() / (into + failed_key + "-merged");
      std::filesystem::copy_file(folder.path() / (into + failed_key), copy);
      ResultStore merged(copy, ResultStore::Use::write);
      ResultStore other(folder.path() / (from + failed_key), ResultStore::Use::read);
      CAPTURE(into, failed_key);
      CHECK(merged.merge(other) == (into == std::string("good-") ? 0 : 1));
      const std::vector<StoredRow> rows = merged.rows(0, "");
      REQUIRE(rows.size() == 1);
      CHECK(rows[0].error.empty());
      CHECK(rows[0].result().total_s == 7);
    }
  }
}

}  // namespace epocast::result_store_test
