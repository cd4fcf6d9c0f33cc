// What a report says is what its rows say: units, order, text that stays text.

#include <catch2/catch.hpp>
#include <filesystem>

#include "experiments/report/report_columns.hpp"
#include "experiments/report/report_page.hpp"
#include "experiments/store/database.hpp"
#include "sim/error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace epocast::report_test {

using nlohmann::ordered_json;

namespace {

ReportData read_text(const std::string& name, const std::string& text) {
  const testing::TemporaryFolder files;
  return read_report_data({files.write(name, text)});
}

std::string problem_of(const std::filesystem::path& file) {
  try {
    read_report_data({file});
  } catch (const ConfigError& problem) {
    return problem.problem();
  }
  return "";
}

std::size_t occurrences(const std::string& text, const std::string& of) {
  std::size_t count = 0;
  for (std::size_t at = text.find(of); at != std::string::npos; at = text.find(of, at + 1)) ++count;
  return count;
}

const ReportColumn& column_of(const std::vector<ReportColumn>& columns, const std::string& name) {
  return *std::ranges::find(columns, name, &ReportColumn::name);
}

const std::string kRows =
    "study,scenario,workers,a.b.tensor,total_s,cost,fits_memory,peak_memory_bytes,mfu,warnings\n"
    "s,\"workers=2, a.b.tensor=1\",2,1,172800,10,true,2147483648,0.5,careful | very\n"
    "s,\"workers=4, a.b.tensor=1\",4,1,86400,12,true,1073741824,0.45,\n"
    "s,\"workers=8, a.b.tensor=1\",8,1,43200,9,false,4294967296,0.4,\n";

}  // namespace

TEST_CASE("numbers of a report have the unit that suits their column") {
  const ReportData data = read_text("rows.csv", kRows);
  const std::vector<ReportColumn> columns = report_columns(data);
  // Medians: a day, 2 GiB.
  CHECK(column_of(columns, "total_s").heading() == "total time [d]");
  CHECK(report_cell(data.rows[0], column_of(columns, "total_s")) == "2");
  CHECK(report_cell(data.rows[2], column_of(columns, "total_s")) == "0.5");
  CHECK(column_of(columns, "peak_memory_bytes").heading() == "peak memory [GiB]");
  CHECK(report_cell(data.rows[2], column_of(columns, "peak_memory_bytes")) == "4");
  CHECK(column_of(columns, "mfu").heading() == "MFU [%]");
  CHECK(report_cell(data.rows[1], column_of(columns, "mfu")) == "45");
  CHECK(column_of(columns, "workers").heading() == "devices");
  CHECK(column_of(columns, "a.b.tensor").heading() == "tensor");
  CHECK_FALSE(column_of(columns, "a.b.tensor").varies);
  CHECK(report_cell(data.rows[0], column_of(columns, "warnings")) == "careful; very");
  CHECK(data.studies.at(0).axes == std::vector<std::string>{"workers", "a.b.tensor"});

  CHECK(report_number(35779.14) == "35,779");
  CHECK(report_number(1234567) == "1,234,567");
  CHECK(report_number(-1000) == "-1,000");
  CHECK(report_number(4.65877) == "4.659");
  CHECK(report_number(0) == "0");
  CHECK(report_number(0.00001234) == "1.234e-05");
}

TEST_CASE("a report's ranking keeps to the conditions") {
  const ReportData data = read_text("rows.csv", kRows);
  const auto best = [&](const ReportQuestion& question) {
    std::vector<int> workers;
    for (const ReportRow* row : report_ranking(data, question)) workers.push_back(row->values.at("workers").get<int>());
    return workers;
  };
  // The third costs least, and does not fit.
  CHECK(best({}) == std::vector<int>{2, 4});
  CHECK(best({.fits = false}) == std::vector<int>{8, 2, 4});
  CHECK(best({.objective = Objective::time}) == std::vector<int>{4, 2});
  CHECK(best({.deadline = 86400}) == std::vector<int>{4});
  CHECK(best({.budget = 11}) == std::vector<int>{2});
  CHECK(best({.deadline = 86399}).empty());
  CHECK_THROWS_AS(best({.objective = Objective::energy}), ConfigError);
  CHECK(report_static(data, {.deadline = 86400}).find("<strong>12</strong> in <strong>1 d</strong>") !=
        std::string::npos);
  CHECK(report_static(data, {.deadline = 1}).find("Nothing meets the conditions") != std::string::npos);
}

TEST_CASE("rows are the same from CSV, JSON and JSON lines") {
  const std::string line =
      R"({"study": "s", "scenario": "", "total_s": 1.5, "exact": true, "stack": null, "warnings": ["w"]})";
  const ReportData list = read_text("a.json", "[" + line + "]"), lines = read_text("a.jsonl", line + "\n");
  const ReportData csv = read_text("a.csv", "study,scenario,total_s,exact,stack,warnings\ns,,1.5,true,,w\n");
  CHECK(list.rows.at(0).values == lines.rows.at(0).values);
  CHECK(list.rows.at(0).values == csv.rows.at(0).values);
}

TEST_CASE("text in a report stays text") {
  const std::string evil = "</script><script>alert(1)</script><!--<b>\"&\x01";
  const ordered_json row{{"study", evil},      {"scenario", evil + "=" + evil},
                         {evil, evil},         {"total_s", 1.0},
                         {"warnings", {evil}}, {"limited_by", evil}};
  const ReportData data = read_text("evil.json", ordered_json::array({row}).dump());
  const std::string page = report_page(data, {}, "epocast");
  CHECK(page.find("<script>alert") == std::string::npos);
  CHECK(page.find("<b>\"&") == std::string::npos);
  CHECK(occurrences(page, "</script") == (has_report_script() ? 2 : 0));
  const std::string document = report_document(data, {});
  CHECK(document.find('<') == std::string::npos);
  CHECK(ordered_json::parse(document).at("studies").at(0).at("name") == evil);
  CHECK(ordered_json::parse(document).at("rows").at(evil).at(0) == evil);
  CHECK(read_text("nested.json", R"([{"study": "s", "scenario": "", "x": {"a": [1]}}])").rows.at(0).values.at("x") ==
        R"({"a":[1]})");
}

TEST_CASE("timelines come with times in ns and each name once") {
  const ReportData data = read_text("t.json", R"({"otherData": {"notes": ["folded"]}, "traceEvents": [
    {"ph": "M", "name": "process_name", "pid": 3, "tid": 1, "args": {"name": "gpu"}},
    {"ph": "M", "name": "thread_name", "pid": 3, "tid": 1, "args": {"name": "compute"}},
    {"ph": "X", "name": "forward", "cat": "compute", "pid": 3, "tid": 1, "ts": 10.002, "dur": 1},
    {"ph": "s", "name": "then", "pid": 3, "tid": 1, "ts": 11},
    {"ph": "X", "name": "forward", "cat": "compute", "pid": 3, "tid": 1, "ts": 2, "dur": 0.5},
    {"ph": "X", "name": "send", "pid": 4, "tid": 7, "ts": 20, "dur": 1}]})");
  const ReportTimeline& timeline = data.timelines.at(0);
  REQUIRE(timeline.slices.size() == 3);
  CHECK(timeline.slices[0].start == 2000);  // in order
  CHECK(timeline.slices[1].start == 10002);
  CHECK(timeline.slices[1].duration == 1000);
  CHECK(timeline.names.size() == 2);
  CHECK(timeline.lanes.at(0).device == "gpu");
  CHECK(timeline.lanes.at(0).name == "compute");
  CHECK(timeline.lanes.at(1).name == "7");
  CHECK(timeline.notes == std::vector<std::string>{"folded"});
}

TEST_CASE("memory of passes has a list for each purpose") {
  const ReportData data = read_text(
      "m.csv", "pass,layer,total_bytes,parameter_bytes,activation_bytes\nforward,a,3,1,2\nbackward,a,5,1,4\n");
  const ReportPasses& passes = data.passes.at(0);
  CHECK(passes.passes == std::vector<std::string>{"forward a", "backward a"});
  CHECK(passes.parts.at(0).first == "parameter");
  CHECK(passes.parts.at(1).second == std::vector<double>{2, 4});
}

TEST_CASE("a report of a store says what its study was, and refuses what it cannot read") {
  const testing::TemporaryFolder files;
  {
    ResultStore store(files.path() / "new.sqlite", ResultStore::Use::write);
    const std::int64_t run = store.begin_run({.plan = "p",
                                              .study = "s",
                                              .program = "0.3.0",
                                              .started = "then",
                                              .scenarios = 1,
                                              .text = "study: s\nworkers: 2\n"});
    CHECK(problem_of(files.path() / "new.sqlite").starts_with("has no rows yet"));
    ScenarioResult result;
    result.total_s = 2;
    store.add(run, {{0,
                     {.key = "k",
                      .config = "c",
                      .inputs = R"({"model.yaml": "ab"})",
                      .study = "s",
                      .scenario = "workers=2",
                      .axes = R"([["workers", "2"]])",
                      .columns = columns_of(result).dump(),
                      .currency = "$"}}});
  }
  const ReportData data = read_report_data({files.path() / "new.sqlite"});
  CHECK(data.studies.at(0).run->text == "study: s\nworkers: 2\n");
  CHECK(data.studies.at(0).inputs.at("model.yaml") == "ab");
  CHECK(data.rows.at(0).values.at("total_s") == 2);
  CHECK(data.currency == "$");
  CHECK(report_static(data, {}).find("workers: 2") != std::string::npos);

  // A store of before studies had their text.
  Database(files.path() / "new.sqlite", Database::Access::create).run("DROP TABLE studies");
  CHECK(read_report_data({files.path() / "new.sqlite"}).studies.at(0).run->text.empty());
  Database(files.path() / "new.sqlite", Database::Access::create).run("PRAGMA user_version = 99");
  CHECK(problem_of(files.path() / "new.sqlite").starts_with("is a store of a newer epocast"));
  Database(files.path() / "other.sqlite", Database::Access::create).run("CREATE TABLE t(x)");
  CHECK(problem_of(files.path() / "other.sqlite").starts_with("is no store of epocast"));
}

}  // namespace epocast::report_test
