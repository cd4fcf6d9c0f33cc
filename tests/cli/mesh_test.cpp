// Workers and meshes as users name them: all of a platform, teams that cross slow links, software under a mesh.
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace epocast::mesh_test {

using namespace epocast::test;
using Catch::Contains;
using nlohmann::json;

namespace {

json run_mesh(const TemporaryFolder& folder, const std::string& mesh, const std::string& stack = "ideal") {
  const std::string study = folder
                                .write("mesh.yaml",
                                       "study: mesh\nplatform: dgx_h100_pod_4\nworkers: 32\nmodel: gpt3_350m\n"
                                       "dataset: {samples: 6400}\nbatch: {global: 64}\nprecision: bf16\n"
                                       "compute: roofline\nstrategy: {mesh: {data: rest}}\n")
                                .string();
  return json::parse(
      run_good({"run", study, "--set", "strategy.mesh=" + mesh, "--set", "stack=" + stack, "--format", "json"}, folder)
          .out)[0];
}

}  // namespace

TEST_CASE("a tensor axis that crosses nodes is warned of, with what the order would save") {
  const TemporaryFolder folder;
  const auto warnings = [](const json& row) { return row["warnings"].dump(); };
  const json inside = run_mesh(folder, "{data: 4, tensor: 8}"), across = run_mesh(folder, "{tensor: 8, data: 4}"),
             longer = run_mesh(folder, "{data: 2, tensor: 16}");
  CHECK_THAT(warnings(inside), !Contains("cross nodes"));
  CHECK_THAT(warnings(across), Contains("strategy.mesh: teams along tensor cross nodes"));
  CHECK_THAT(warnings(across), Contains("with mesh: {data: 4, tensor: 8} it would take"));
  CHECK_THAT(warnings(longer), Contains("with mesh: {data: 4, tensor: 8} it would take"));
  CHECK(inside["iteration_s"] < across["iteration_s"]);
}

TEST_CASE("all workers are those of the platform") {
  const TemporaryFolder folder;
  folder.write("all.yaml",
               "study: all\nplatform: dgx1_v100\nworkers: all\nmodel: mlp_mnist\ndataset: {samples: 6400}\n");
  const json row = json::parse(run_good({"run", "all.yaml", "--format", "json"}, folder).out)[0];
  CHECK(row["workers"] == 8);
}

TEST_CASE("what software costs is felt by devices that share layers, too") {
  const TemporaryFolder folder;
  for (const char* mesh : {"{data: 32}", "{data: 4, tensor: 8}", "{pipeline: 2, data: 16}"}) {
    INFO(mesh);
    const auto compute = [&](const char* stack) { return run_mesh(folder, mesh, stack)["compute_s"].get<double>(); };
    // The slowest of 32: 2.07 times the spread (order statistics of the normal distribution).
    CHECK(compute("{name: ideal, spread: 0.1}") == Approx(compute("ideal") * 1.207).epsilon(1e-3));
  }
}

}  // namespace epocast::mesh_test
