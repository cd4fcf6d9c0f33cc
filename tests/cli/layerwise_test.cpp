// `epocast layerwise`: what it simulates is what `run` does.

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "sim/quantity.hpp"
#include "tests/cli/program.hpp"

namespace epocast::layerwise_test {

using namespace epocast::test;

TEST_CASE("layerwise simulates what run does: costs of the stack, and what disturbs") {
  const TemporaryFolder folder;
  folder.write("study.yaml",
               "study: sm\nplatform: dgx2\nworkers: 4\nmodel: vgg16\ndataset: {samples: 640}\nbatch: {global: 64}\n"
               "compute: {cost_model: fitted, calibration: v100}\nstragglers: [{worker: 0, slowdown: 4}]\n"
               "degraded_links: [{worker: 1, slowdown: 10}]\nstack: {name: pytorch_ddp, launch: 0 s}\nstrategy: {name: "
               "layerwise}\n");
  const std::string found =
      run_good({"layerwise", "study.yaml", "--rounds", "0", "--output", "found.yaml"}, folder).out;
  const auto row = nlohmann::json::parse(run_good({"run", "found.yaml", "--format", "json"}, folder).out).at(0);
  CHECK_THAT(found, Catch::Contains(to_string(Seconds(row.at("iteration_s").get<double>()))));
}

}  // namespace epocast::layerwise_test
