// Whatever ends the program, nothing goes on without it, nothing half-written stays, and the rows so far are there.

#include <sys/types.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "tests/cli/program.hpp"

namespace epocast::interrupt_test {

using namespace epocast::test;

namespace {

// Scenarios of some tenths of a second: short enough for rows to come, long enough to be caught in the middle.
const std::string kStudy =
    "study: long\nplatform: skylake_10gbe\nmodel: mlp_mnist\nworkers: 16\n"
    "strategy: {name: parameter_server, mode: async}\nnoise: {compute_cv: 0.1}\n"
    "dataset: {samples: 200000}\n"
    "sweep: {batch.per_worker: [31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50]}\n";

/// Signals take a moment to arrive; a simulation that goes on would take until its end, minutes on a busy machine.
std::vector<int> left_after_a_while(int session) {
  std::vector<int> left;
  for (int i = 0; i < 200; ++i) {
    left = processes_of_session(session);
    if (left.empty()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
  }
  return left;
}

struct Kill {
  int signal;
  bool has_rows;  ///< wait for the first row
  int after;      ///< ms, from then or from the start
};

/// Stops a sweep and checks what is left. Returns how many rows it had printed.
int check_kill(const Kill& how) {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  RunningProgram program(
      {"run", "study.yaml", "--exact", "--format", "jsonl", "--jobs", "4", "--trace", "timeline.json"}, folder.path(),
      {.own_session = true, .terminal_end = true});
  const int session = program.process();
  if (how.has_rows) REQUIRE(program.read_line());
  std::this_thread::sleep_for(std::chrono::milliseconds(how.after));
  kill(session, how.signal);
  const ProgramRun run = program.finish();
  CAPTURE(how.signal, how.has_rows, how.after, run.err, run.exit_code);
  CHECK(run.signal == how.signal);
  CHECK(left_after_a_while(session).empty());
  for (const std::string& name : folder.names()) CHECK_FALSE(name.ends_with(".part"));
  int rows = 0, last = 0;
  for (const std::string& line : split(run.out, '\n')) {
    if (line.empty()) continue;
    const int batch = nlohmann::json::parse(line)["batch.per_worker"];  // a whole row
    CHECK(batch > last);  // in order; those that were still to come when it stopped are left out
    last = batch;
    ++rows;
  }
  return rows;
}

int check_kills(int kills) {
  std::mt19937 random(1);
  constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGKILL};
  int rows = 0;
  for (int i = 0; i < kills; ++i) {
    const bool has_rows = i / 4 % 2 == 1;
    rows += check_kill({kSignals[i % 4], has_rows, static_cast<int>(random() % 400)});
  }
  return rows;
}

}  // namespace

TEST_CASE("a sweep that is stopped leaves no process and no half-written file behind") { CHECK(check_kills(8) > 0); }

TEST_CASE("two hundred sweeps that are stopped leave no process and no half-written file behind", "[long]") {
  CHECK(check_kills(200) > 0);
}

TEST_CASE("under nohup a sweep goes on when its terminal is closed") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy.substr(0, kStudy.find(", 33")) + "]}\n");  // two scenarios
  struct sigaction ignore = {}, before = {};
  ignore.sa_handler = SIG_IGN;
  REQUIRE(sigaction(SIGHUP, &ignore, &before) == 0);  // what a program starts with
  RunningProgram program({"run", "study.yaml", "--exact", "--format", "jsonl", "--jobs", "1"}, folder.path());
  REQUIRE(sigaction(SIGHUP, &before, nullptr) == 0);
  CHECK(program.read_line());
  kill(program.process(), SIGHUP);
  const ProgramRun run = program.finish();
  CAPTURE(run.err);
  CHECK(run.exit_code == 0);
  CHECK(split(run.out, '\n').size() >= 2);
}

TEST_CASE("rows of JSON lines and CSV come as soon as they are ready") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  for (const char* format : {"jsonl", "csv"}) {
    RunningProgram program({"run", "study.yaml", "--exact", "--format", format, "--jobs", "1"}, folder.path());
    REQUIRE(program.read_line());
    CHECK_FALSE(program.has_ended());
    kill(program.process(), SIGTERM);
    CHECK(program.finish().signal == SIGTERM);
  }
}

TEST_CASE("an interrupted table has the scenarios that have ended") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  folder.write("first.yaml", kStudy.substr(0, kStudy.find("sweep:")));
  RunningProgram program({"run", "study.yaml", "--exact", "--jobs", "1", "--trace", "t.json"}, folder.path());
  // A timeline is renamed to its final name when its scenario ends.
  while (!std::filesystem::exists(folder.path() / "t-2.json") && !program.has_ended())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  kill(program.process(), SIGINT);
  const ProgramRun run = program.finish();
  CAPTURE(run.out, run.err);
  CHECK(run.signal == SIGINT);
  CHECK_THAT(run.out, Catch::Contains("batch.per_worker"));
  CHECK_THAT(run.out, Catch::Contains("496"));  // the first scenario: 16 workers with 31 samples
  CHECK_THAT(run.err, Catch::Contains("interrupted after") && Catch::Contains("of 20 scenarios"));
}

TEST_CASE("as many simulations run at a time as the system has files for") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  // Three standard files, one to notice signals, and per simulation two for its output while two more are made.
  const ProgramRun run =
      RunningProgram({"run", "study.yaml", "--format", "csv", "--jobs", "12"}, folder.path(), {.descriptors = 12})
          .finish();
  CAPTURE(run.err);
  CHECK(run.exit_code == 0);
  CHECK(split(run.out, '\n').size() >= 21);

  const ProgramRun none =
      RunningProgram({"run", "study.yaml", "--jobs", "12"}, folder.path(), {.descriptors = 6}).finish();
  CHECK(none.exit_code == 2);
  CHECK_THAT(none.err, Catch::Contains("Too many open files") && Catch::Contains("ulimit -n"));
}

TEST_CASE("a table is printed even if its plot cannot be drawn") {
  const TemporaryFolder folder;
  folder.write("study.yaml", "study: s\nplatform: skylake_10gbe\nmodel: mlp_mnist\nsweep: {workers: [1, 2]}\n");
  // Only the results tell that no scenario has stale gradients.
  const ProgramRun run =
      run_program({"run", "study.yaml", "--plot", "p.svg", "--plot-column", "max_staleness"}, folder.path());
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err, Catch::Contains("no result has a number in column 'max_staleness'"));
  CHECK_THAT(run.out, Catch::Contains("samples/s"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "p.svg"));
}

TEST_CASE("files are written even if nobody reads the rows") {
  const TemporaryFolder folder;
  folder.write("study.yaml",
               "study: s\nplatform: skylake_10gbe\nmodel: mlp_mnist\nsweep: {workers: [1, 2, 3, 4, 5, 6, 7, 8]}\n");
  const ProgramRun run = run_program({"run", "study.yaml", "--plot", "p.svg"}, folder.path(), Stdout::closed);
  CHECK(run.exit_code == 2);
  CHECK(std::filesystem::exists(folder.path() / "p.svg"));
}

}  // namespace epocast::interrupt_test
