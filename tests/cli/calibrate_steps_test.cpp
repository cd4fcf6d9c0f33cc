// `epocast calibrate steps` from end to end: steps whose constants are known are simulated, fitted and used.

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/cli/program.hpp"

namespace epocast::calibrate_steps_test {

using namespace epocast::test;
using Catch::Contains;

namespace {

constexpr const char* kStudy =
    "study: truth\nplatform: skylake_10gbe\nstack: ideal\nmodel: alexnet\nstrategy: data_parallel\n";

double iteration(const TemporaryFolder& folder, const std::vector<std::string>& sets) {
  std::vector<std::string> arguments{"run", "study.yaml", "--format", "json"};
  for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
  return nlohmann::json::parse(run_good(arguments, folder).out).at(0).at("iteration_s").get<double>();
}

double constant(const std::string& yaml, const std::string& key) {
  std::smatch found;
  REQUIRE(std::regex_search(yaml, found, std::regex(key + R"(: \{value: ([0-9.e+-]+))")));
  return std::stod(found[1]);
}

}  // namespace

TEST_CASE("calibrate steps finds the constants of simulated steps, and run uses them") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  std::string csv = "# source: simulated\nworkers,batch.per_worker,iteration_ms\n";
  for (const auto& [workers, batch] : std::vector<std::pair<int, int>>{{1, 32}, {1, 256}, {2, 32}, {4, 64}, {8, 256}}) {
    const double t =
        iteration(folder, {"workers=" + std::to_string(workers), "batch.per_worker=" + std::to_string(batch),
                           "compute.scale=1.7", "compute.step_overhead=40 ms", "network.efficiency=0.6"});
    csv += std::to_string(workers) + "," + std::to_string(batch) + "," + std::to_string(1000 * t) + "\n";
  }
  folder.write("steps.csv", csv);
  const ProgramRun fit = run_good(
      {"calibrate", "steps", "--study", "study.yaml", "--from", "steps.csv", "-o", "c.yaml", "--plot", "c.svg"},
      folder);
  CHECK_THAT(fit.out, Contains("truth: 5 steps") && Contains("workers=8, batch.per_worker=256") &&
                          Contains("median of errors") && Contains("left out"));
  const std::string yaml = read_file(folder.path() / "c.yaml");
  CHECK(constant(yaml, "compute.scale") == Approx(1.7).epsilon(0.02));
  CHECK(constant(yaml, "compute.step_overhead") == Approx(0.04).epsilon(0.05));
  CHECK(constant(yaml, "network.efficiency") == Approx(0.6).epsilon(0.02));
  CHECK_THAT(read_file(folder.path() / "c.svg"), Contains("predicted from the other steps (5)"));
  run_good({"validate", "c.yaml"}, folder);

  // A step that was not among them.
  const double truth = iteration(folder, {"workers=4", "batch.per_worker=128", "compute.scale=1.7",
                                          "compute.step_overhead=40 ms", "network.efficiency=0.6"});
  CHECK(iteration(folder, {"workers=4", "batch.per_worker=128", "steps=c.yaml"}) == Approx(truth).epsilon(0.01));
  const ProgramRun far =
      run_program({"run", "study.yaml", "--set", "steps=c.yaml", "--set", "workers=16"}, folder.path());
  CHECK(far.exit_code == 0);
  CHECK_THAT(far.out, Contains("workers = 16 lies outside what steps calibration 'c.yaml' was fitted to, 1 to 8"));
}

TEST_CASE("steps may be given by the samples that they apply, and by batches of less than a sample a worker") {
  const TemporaryFolder folder;
  folder.write("study.yaml",
               "study: late\nplatform: skylake_10gbe\nstack: ideal\nmodel: resnet50\n"
               "strategy: {name: parameter_server, mode: backup, backup: 1}\n");
  std::string csv = "workers,batch.per_worker,samples_per_s\n";
  for (const int workers : {2, 4, 8}) {
    const nlohmann::json row = nlohmann::json::parse(run_good({"run", "study.yaml", "--format", "json", "--set",
                                                               "workers=" + std::to_string(workers), "--set",
                                                               "batch.per_worker=32", "--set", "compute.scale=2"},
                                                              folder)
                                                         .out)
                                   .at(0);
    csv += std::to_string(workers) + ",32," + std::to_string(row.at("samples_per_s").get<double>()) + "\n";
  }
  folder.write("steps.csv", csv);
  run_good(
      {"calibrate", "steps", "--study", "study.yaml", "--from", "steps.csv", "-o", "c.yaml", "--fit", "compute.scale"},
      folder);
  CHECK(constant(read_file(folder.path() / "c.yaml"), "compute.scale") == Approx(2).epsilon(0.02));

  folder.write("stages.yaml",
               "study: stages\nplatform: skylake_10gbe\nstack: ideal\nmodel: alexnet\nworkers: 4\nstrategy: {name: "
               "pipeline, micro_batches: 1}\n");
  folder.write("stages.csv", "batch.global,iteration_s\n2,0.2\n4,0.3\n5,0.35\n");
  run_good({"calibrate", "steps", "--study", "stages.yaml", "--from", "stages.csv", "-o", "s.yaml", "--fit",
            "compute.scale"},
           folder);
  CHECK_THAT(read_file(folder.path() / "s.yaml"), Contains("batch: [0.5, 1.25]"));
}

TEST_CASE("run takes near measured steps what the constants leave of them") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  // Computing is slower on two to eight workers only, as no constant says.
  std::string csv = "workers,batch.per_worker,iteration_ms\n";
  double measured = 0;
  for (const int workers : {1, 2, 4, 8, 16}) {
    const std::string scale = workers == 4 ? "1.06" : workers == 2 || workers == 8 ? "1.03" : "1";
    const double time =
        iteration(folder, {"workers=" + std::to_string(workers), "compute.scale=" + scale, "batch.per_worker=512"});
    csv += std::to_string(workers) + ",512," + std::to_string(1000 * time) + "\n";
    if (workers == 4) measured = time;
  }
  folder.write("steps.csv", csv);
  const ProgramRun fit =
      run_good({"calibrate", "steps", "--study", "study.yaml", "--from", "steps.csv", "-o", "c.yaml"}, folder);
  CHECK_THAT(fit.out, Contains("near these steps, computing is corrected by what the constants leave: up to"));
  const std::string yaml = read_file(folder.path() / "c.yaml");
  const auto discrepancy = yaml.find("discrepancy:");
  REQUIRE(discrepancy != std::string::npos);
  folder.write("constants.yaml", yaml.substr(0, discrepancy));
  const std::vector<std::string> four{"workers=4", "batch.per_worker=512"};
  const auto off = [&](const std::string& steps) {
    return std::abs(iteration(folder, {four[0], four[1], "steps=" + steps}) / measured - 1);
  };
  CHECK(off("c.yaml") < 0.7 * off("constants.yaml"));
  // What left-out steps say of forecasts among them.
  std::smatch within;
  REQUIRE(std::regex_search(yaml, within, std::regex("within_90: ([0-9.e-]+)")));
  const auto interval = [&](const std::string& workers) {
    return nlohmann::json::parse(run_good({"run", "study.yaml", "--interval", "--set", "workers=" + workers, "--set",
                                           four[1], "--set", "steps=c.yaml", "--format", "json"},
                                          folder)
                                     .out)
        .at(0);
  };
  const nlohmann::json among = interval("6"), beyond = interval("32");
  const double of_ten = std::stod(within[1]);
  CHECK(among["iteration_high_s"].get<double>() / among["iteration_s"].get<double>() ==
        Approx(std::exp(of_ten)).epsilon(1e-6));
  CHECK(beyond["iteration_high_s"].get<double>() / beyond["iteration_s"].get<double>() ==
        Approx(std::exp(of_ten)).epsilon(1e-4));  // no ranges are known of software that costs nothing
  CHECK_THAT(
      run_good({"run", "study.yaml", "--explain", "--set", four[0], "--set", four[1], "--set", "steps=c.yaml"}, folder)
          .out,
      Contains("than the constants of steps calibration 'c.yaml' say, as in measured steps near"));
}

TEST_CASE("what several workers lose is one constant where a stack says how they lose it") {
  const TemporaryFolder folder;
  folder.write("study.yaml",
               "study: truth\nplatform: p2_8xlarge\nstack: tensorflow1\nmodel: alexnet\nstrategy: data_parallel\n");
  std::string csv = "workers,batch.per_worker,iteration_ms\n";
  for (const int batch : {64, 256})
    for (const int workers : {1, 2, 4, 8}) {
      const double t =
          iteration(folder, {"workers=" + std::to_string(workers), "batch.per_worker=" + std::to_string(batch),
                             "compute.scale=1.3", "stack.scale=2.5"});
      csv += std::to_string(workers) + "," + std::to_string(batch) + "," + std::to_string(1000 * t) + "\n";
    }
  folder.write("steps.csv", csv);
  const ProgramRun fit =
      run_good({"calibrate", "steps", "--study", "study.yaml", "--from", "steps.csv", "-o", "c.yaml"}, folder);
  CHECK_THAT(fit.out, Contains("network.efficiency is held") && !Contains("stack.scale is held"));
  CHECK(constant(read_file(folder.path() / "c.yaml"), "stack.scale") == Approx(2.5).epsilon(0.05));
  CHECK(iteration(folder, {"workers=8", "batch.per_worker=128", "steps=c.yaml"}) ==
        Approx(iteration(folder, {"workers=8", "batch.per_worker=128", "compute.scale=1.3", "stack.scale=2.5"}))
            .epsilon(0.01));
}

}  // namespace epocast::calibrate_steps_test
