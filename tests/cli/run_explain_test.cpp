// `epocast run --explain` and `--details`: what the columns of a table sum up.

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/cli/csv.hpp"
#include "tests/cli/small_study.hpp"

namespace epocast::run_explain_test {

using namespace epocast::test;
using nlohmann::ordered_json;

TEST_CASE("what --explain calls communication is none where there is none") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy + "strategy: single\nsweep: {batch.per_worker: [16, 17, 19, 23, 32, 48, 100]}\n");
  const std::string out = run_good({"run", "study.yaml", "--set", "workers=1", "--explain"}, folder).out;
  for (const std::string& line : split(out, '\n'))
    if (line.find("computation ") != std::string::npos && line.find(", communication ") != std::string::npos)
      CHECK_THAT(line, Catch::Contains(", communication 0 "));
}

TEST_CASE("--details holds what the columns sum up, for each scenario") {
  const TemporaryFolder folder;
  folder.write("sweep.yaml", kSweep);
  const std::string file = (folder.path() / "details.json").string();
  const std::string json = run_good({"run", "sweep.yaml", "--details", file, "--format", "json"}, folder).out;
  const ordered_json results = ordered_json::parse(json), details = ordered_json::parse(read_file(file));
  REQUIRE(details.size() == results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    CHECK(details[i].at("scenario") == results[i].at("scenario"));
    const ordered_json& phase = details[i].at("phases").at(0);
    CHECK(phase.at("workers") == results[i].at("workers"));
    CHECK(phase.at("total_s").get<double>() == Approx(results[i].at("total_s").get<double>()));
    // Two epochs.
    CHECK(phase.at("bytes").get<double>() == Approx(2 * results[i].at("comm_bytes_per_epoch").get<double>()));
    CHECK(phase.at("idle_share").get<double>() ==
          Approx(1 - results[i].at("compute_s").get<double>() / results[i].at("iteration_s").get<double>()));
    CHECK(phase.at("memory").at(0).at("devices").size() == results[i].at("workers").get<std::size_t>());
    CHECK(phase.at("memory").at(0).at("total") == results[i].at("peak_memory_bytes"));
  }
}

TEST_CASE("--details of a schedule: devices that do not train in a phase are idle") {
  const TemporaryFolder folder;
  folder.write("study.yaml",
               "study: grows\nplatform: skylake_10gbe\nstack: ideal\nmodel: resnet20\ndataset: {samples: 1024}\n"
               "strategy: {name: data_parallel, overlap: false}\n"
               "schedule: [{epochs: 2, batch.global: 32, workers: 1}, {epochs: 3, batch.global: 128, "
               "workers: 4}]\n");
  run_good({"run", "study.yaml", "--details", "d.json"}, folder);
  const ordered_json phases = ordered_json::parse(read_file(folder.path() / "d.json")).at(0).at("phases");
  REQUIRE(phases.size() == 2);
  CHECK(phases[0].at("idle_share").get<double>() == Approx(0.75));  // three of four; the one always computes
  CHECK(phases[0].at("bytes") == 0);
  CHECK(phases[1].at("bytes").get<double>() > 0);
  CHECK(phases[1].at("idle_share").get<double>() > 0);
}

TEST_CASE("--explain says more than the plain table, in the words of the model") {
  const TemporaryFolder folder;
  const std::string plain = run_good({"run", kQuickstart}, folder).out;
  const std::string explained = run_good({"run", kQuickstart, "--explain"}, folder).out;
  CHECK(explained.size() > plain.size());
  CHECK_THAT(plain, Catch::Contains("limited by") && Catch::Contains("backward fc8..conv1_1"));
  CHECK_THAT(explained, Catch::Contains("Per iteration a worker computes"));
}

TEST_CASE("--explain writes the times of a run in one unit, and names what a cycle waits for") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy + "strategy: {name: data_parallel, granularity: cycle, cycle: 5 ms}\n");
  const std::string out = run_good({"run", "study.yaml", "--explain"}, folder).out;
  std::set<std::string> units;
  for (const std::string& line : split(out.substr(out.find("The longest cycle")), '\n')) {
    std::istringstream words(line);
    for (std::string word, before; words >> word; before = word) {
      word.erase(word.find_last_not_of(".,;") + 1);
      const bool follows_number = !before.empty() && before.find_first_not_of("<0123456789.") == std::string::npos;
      if (follows_number && (word == "s" || word.size() == 2) && word.back() == 's') units.insert(word);
    }
  }
  CHECK(units.size() == 1);
  CHECK_THAT(out, Catch::Contains("wait for the cycle of "));
}

TEST_CASE("a stage that does not fit its memory is named, with what it lacks") {
  // GPipe with 64 samples under way of ResNet-152 on 8 stages; P100s have 16 GB. The first stage keeps most.
  const TemporaryFolder folder;
  const std::filesystem::path study =
      folder.write("study.yaml",
                   "study: large\nplatform: p100_cluster\nmodel: resnet152\nworkers: 8\nbatch: {global: 4096}\n"
                   "strategy: {name: pipeline, schedule: gpipe, split: even, micro_batches: 64}\n");
  // No split fits: split: time says so of the one that it falls back on.
  for (const std::string split : {"even", "time"}) {
    const std::string out = run_good({"run", study.string(), "--set", "strategy.split=" + split}, folder).out;
    INFO(out);
    CHECK(out.find("warning: stage 0 (input to ") != std::string::npos);
    CHECK(out.find(" of memory, ") != std::string::npos);
    CHECK(out.find(" others lack less") != std::string::npos);
  }
  CHECK(run_csv({"run", study.string()}, folder).rows.front().at("fits_memory") == "false");
}

}  // namespace epocast::run_explain_test
