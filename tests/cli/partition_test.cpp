// Comparing partitioners, and those of others behind the same command.
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/cli/program.hpp"

namespace epocast::partition_test {

using namespace epocast::test;
namespace fs = std::filesystem;

namespace {

/// Two triples of vertices whose nets cost 10, with a net of cost 1 between the triples.
constexpr const char* kTwoTriples = "0 6 3 8 2\n10 0 1 2\n10 3 4 5\n1 2 3\n";

/// A copy of the program with another program, or none, in the place of its helper.
ProgramRun run_with_helper(const std::string& script, const TemporaryFolder& folder) {
  fs::copy_file(EPOCAST_BINARY, folder.path() / "epocast", fs::copy_options::overwrite_existing);
  if (!script.empty()) {
    const fs::path helper = folder.write("epocast-zoltan", "#!/bin/sh\n" + script + "\n");
    fs::permissions(helper, fs::perms::owner_all);
  }
  folder.write("graph.patoh", kTwoTriples);
  const std::string shell = "cd '" + folder.path().string() +
                            "' && ./epocast partition --hypergraph graph.patoh --parts 2 --algorithm zoltan "
                            "</dev/null >stdout.txt 2>stderr.txt";
  const int status = std::system(shell.c_str());
  ProgramRun run;
  if (WIFEXITED(status)) run.exit_code = WEXITSTATUS(status);
  run.out = read_file(folder.path() / "stdout.txt");
  run.err = read_file(folder.path() / "stderr.txt");
  return run;
}

}  // namespace

TEST_CASE("partitioners side by side") {
  const TemporaryFolder folder;
  folder.write("graph.patoh", kTwoTriples);
  const ProgramRun table = run_good({"partition", "--hypergraph", "graph.patoh", "--parts", "1,2", "--algorithm",
                                     "hypergraph,incremental", "--effort", "0.001"},
                                    folder);
  // Filling in order exceeds the average of 3 before it goes on: 4 and 2, which cuts the second triple.
  CHECK(table.out ==
        "  parts  hypergraph  load/average  incremental  load/average\n"
        "      1           0         1.000            0         1.000\n"
        "      2           1         1.000           10         1.333\n");

  const ProgramRun csv = run_good({"partition", "--hypergraph", "graph.patoh", "--parts", "2,7", "--algorithm",
                                   "hypergraph", "--effort", "0.001", "--format", "csv"},
                                  folder);
  CHECK(csv.out ==
        "algorithm,parts,connectivity,cut_net,gather_broadcast,message_bytes,load_over_average,used_parts,problem\n"
        "hypergraph,2,1,1,,,1,2,\n"
        "hypergraph,7,,,,,,,\"cannot partition: 7 parts, but only 6 vertices; use at most 6 parts or a finer "
        "grain\"\n");

  const ProgramRun json = run_good(
      {"partition", "mlp_mnist", "--parts", "2", "--algorithm", "layerwise,horizontal", "--format", "json"}, folder);
  CHECK_THAT(json.out, Catch::Contains("\"algorithm\": \"layerwise\"") && Catch::Contains("\"message_bytes\": "));
}

TEST_CASE("parts without any vertex are said to be") {
  const TemporaryFolder folder;
  folder.write("graph.patoh", kTwoTriples);
  folder.write("parts.txt", "0\n0\n0\n2\n2\n2\n");
  const ProgramRun run =
      run_good({"partition", "--hypergraph", "graph.patoh", "--parts", "4", "--import", "parts.txt"}, folder);
  CHECK_THAT(run.out, Catch::Contains("2 of 4 parts used\n  2 parts without any vertex: fewer parts would do\n"));
}

TEST_CASE("METIS writes nothing between the lines of ours") {
  // It complains on stdout when it is asked for as many parts as there are vertices.
  const TemporaryFolder folder;
  folder.write("graph.patoh", kTwoTriples);
  const ProgramRun run = run_program(
      {"partition", "--hypergraph", "graph.patoh", "--parts", "6", "--algorithm", "metis", "--format", "csv"},
      folder.path());
  if (run.err.find("built without METIS") != std::string::npos) {
    WARN("skipped: built without METIS");
    return;
  }
  CHECK(run.exit_code == 0);
  CHECK(run.err == "");
  const std::vector<std::string> lines = split(run.out, '\n');
  REQUIRE(lines.size() >= 7);
  CHECK(lines.front() == "part,vertices,load,load_over_average");
  CHECK_THAT(lines[1], Catch::StartsWith("0,"));
}

TEST_CASE("without Zoltan's program the message says what to do") {
  const TemporaryFolder folder;
  const ProgramRun run = run_with_helper("", folder);
  CHECK(run.exit_code == 2);
  CHECK(run.out == "");
  CHECK_THAT(run.err, Catch::Contains("install libtrilinos-zoltan-dev and build again, or use --algorithm hypergraph"));
}

TEST_CASE("Zoltan's program fails, or writes what is no partition") {
  const TemporaryFolder folder;
  const ProgramRun failed = run_with_helper("echo noise; exit 3", folder);
  CHECK(failed.exit_code == 2);
  CHECK(failed.out == "");
  CHECK_THAT(failed.err, Catch::Contains("epocast-zoltan failed with exit code 3"));

  const ProgramRun killed = run_with_helper("kill -9 $$", folder);
  CHECK(killed.exit_code == 2);
  CHECK_THAT(killed.err, Catch::Contains("epocast-zoltan died of signal 9"));

  const ProgramRun nonsense = run_with_helper("echo 0 0 0 1 1 2 >\"$2\"", folder);
  CHECK(nonsense.exit_code == 2);
  CHECK_THAT(nonsense.err, Catch::Contains("the part of vertex 5 must be a whole number from 0 to 1, not '2'"));

  const ProgramRun good = run_with_helper("echo 0 0 0 1 1 1 >\"$2\"", folder);
  CHECK(good.exit_code == 0);
  CHECK_THAT(good.out, Catch::Contains("volume: connectivity 1, cut nets 1"));
}

}  // namespace epocast::partition_test
