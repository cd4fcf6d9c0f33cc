// The page of `report` has every row, as `results` gives it, and fetches nothing.

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace epocast::report_test {

using namespace epocast::test;
using nlohmann::json;

namespace {

const std::string kStudy =
    "study: pages\nplatform: skylake_10gbe\nstack: ideal\nmodel: mlp_mnist\ndataset: {samples: 6400}\nprice: "
    "{node_hour: 3 $}\n"
    "sweep:\n  workers: [1, 2, 4]\n  batch.per_worker: [10, 20]\n  strategy: [data_parallel, parameter_server]\n";

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin);
  REQUIRE(from != std::string::npos);
  return text.substr(from + begin.size(), text.find(end, from + begin.size()) - from - begin.size());
}

}  // namespace

TEST_CASE("a report holds all rows and fetches nothing") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  run_good({"sweep", "study.yaml"}, folder);
  const ProgramRun run = run_program({"report", "study.sqlite", "--minimise", "time", "--under", "1h"}, folder.path());
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Catch::StartsWith("report.html: 12 scenarios, "));
  const std::string page = read_file(folder.path() / "report.html");

  // Without the script: everything on it.
  const std::string body = between(page, "<body>", "<script");
  CHECK(split(between(body, "<tbody>", "</tbody>"), '\n').size() >= 12);
  for (const char* fetch : {" src=", " href=", "url(", "@import", "<iframe", "<object"})
    CHECK(body.find(fetch) == std::string::npos);
  CHECK_THAT(page, Catch::Contains("default-src 'none'"));
  std::string addresses = body;  // of names in SVG, which nobody fetches
  for (std::size_t at = 0; (at = addresses.find("http://www.w3.org/", at)) != std::string::npos;)
    addresses.erase(at, 18);
  CHECK(addresses.find("http") == std::string::npos);
  CHECK_THAT(body, Catch::Contains("model: mlp_mnist"));  // the study as it was run

  const bool plain = run.err.find("need npm when epocast is built") != std::string::npos;
  CHECK(plain == (page.find("<script") == std::string::npos));
  if (plain) return;
  CHECK(run.err.empty());
  const json document = json::parse(between(page, "id=\"data\">", "</script>"));
  const json rows = json::parse(run_good({"results", "study.sqlite", "--format", "json"}, folder).out);
  REQUIRE(document.at("row_count") == rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (const auto& [name, value] : rows[row].items())
      if (document.at("rows").contains(name)) CHECK(document.at("rows").at(name).at(row) == value);
  for (const char* column : {"total_s", "cost", "exposed_comm_s", "strategy", "batch.per_worker"})
    CHECK(document.at("rows").contains(column));
  CHECK(document.at("settings").at("under_s") == 3600);
  CHECK(document.at("studies").at(0).at("inputs").size() >= 2);  // platform and model
}

TEST_CASE("a report takes what run and trace write") {
  const TemporaryFolder folder;
  const std::string study = EPOCAST_SOURCE_DIR "/experiments/studies/vgg16_skylake.yaml";
  folder.write("rows.csv",
               run_good({"run", study, "--trace", "t.json", "--details", "d.json", "--format", "csv"}, folder).out);
  folder.write("memory.csv", run_good({"trace", study, "--scenario", "1", "--memory"}, folder).out);
  const ProgramRun run = run_program(
      {"report", "rows.csv", "t-1.json", "t-2.json", "d.json", "memory.csv", "--write", "all.html"}, folder.path());
  CAPTURE(run.err);
  CHECK(run.exit_code == 0);
  const std::string page = read_file(folder.path() / "all.html");
  CHECK_THAT(page, Catch::Contains("parameter_server(mode=async)"));
  if (page.find("id=\"data\">") == std::string::npos) return;
  const json document = json::parse(between(page, "id=\"data\">", "</script>"));
  CHECK(document.at("row_count") == 4);
  CHECK(document.at("timelines").size() == 2);
  CHECK(document.at("details").size() == 4);
  CHECK(document.at("memory_of_passes").at(0).at("parts").contains("activation"));
}

TEST_CASE("a report compares prices in one currency, and names the files of studies of one name") {
  const TemporaryFolder folder;
  folder.write("study.yaml", "study: same\nplatform: skylake_10gbe\nmodel: mlp_mnist\nsweep: {workers: [1, 2]}\n");
  const auto store = [&](const std::string& name, const std::string& set) {
    run_good({"sweep", "study.yaml", "--store", name, "--set", set}, folder);
  };
  store("dollars.sqlite", "price={node_hour: 20 $}");
  store("yen.sqlite", "price={node_hour: 3000 ¥}");
  store("slow.sqlite", "network.efficiency=0.1");
  const ProgramRun two = run_program({"report", "dollars.sqlite", "yen.sqlite"}, folder.path());
  CHECK(two.exit_code == 2);
  CHECK_THAT(two.err, Catch::Contains("prices in one currency"));
  run_good({"report", "dollars.sqlite", "slow.sqlite", "--write", "both.html"}, folder);
  const std::string page = read_file(folder.path() / "both.html");
  CHECK_THAT(page, Catch::Contains("same (dollars.sqlite)") && Catch::Contains("same (slow.sqlite)"));
}

TEST_CASE("costs of several files that do not say their currency are not compared") {
  const TemporaryFolder folder;
  folder.write("dollars.csv", "study,scenario,total_s,cost\ns,workers=1,20,5\ns,workers=2,10,6\n");
  folder.write("yen.jsonl", R"({"study": "t", "scenario": "", "total_s": 15, "cost": 400})"
                            "\n");
  const auto report = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "report");
    return run_program(arguments, folder.path());
  };
  const ProgramRun one = report({"dollars.csv", "--minimise", "cost"});
  CHECK(one.exit_code == 0);
  CHECK_THAT(one.err, Catch::Contains("dollars.csv does not say in which currency costs are"));
  const ProgramRun both = report({"dollars.csv", "yen.jsonl"});
  CHECK(both.exit_code == 0);
  CHECK_THAT(both.err, Catch::Contains("those of several files are not compared"));
  const std::string page = read_file(folder.path() / "report.html");
  CHECK_THAT(page, Catch::Contains("cost (dollars.csv)") && Catch::Contains("cost (yen.jsonl)"));
  for (const std::vector<std::string>& question : {std::vector<std::string>{"--minimise", "cost"}, {"--budget", "5"}}) {
    std::vector<std::string> arguments{"dollars.csv", "yen.jsonl"};
    arguments.insert(arguments.end(), question.begin(), question.end());
    const ProgramRun refused = report(arguments);
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err,
               Catch::Contains(question[0]) && Catch::Contains("costs of several files cannot be compared"));
  }
}

TEST_CASE("a report of scenarios without results shows why") {
  const TemporaryFolder folder;
  folder.write("study.yaml", "study: bad\nplatform: skylake_10gbe\nmodel: mlp_mnist\nsweep: {workers: [1, 1000]}\n");
  run_program({"sweep", "study.yaml"}, folder.path());
  CHECK(run_program({"report", "study.sqlite"}, folder.path()).exit_code == 0);
  CHECK_THAT(read_file(folder.path() / "report.html"), Catch::Contains("1000 workers, but platform"));
}

}  // namespace epocast::report_test
