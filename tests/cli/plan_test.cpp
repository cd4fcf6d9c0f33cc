// A plan is what simulating everything would say, for less.

#include <unistd.h>

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

TEST_CASE("a plan says what the best with another choice takes, as all simulations do") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  const auto reasons = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"plan", "study.yaml", "--fits", "--minimise", "time", "--no-sensitivity"});
    const std::string out = run_good(options, folder).out;
    const std::size_t from = out.find("instead of");
    return out.substr(from, out.find("Pareto front") - from);
  };
  const std::string quick = reasons({"--store", "quick.sqlite"});
  CHECK(quick == reasons({"--store", "all.sqlite", "--exhaustive"}));
  CHECK(quick.find("at least") == std::string::npos);
}

TEST_CASE("bounds hold under strong noise, and where a device is faster for a while") {
  const std::string common =
      "study: lucky\nplatform: skylake_10gbe\nworkers: 1\nmodel: mlp_mnist\nbatch: {per_worker: 32}\nstrategy: "
      "single\nstack: ideal\n";
  for (const std::string study : {"dataset: {samples: 320}\nnoise: {compute_cv: 2, per: step}\nsweep: {noise.seed: [1, "
                                  "2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}\n",
                                  "dataset: {samples: 32000}\nstragglers: [{worker: 0, slowdown: 0.1, from: 1 "
                                  "us}]\nsweep: {batch.per_worker: [32, 64]}\n"}) {
    const TemporaryFolder folder;
    folder.write("study.yaml", common + study);
    const nlohmann::json quick = ranking(folder, {"--minimise", "time", "--no-sensitivity"});
    const ProgramRun all = run_program({"run", "study.yaml", "--format", "json"}, folder.path());
    REQUIRE(all.exit_code == 0);
    double least = 1e300;
    for (const nlohmann::json& row : nlohmann::json::parse(all.out))
      least = std::min(least, row.at("total_s").get<double>());
    INFO(study);
    CHECK(quick[0].at("total_s").get<double>() == Approx(least));
  }
}

TEST_CASE("a plan of a study that pauses for evaluation has bounds") {
  // What evaluations take is known from simulations only: bounds leave it out, and the fastest is found all the same.
  const TemporaryFolder folder;
  folder.write("study.yaml",
               "study: paused\nplatform: skylake_10gbe\nstack: ideal\nmodel: alexnet\ndataset: {samples: "
               "51200}\nbatch: {global: 64}\n"
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
  CHECK(run.out.find("Pareto front") != std::string::npos);
  for (const char* input : {"speed of devices", "bandwidth of links", "price of ", "amount of training"})
    CHECK(run.out.find(input) != std::string::npos);
  CHECK(run.out.find("the decision ") != std::string::npos);
  CHECK(run.out.find("the study of the first") != std::string::npos);
  const nlohmann::json best = ranking(folder, {"--fits"})[0];
  const nlohmann::json again = nlohmann::json::parse(run_good({"run", "best.yaml", "--format", "json"}, folder).out)[0];
  for (const char* column : {"total_s", "cost", "iteration_s", "peak_memory_bytes"})
    CHECK(again.at(column) == best.at(column));
}

TEST_CASE("a plan for a target weighs epochs against their time") {
  const TemporaryFolder folder;
  folder.write(
      "study.yaml",
      "study: target\nplatform: skylake_10gbe\nstack: ideal\nmodel: resnet20\nworkers: 4\ndataset: {samples: 50000}\n"
      "learning: {given: {epochs: 100, batch: 128, critical_batch: 512}}\n"
      "sweep: {batch.global: [64, 256, 1024, 4096]}\n");
  auto all = nlohmann::json::parse(run_good({"run", "study.yaml", "--format", "json"}, folder).out)
                 .get<std::vector<nlohmann::json>>();
  const auto of = [](const nlohmann::json& row) { return row.at("time_to_target_s").get<double>(); };
  std::ranges::sort(all, {}, of);
  const nlohmann::json best = ranking(folder, {"--minimise", "target"})[0];
  CHECK(best.at("global_batch") == all[0].at("global_batch"));
  CHECK(of(best) == of(all[0]));
  const std::string table = run_good({"plan", "study.yaml", "--minimise", "target", "--no-sensitivity"}, folder).out;
  CHECK(table.find("to target") != std::string::npos);  // what the rows are ranked by is among their columns
  // The largest batch has the shortest epoch, and needs too many of them.
  CHECK(ranking(folder, {"--minimise", "time"})[0].at("global_batch") > best.at("global_batch"));
  // Failures lengthen each epoch, and the time to the target by no more than that.
  const auto failing =
      nlohmann::json::parse(run_good({"run", "study.yaml", "--format", "json", "--set", "sweep={batch.global: [256]}",
                                      "--set", "failures={node_mtbf: 1 d, write: 60 s, restart: 5 min}"},
                                     folder)
                                .out)[0];
  CHECK(failing.at("goodput") < 0.99);
  CHECK(of(failing) == Approx(failing.at("epoch_s").get<double>() * failing.at("epochs_to_target").get<double>()));
}

TEST_CASE("a plan for a target leaves out what misses it") {
  const TemporaryFolder folder;
  folder.write(
      "study.yaml",
      "study: trained\nplatform: skylake_10gbe\nmodel: lenet\nworkers: 2\ndataset: {samples: 1000, epochs: "
      "5}\nbatch: {global: 50}\nlearning: {problem: {name: logistic, samples: 1000}, rate: 0.1, target: {loss: "
      "0.5}}\nsweep: {learning.rate: [0.000001, 0.1]}\n");
  const ProgramRun run = run_good({"plan", "study.yaml", "--minimise", "target", "--no-sensitivity"}, folder);
  CHECK(run.out.find("cannot be: does not reach the target in the epochs that it has") != std::string::npos);
  CHECK(ranking(folder, {"--minimise", "target"}).size() == 1);
}

TEST_CASE("plans that cannot be say what comes closest, or what is missing") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  const ProgramRun late = run_program({"plan", "study.yaml", "--fits", "--under", "1 s"}, folder.path());
  CHECK(late.exit_code == 1);
  CHECK(late.out.find("choice: nothing meets the conditions; the fastest that fits takes ") == 0);
  CHECK(late.out.find("would take longer than the deadline on an idle network") != std::string::npos);
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
  refused({"--budget", "5", "--minimise", "time", "--set", "workers=1", "--set", "sweep={batch.global: [8, 16]}",
           "--set", "platform=dgx_a100", "--set", "strategy=single"},
          "--budget: the study does not say what it costs; add a block `price:");
  refused({"--budget", "5", "--minimise", "time", "--set", "workers=1", "--set",
           "sweep={price: [{device_hour: 1 $}, null]}", "--set", "platform=dgx_a100", "--set", "strategy=single"},
          "--budget: the study does not say what price=null costs; add a block `price:");
  refused({"--under", "5"}, "--under: missing unit");
}

TEST_CASE("a plan that was done before is read from its store, also after a kill") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  const std::vector<std::string> command{"plan", "study.yaml", "--fits", "--format", "json", "--jobs", "1"};
  {
    RunningProgram running(command, folder.path());
    usleep(300'000);
  }  // SIGKILL
  const ProgramRun first = run_good(command, folder);
  const auto stored = [&] {
    return nlohmann::json::parse(run_good({"results", "study.sqlite", "--format", "json"}, folder).out).size();
  };
  const std::size_t rows = stored();
  CHECK(rows > 0);
  CHECK(run_good(command, folder).out == first.out);
  CHECK(stored() == rows);
  // A sweep goes on from what the plan has simulated, and a plan from what a sweep has.
  const ProgramRun swept =
      run_program({"sweep", "study.yaml", "--set", "sweep.memory.recompute=[none]"}, folder.path());
  CHECK(swept.out.find(" stored before") != std::string::npos);
  CHECK(swept.out.find(", 0 stored before") == std::string::npos);
}

TEST_CASE("what would change a decision changes it") {
  // Two clusters of which one is 4 % dearer for the same machines: a tenth more for the cheap one, and the other wins.
  const TemporaryFolder folder;
  const auto cluster = [](const std::string& name, const std::string& price) {
    return "    - {cluster: " + name +
           ", nodes: 1, devices: {kind: h100_sxm5, per_node: 8}, inside: {rate: 370 GB/s, latency: 3 us}, cards: "
           "{per_node: 8, rate: 400 Gb/s, latency: 14 us}, price: {node_hour: " +
           price + "}}\n";
  };
  folder.write("study.yaml",
               "study: close\nmodel: resnet50\ndataset: {samples: 100000}\nbatch: {global: 64}\nworkers: "
               "2\nsweep:\n  platform:\n" +
                   cluster("cheap", "20 $") + cluster("dear", "20.8 $"));
  const std::string out = run_good({"plan", "study.yaml", "--minimise", "cost"}, folder).out;
  CAPTURE(out);
  CHECK(out.find("the decision changes with ") != std::string::npos);
  // Whatever is the same for both changes nothing.
  for (const std::string& line : split(out, '\n'))
    if (line.starts_with("  amount of training")) CHECK(line.ends_with("the first"));
}

TEST_CASE("a plan with its whole front has what no scenario beats") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  const std::string out = run_good({"plan", "study.yaml", "--fits", "--front", "--no-sensitivity"}, folder).out;
  CHECK(out.find("Pareto front: what nothing else beats in time, devices, cost and energy at once\n") !=
        std::string::npos);
}

TEST_CASE("an axis over a key that nothing knows is refused at once") {
  const TemporaryFolder folder;
  folder.write("study.yaml",
               "study: typo\nplatform: skylake_10gbe\nmodel: alexnet\nworkers: 2\nsweep:\n  batch.global: [2, 4]\n  "
               "network.eficiency: [0.5, 0.9]\n");
  for (const char* command : {"run", "sweep", "plan"}) {
    const ProgramRun run = run_program({command, "study.yaml"}, folder.path());
    CAPTURE(command, run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.err.starts_with("study.yaml:7:"));
    CHECK(run.err.find("sweep.network.eficiency: unknown key") != std::string::npos);
    CHECK(run.err.find("did you mean 'efficiency'?") != std::string::npos);
    CHECK(run.err.find("correct the axis, or leave it out") != std::string::npos);
    CHECK(split(run.err, '\n').size() <= 2);
  }
}

}  // namespace epocast::plan_test
