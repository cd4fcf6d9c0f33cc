// A plan is what simulating everything would say, for less.

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace epocast::plan_test {

using namespace epocast::test;

namespace {

/// Two clusters, of which the fast one costs more by the hour; 96 scenarios.
const std::string kStudy =
    "study: choice\nmodel: gpt3_125m\ndataset: {samples: 200000}\nbatch: {global: 64}\nprecision: bf16\noptimizer: "
    "adam\n"
    "workers: 8\ncompute: roofline\n"
    "strategy: {mesh: {pipeline: 1, data: rest, tensor: 1}, schedule: {name: 1f1b, micro_batches: 4}}\n"
    "sweep:\n"
    "  platform: [{name: p4d, nodes: 1, price: {node_hour: 20 $}}, {name: pcie_server, nodes: 1, price: {node_hour: 12 "
    "$}}]\n"
    "  strategy.mesh.pipeline: [1, 2, 4]\n  strategy.mesh.tensor: [1, 2, 4]\n  strategy.schedule.micro_batches: [1, 2, "
    "4, 8]\n"
    "  memory.recompute: [none, full]\n"
    "  where: [strategy.mesh.pipeline * strategy.mesh.tensor <= 8, 8 * strategy.mesh.pipeline * strategy.mesh.tensor "
    ">= strategy.schedule.micro_batches]\n";

nlohmann::json ranking(const TemporaryFolder& folder, std::vector<std::string> options) {
  options.insert(options.begin(), {"plan", "study.yaml", "--format", "json"});
  const ProgramRun run = run_program(options, folder.path());
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return nlohmann::json::parse(run.out);
}

}  // namespace

TEST_CASE("a plan finds what all simulations find") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--fits"}, {"--fits", "--minimise", "time"}, {"--fits", "--under", "10 min"}}) {
    std::vector<std::string> all = options;
    all.push_back("--exhaustive");
    const nlohmann::json quick = ranking(folder, options), slow = ranking(folder, all);
    CAPTURE(options, quick.size(), slow.size());
    REQUIRE_FALSE(quick.empty());
    CHECK(quick[0] == slow[0]);
    CHECK(quick.size() < slow.size());
    for (const nlohmann::json& row : slow) {
      CHECK(row.at("fits_memory") == true);
      if (options.back() == "10 min") CHECK(row.at("total_s") <= 600);
    }
  }
}

TEST_CASE("a plan of a study that pauses for evaluation has bounds") {
  // What evaluations take is known from simulations only: bounds leave it out, and the fastest is found all the same.
  const TemporaryFolder folder;
  folder.write(
      "study.yaml",
      "study: paused\nplatform: skylake_10gbe\nmodel: alexnet\ndataset: {samples: 51200}\nbatch: {global: 64}\n"
      "pauses: {evaluation: {every: 100 steps, samples: 512}}\nsweep: {workers: [1, 2, 4]}\n");
  const nlohmann::json quick = ranking(folder, {"--minimise", "time"}),
                       slow = ranking(folder, {"--minimise", "time", "--exhaustive"});
  CHECK(quick[0] == slow[0]);
  // AlexNet's gradients, 244 MB, take longer over 10 GbE than all of its computation.
  CHECK(quick[0].at("workers") == 1);
}

TEST_CASE("a plan of a shipped study ends as early as the best of all its runs") {
  for (const char* name :
       {"resnet50_scaling", "vgg16_skylake", "which_overlap", "pipeline_schedules", "ring_allreduce"}) {
    INFO(name);
    const TemporaryFolder folder;
    const std::string study = std::string(EPOCAST_SOURCE_DIR) + "/experiments/studies/" + name + ".yaml";
    const auto rows = [&](const std::vector<std::string>& command) {
      return nlohmann::json::parse(run_good(command, folder).out);
    };
    double least = 1e99;
    for (const nlohmann::json& row : rows({"run", study, "--format", "json"}))
      least = std::min(least, row.at("total_s").get<double>());
    CHECK(rows({"plan", study, "--minimise", "time", "--format", "json"})[0].at("total_s") == least);
  }
}

TEST_CASE("a plan says why, and writes the study that wins") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  const ProgramRun run = run_good({"plan", "study.yaml", "--fits", "--write", "best.yaml"}, folder);
  CHECK(run.out.find("scenarios simulated (") != std::string::npos);
  CHECK(run.out.find("why: limited by ") != std::string::npos);
  CHECK(run.out.find("instead of") != std::string::npos);
  const nlohmann::json best = ranking(folder, {"--fits"})[0];
  const nlohmann::json again = nlohmann::json::parse(run_good({"run", "best.yaml", "--format", "json"}, folder).out)[0];
  for (const char* column : {"total_s", "cost", "iteration_s", "peak_memory_bytes"})
    CHECK(again.at(column) == best.at(column));
}

TEST_CASE("a plan for a target weighs epochs against their time") {
  const TemporaryFolder folder;
  folder.write("study.yaml",
               "study: target\nplatform: skylake_10gbe\nmodel: resnet20\nworkers: 4\ndataset: {samples: 50000}\n"
               "learning: {given: {epochs: 100, batch: 128, critical_batch: 512}}\n"
               "sweep: {batch.global: [64, 256, 1024, 4096]}\n");
  auto all = nlohmann::json::parse(run_good({"run", "study.yaml", "--format", "json"}, folder).out)
                 .get<std::vector<nlohmann::json>>();
  const auto of = [](const nlohmann::json& row) { return row.at("time_to_target_s").get<double>(); };
  std::ranges::sort(all, {}, of);
  const nlohmann::json best = ranking(folder, {"--minimise", "target"})[0];
  CHECK(best.at("global_batch") == all[0].at("global_batch"));
  CHECK(of(best) == of(all[0]));
  // The largest batch has the shortest epoch, and needs too many of them.
  CHECK(ranking(folder, {"--minimise", "time"})[0].at("global_batch") > best.at("global_batch"));
}

TEST_CASE("plans that cannot be say what comes closest, or what is missing") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  const ProgramRun late = run_program({"plan", "study.yaml", "--fits", "--under", "1 s"}, folder.path());
  CHECK(late.exit_code == 1);
  CHECK(late.out.find("choice: nothing meets the conditions; the fastest that fits takes ") == 0);
  CHECK(late.out.find("would take longer than the deadline even if communication were free") != std::string::npos);
  const auto refused = [&](const std::vector<std::string>& options, const std::string& why) {
    std::vector<std::string> arguments{"plan", "study.yaml"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const ProgramRun run = run_program(arguments, folder.path());
    CAPTURE(run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.err.find(why) != std::string::npos);
  };
  refused({"--minimise", "costs"}, "did you mean 'cost'?");
  refused({"--minimise", "energy", "--set", "workers=1", "--set", "sweep={batch.global: [8, 16]}", "--set",
           "platform=dgx_a100", "--set", "strategy=single"},
          "--minimise energy: the study does not say what it takes; add a block `power:");
  refused({"--under", "5"}, "--under: missing unit");
}

}  // namespace epocast::plan_test
