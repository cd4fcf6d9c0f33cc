// The program when the system runs out of memory, processes, pipes or disk: whatever fails, and whenever, it ends by
// itself with a message, or does what it was asked for; it never leaves a part of a file, or a process.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "tests/cli/program.hpp"
#include "tests/cli/text.hpp"

using namespace epocast::test;
namespace fs = std::filesystem;

namespace {

struct Command {
  std::vector<std::string> arguments;
  std::vector<std::string> writes;  ///< files
};

// Between them: simulations in children, tables, several writers of files, readers of YAML, XML and CSV, a fit.
const std::vector<Command> kCommands = {
    {{"run", "study.yaml", "--jobs", "1"}, {}},
    {{"run", "study.yaml", "--jobs", "1", "--format", "jsonl", "--trace", "trace.json"},
     {"trace-1.json", "trace-2.json"}},
    {{"validate", "study.yaml"}, {}},
    {{"trace", "study.yaml", "--scenario", "2"}, {}},
    {{"partition", "--hypergraph", "graph.patoh", "--parts", "2", "--output", "parts.txt"}, {"parts.txt"}},
    {{"calibrate", "network", "--from", "reduce.csv", "-o", "net.yaml", "--plot", "net.svg"}, {"net.svg", "net.yaml"}},
};

void write_inputs(const TemporaryFolder& folder) {
  folder.write("study.yaml",
               "study: s\nplatform: skylake_10gbe\nmodel: m.yaml\nworkers: 2\nbatch: {per_worker: 2}\n"
               "dataset: {samples: 64}\nstrategy: data_parallel\nsweep: {batch.per_worker: [2, 4]}\n");
  folder.write("m.yaml", "model: m\ninput: {channels: 8}\nlayers:\n  - {fc: a, units: 8}\n  - {softmax: p}\n");
  folder.write("graph.patoh", "1 4 2 4 0\n1 2\n3 4\n");
  std::string rows = "# device: d\n# interconnect: i\n# source: made up\noperation,library,ranks,bytes,time_s\n";
  for (int i = 0; i < 12; ++i)
    rows += "all_reduce,l,4," + std::to_string(1000 << i) + "," + std::to_string(1e-5 + 1e-6 * (1 << i)) + "\n";
  folder.write("reduce.csv", rows);
}

/// Whether a process is left that was started with this fault. It may take a moment to end.
bool leaves_a_process(const std::string& mark) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    bool found = false;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      if (entry.path().filename().string().find_first_not_of("0123456789") != std::string::npos) continue;
      const std::string environment = read_process_file(entry.path() / "environ");
      found =
          found || (environment.find(mark) != std::string::npos && entry.path().filename() != std::to_string(getpid()));
    }
    if (!found) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return true;
}

struct Outcome {
  ProgramRun run;
  std::map<std::string, std::string> files;  ///< that were not there before
};

Outcome run_with(const Command& command, const std::string& fault, const fs::path& count = {}) {
  const TemporaryFolder folder;
  write_inputs(folder);
  const std::vector<std::string> before = folder.names();
  ::setenv("LD_PRELOAD", EPOCAST_FAULTS, 1);
  ::setenv("EPOCAST_FAULT_FOLDER", folder.path().c_str(), 1);
  if (!fault.empty()) ::setenv("EPOCAST_FAULT", fault.c_str(), 1);
  if (!count.empty()) ::setenv("EPOCAST_FAULT_COUNT", count.c_str(), 1);
  Outcome out{run_program(command.arguments, folder.path()), {}};
  for (const char* name : {"LD_PRELOAD", "EPOCAST_FAULT", "EPOCAST_FAULT_COUNT", "EPOCAST_FAULT_FOLDER"})
    ::unsetenv(name);
  CHECK_FALSE(leaves_a_process(folder.path().string()));
  for (const std::string& name : folder.names())
    if (std::ranges::find(before, name) == before.end()) out.files[name] = read_file(folder.path() / name);
  return out;
}

/// The first and last calls, and `between` in between, evenly on a logarithmic scale.
std::set<long> chosen(long calls, int between) {
  std::set<long> out;
  for (const long k : {1L, 2L, 3L, calls - 1, calls})
    if (k >= 1 && k <= calls) out.insert(k);
  for (int i = 1; i <= between && calls > 3; ++i)
    out.insert(std::lround(std::exp(std::log(static_cast<double>(calls)) * i / (between + 1))));
  return out;
}

void check(const Command& command, const Outcome& good, const std::string& fault) {
  const Outcome bad = run_with(command, fault);
  CAPTURE(command.arguments, fault, bad.run.err, bad.run.out, bad.run.exit_code);
  CHECK(bad.run.signal == 0);
  CHECK((bad.run.exit_code >= 0 && bad.run.exit_code <= 3));
  for (const auto& [name, content] : bad.files) {
    CAPTURE(name);
    REQUIRE(good.files.contains(name));
    CHECK(content == good.files.at(name));
  }
  if (bad.run.exit_code == 0) {
    CHECK(bad.run.out == good.run.out);
    CHECK(bad.files.size() == good.files.size());
  } else {
    CHECK_FALSE(bad.run.err.empty());
    CHECK_THAT(bad.run.err, !Catch::Contains("terminate called"));
  }
}

}  // namespace

TEST_CASE("whatever the system runs out of, the program says so and leaves nothing behind", "[long]") {
  const TemporaryFolder folder;
  for (const Command& command : kCommands) {
    const Outcome good = run_with(command, "", folder.path() / "count");
    CAPTURE(command.arguments, good.run.err);
    REQUIRE(good.run.exit_code == 0);
    REQUIRE(good.files.size() == command.writes.size());
    std::ifstream count(folder.path() / "count");
    std::string call;
    for (long calls = 0; count >> call >> calls;)
      for (const long k : chosen(calls, call == "malloc" ? 25 : 5))
        for (const char* how : {"", " once"}) check(command, good, call + " " + std::to_string(k) + how);
  }
}

TEST_CASE("whenever the disk is full, a sweep says so, and goes on from what it has stored", "[long]") {
  const TemporaryFolder counting;
  write_inputs(counting);
  const std::vector<std::string> sweep{"sweep", "study.yaml", "--store", "s.sqlite", "--jobs", "1"};
  const std::string rows = run_good({"run", "study.yaml", "--format", "jsonl"}, counting).out;
  const auto swept_with = [&](const TemporaryFolder& folder, const char* variable, const std::string& value) {
    ::setenv("LD_PRELOAD", EPOCAST_FAULTS, 1);
    ::setenv(variable, value.c_str(), 1);
    const ProgramRun run = run_program(sweep, folder.path());
    ::unsetenv(variable);
    ::unsetenv("LD_PRELOAD");
    return run;
  };
  REQUIRE(swept_with(counting, "EPOCAST_FAULT_COUNT", (counting.path() / "count").string()).exit_code == 0);
  std::ifstream count(counting.path() / "count");
  std::string call;
  long calls = 0;
  while (count >> call >> calls && call != "pwrite") {
  }
  REQUIRE(calls > 20);
  int full = 0;
  for (const long k : chosen(calls, 8)) {
    const TemporaryFolder folder;
    write_inputs(folder);
    const ProgramRun run = swept_with(folder, "EPOCAST_FAULT", "pwrite " + std::to_string(k));
    CAPTURE(k, run.err, run.out);
    CHECK(run.signal == 0);
    // What is full at the very end, when the log is put away, loses nothing.
    CHECK((run.exit_code == 2 || run.exit_code == 0));
    if (run.exit_code == 2) CHECK_THAT(run.err, Catch::Contains("full"));
    full += run.exit_code == 2 ? 1 : 0;
    const ProgramRun again = run_good(sweep, folder);
    CAPTURE(again.out);
    CHECK_THAT(again.out, Catch::Contains("0 failed"));
    CHECK(run_good({"results", "s.sqlite", "--format", "jsonl"}, folder).out == rows);
  }
  CHECK(full > 5);
}
