// Named clusters that a study changes in part, and what collectives make of their cards.

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program.hpp"

namespace epocast::cluster_change_test {

using namespace epocast::test;

namespace {

/// s of an all-reduce of 1 GB over two nodes of p4d.
double all_reduce(const std::string& platform, const std::string& algorithm) {
  const TemporaryFolder folder;
  folder.write("study.yaml",
               "study: cards\nplatform: " + platform +
                   "\nworkers: 16\nstrategy: {name: collective_benchmark, operation: all_reduce, bytes: 1 GB}\n"
                   "collective: {algorithm: " +
                   algorithm + "}\n");
  const ProgramRun run = run_program({"run", "study.yaml", "--format", "json"}, folder.path());
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return nlohmann::json::parse(run.out).at(0).at("iteration_s").get<double>();
}

}  // namespace

TEST_CASE("a change of one key of a cluster's map leaves the others") {
  const double shipped = all_reduce("p4d", "auto");
  CHECK(all_reduce("{name: p4d, cards: {rate: 100 Gb/s}}", "auto") == Approx(shipped));  // what it has
  CHECK(all_reduce("{name: p4d, cards: {rate: 50 Gb/s}}", "auto") > 1.5 * shipped);
}

TEST_CASE("rings as of nccl use all cards of a node, also where neighbours share one") {
  // Four cards for eight devices: a single ring would leave a node by one of them.
  CHECK(all_reduce("p4d", "nccl") < all_reduce("p4d", "ring") / 2);
}

}  // namespace epocast::cluster_change_test
