// `--store` of `reproduce` and `calibrate`, and what `results --records` says of it; and how much commands say.

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/cli/small_study.hpp"

namespace epocast::records_test {

using namespace epocast::test;
using nlohmann::ordered_json;

namespace {

std::vector<ordered_json> records(const std::string& kind, const TemporaryFolder& folder) {
  std::vector<ordered_json> out;
  for (const std::string& line :
       split(run_good({"results", "all.sqlite", "--records", kind, "--format", "jsonl"}, folder).out, '\n'))
    out.push_back(ordered_json::parse(line));
  return out;
}

}  // namespace

TEST_CASE("a store keeps what reproduce printed, the last time it did") {
  const TemporaryFolder folder;
  const std::vector<std::string> reproduce{"reproduce", "eserol2019/table_5_14", "--store", "all.sqlite", "--format",
                                           "json"};
  const ordered_json printed = ordered_json::parse(run_good(reproduce, folder).out);
  run_good(reproduce, folder);
  std::vector<ordered_json> kept = records("reproduce", folder);
  REQUIRE(kept.size() == printed.size());
  for (std::size_t r = 0; r < kept.size(); ++r) {
    CHECK(kept[r].at("name") == "eserol2019/table_5_14");
    for (const char* column : {"row", "quantity", "unit", "published", "simulated", "error_pct", "role"})
      CHECK(kept[r].at(column) == printed[r].at(column));
  }
}

TEST_CASE("a store keeps the errors of fits beside other records") {
  const TemporaryFolder folder;
  const std::filesystem::path measurements =
      std::filesystem::path(EPOCAST_SOURCE_DIR) / "costmodels/measurements/allreduce_knl_omnipath.csv";
  run_good({"calibrate", "network", "--from", measurements.string(), "--store", "all.sqlite"}, folder);
  const std::vector<ordered_json> kept = records("calibrate", folder);
  REQUIRE(kept.size() == 1);  // one library, one operation
  CHECK(kept.front().at("points") == 35);
  CHECK(kept.front().at("error").get<double>() > 0);
  CHECK(kept.front().at("error_90").get<double>() > kept.front().at("error").get<double>());
  CHECK(run_program({"results", "all.sqlite", "--records", "calibrat"}, folder.path()).exit_code == 2);
}

TEST_CASE("-q leaves out all but results and errors, -v says what they come from") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy + "sweep: {batch.per_worker: [16, 32]}\n");
  const std::vector<std::string> run{"run", "study.yaml", "--set", "batch.per_worker=16", "--format", "csv"};
  const auto with = [&](const char* flag) {
    std::vector<std::string> all = run;
    if (*flag != '\0') all.emplace_back(flag);
    return run_program(all, folder.path());
  };
  const ProgramRun usual = with(""), quiet = with("-q"), verbose = with("-v");
  CHECK(usual.exit_code == 0);
  CHECK(usual.out == quiet.out);
  CHECK(usual.out == verbose.out);
  CHECK(usual.err.empty());  // --set takes the axis away, and says so only where it drops others
  CHECK(quiet.err.empty());
  CHECK_THAT(verbose.err, Catch::Contains("program: epocast ") && Catch::Contains("read: ") &&
                              Catch::Contains("skylake_10gbe.xml") && Catch::Contains("took "));
  CHECK(verbose.err.find('\033') == std::string::npos);  // colours on terminals only
  const ProgramRun both = run_program({"run", "study.yaml", "-q", "-v"}, folder.path());
  CHECK(both.exit_code == 2);
  // Errors are no chatter.
  CHECK_FALSE(run_program({"run", "nowhere.yaml", "-q"}, folder.path()).err.empty());
}

}  // namespace epocast::records_test
