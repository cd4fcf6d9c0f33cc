// What the program takes and what it refuses: sizes of sweeps, kinds of files, text of any kind.

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "tests/cli/program.hpp"

namespace epocast::limits_test {

using namespace epocast::test;

namespace {

const std::string kStudy = "study: many\nplatform: skylake_10gbe\nmodel: mlp_mnist\nworkers: 2\n";

std::string list(int first, int count) {
  std::string text = "[";
  for (int i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + std::to_string(first + i);
  return text + "]";
}

/// The row of one scenario of a sweep.
std::vector<std::string> row_of(const std::string& study, int scenario) {
  const TemporaryFolder folder;
  folder.write("study.yaml", study);
  const ProgramRun run =
      run_good({"run", "study.yaml", "--scenario", std::to_string(scenario), "--format", "csv"}, folder);
  const std::vector<std::string> lines = split(run.out, '\n');
  REQUIRE(lines.size() == 2);
  return csv_fields(lines[1]);
}

}  // namespace

TEST_CASE("a sweep may have 100,000 points") {
  // The last point of each; fields 3 and on are the axes.
  CHECK(row_of(kStudy + "sweep: {dataset.samples: " + list(1'000'001, 100'000) + "}\n", 100'000)[2] == "1100000");
  const std::string hundreds =
      "{dataset.samples: " + list(100'001, 1000) + ", batch.per_worker: " + list(1, 100) + "}\n";
  const std::vector<std::string> two_axes = row_of(kStudy + "sweep: " + hundreds, 100'000);
  CHECK(two_axes[2] == "101000");
  CHECK(two_axes[3] == "100");
  // The study's own text makes no difference.
  CHECK(row_of(kStudy + "description: " + std::string(100'000, 'd') + "\nsweep: " + hundreds, 100'000)[2] == "101000");
}

TEST_CASE("a sweep may not have 100,001 points, or endless labels") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy + "sweep: {dataset.samples: " + list(1, 100'001) + "}\n");
  const ProgramRun run = run_program({"run", "study.yaml"}, folder.path());
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err, Catch::StartsWith("study.yaml:5:8: sweep: the axes have more than 100000 points; sweep fewer"));
  folder.write("long.yaml", kStudy + "sweep: {description: [" + std::string(10'000, 'd') +
                                "], dataset.samples: " + list(1, 100'000) + "}\n");
  const ProgramRun labels = run_program({"run", "long.yaml"}, folder.path());
  CHECK(labels.exit_code == 2);
  CHECK_THAT(labels.err, Catch::StartsWith("long.yaml:5:8: sweep: 100000 points with values of up to 10"));
}

TEST_CASE("a pipe without a writer is refused where a file is due") {
  const TemporaryFolder folder;
  for (const char* name : {"p.yaml", "p.xml", "p.csv", "p.json"})
    REQUIRE(mkfifo((folder.path() / name).c_str(), 0600) == 0);
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"run", "p.yaml"},
                                             {"validate", "p.xml"},
                                             {"validate", "p.csv"},
                                             {"calibrate", "compute", "--from", "p.json"},
                                             {"partition", "--hypergraph", "p.csv", "--parts", "2"}}) {
    const ProgramRun run = run_program(arguments, folder.path());
    CAPTURE(arguments, run.err);
    CHECK(run.exit_code == 2);
    CHECK_THAT(run.err, Catch::Contains("is a pipe to which nobody writes; give a file"));
  }
}

TEST_CASE("an empty file name is called one") {
  const TemporaryFolder folder;
  const ProgramRun run = run_program({"run", ""}, folder.path());
  CHECK(run.exit_code == 2);
  CHECK(run.err == "a file's name is empty; give a file\n");
}

TEST_CASE("warnings reach those who read rows") {
  const TemporaryFolder folder;
  // A model that does not fit: a warning in every format.
  folder.write("study.yaml",
               "study: s\nplatform: skylake_10gbe\nmodel: vgg16\nbatch: {per_worker: 100000}\nworkers: 2\n");
  for (const char* format : {"csv", "json", "jsonl"}) {
    const ProgramRun run = run_program({"run", "study.yaml", "--format", format}, folder.path());
    CAPTURE(format, run.err);
    CHECK(run.exit_code == 0);
    CHECK_THAT(run.err, Catch::StartsWith("warning: "));
  }
}

TEST_CASE("long and broken text is not echoed as it is") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  const ProgramRun run = run_program({"run", "study.yaml", "--set", "model=" + std::string(2000, 'x')}, folder.path());
  CHECK(run.exit_code == 2);
  CHECK(run.err.size() < 1000);
  const ProgramRun bytes = run_program({"run", "study.yaml", "--format", "\xff\x1b[31m"}, folder.path());
  CHECK(bytes.exit_code == 2);
  CHECK_THAT(bytes.err, Catch::Contains("'\\xff\\x1b[31m'"));
}

}  // namespace epocast::limits_test
