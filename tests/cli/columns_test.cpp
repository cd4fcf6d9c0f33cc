// Which columns `run` takes beside those of its rows.
#include <catch2/catch.hpp>
#include <string>

#include "tests/cli/program.hpp"
#include "tests/cli/small_study.hpp"

namespace epocast::columns_test {

using namespace epocast::test;

TEST_CASE("columns may be named as tables head them, and by what the study says") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  const auto shown = [&](const std::string& columns, const std::string& format, const std::string& set) {
    return run_good({"run", "study.yaml", "--columns", columns, "--format", format, "--set", set}, folder).out;
  };
  CHECK(shown("batch,samples/s,memory", "csv", "workers=2") ==
        shown("global_batch,samples_per_s,peak_memory_bytes", "csv", "workers=2"));
  CHECK(shown("strategy,model,platform,workers", "csv", "workers=2") ==
        "strategy,model,platform,workers\ndata_parallel,mlp_mnist,skylake_10gbe,2\n");
  CHECK(shown("strategy", "jsonl", "strategy=gossip") == "{\"strategy\":\"gossip\"}\n");
  CHECK_THAT(shown("strategy,workers", "table", "strategy=gossip"), Catch::Contains("  gossip          2\n"));
  CHECK(shown("strategy", "csv", "sweep.strategy=[gossip, local_sgd]") == "strategy\ngossip\nlocal_sgd\n");
}

}  // namespace epocast::columns_test
