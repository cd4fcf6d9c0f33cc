// A store holds what was committed, whatever happened to who wrote it.

#include "experiments/store/result_store.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

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

}  // namespace epocast::result_store_test
