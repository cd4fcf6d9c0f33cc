// Software stacks as users see them. The study computes for 1 s and then reduces 400 MB over a ring of two links of 1
// GB/s: 0.400005 s.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"

namespace epocast::stack_test {

using namespace epocast::test;
using Catch::Contains;

namespace {

constexpr const char* kStudy = R"(study: software
platform: ideal_star_1024
model: {opaque: net, parameters: 100e6, tensors: 10}
workers: 2
batch: {per_worker: 8}
dataset: {samples: 1000000}
compute: {step_time: {batch: 8, time: 1 s}}
collective: {algorithm: ring}
strategy: {name: data_parallel, granularity: model, overlap: false}
)";

/// The row of the study with these settings.
nlohmann::json row(std::vector<std::string> settings) {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  std::vector<std::string> arguments{"run", "study.yaml", "--format", "jsonl"};
  for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
  return nlohmann::json::parse(run_good(arguments, folder).out);
}

}  // namespace

TEST_CASE("a study without a stack has free software, and says so") {
  const nlohmann::json ideal = row({});
  CHECK(ideal.at("stack") == "ideal");
  CHECK(ideal.at("iteration_s").get<double>() == Approx(1.400005).epsilon(1e-6));
  CHECK(row({"stack=ideal"}).at("iteration_s") == ideal.at("iteration_s"));
}

TEST_CASE("mechanisms are switched by a key, and show in the stack's name") {
  const nlohmann::json spread = row({"stack.spread=0.1"});
  CHECK(spread.at("iteration_s").get<double>() == Approx(1.400005 + 0.1 / std::sqrt(M_PI)).epsilon(1e-6));
  CHECK(spread.at("stack") == "ideal spread=0.1");
  // alone nobody waits
  CHECK(row({"stack.spread=0.1", "workers=1"}).at("iteration_s").get<double>() == Approx(1).epsilon(1e-6));
  // an overhead of 100 ms; copies of 400 MB with two accesses at 80 % of the memory's bandwidth
  CHECK(row({"stack.collective_overhead=100 ms"}).at("iteration_s").get<double>() == Approx(1.500005).epsilon(1e-6));
}

TEST_CASE("a change of a stack may be quoted, and hold anything") {
  for (const char* setting :
       {"stack.collective_overhead=\"100 ms\"", "stack={name: ideal, collective_overhead: '100 ms'}"}) {
    const nlohmann::json quoted = row({setting});
    CAPTURE(setting);
    CHECK(quoted.at("iteration_s").get<double>() == Approx(1.500005).epsilon(1e-6));
    CHECK(quoted.at("stack") == "ideal collective_overhead=100 ms");
  }
  // Names of keys and values with characters that YAML and its quotes use reach the stack's own message.
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  const ProgramRun odd =
      run_program({"run", "study.yaml", "--set", R"(stack.collective_overhead="1\ \"s")"}, folder.path());
  CAPTURE(odd.err);
  CHECK(odd.exit_code == 2);
  CHECK(odd.err.find("collective_overhead") != std::string::npos);
  CHECK(odd.err.find("the document ended") == std::string::npos);
}

TEST_CASE("input that comes too slowly limits the run, and the output names it") {
  // 8 samples at 4 a second: 2 s, beside 1.4 s of work
  const nlohmann::json fed = row({"stack={name: ideal, input: {per_worker: 4}}"});
  CHECK(fed.at("iteration_s").get<double>() == Approx(2).epsilon(1e-6));
  CHECK_THAT(fed.at("limited_by").get<std::string>(), Contains("load"));
  CHECK(row({"stack={name: ideal, input: {per_worker: 400}}"}).at("iteration_s").get<double>() ==
        Approx(1.400005).epsilon(1e-6));
}

TEST_CASE("whoever reads the network's input waits for all samples of its replica") {
  // 48 samples a step on 4 workers, which compute for less than 2 ms; 10 samples a second to each that reads them.
  const std::string study =
      "study: fed\nplatform: dgx_a100\nmodel: lenet\nworkers: 4\nbatch: {global: 48}\ndataset: {samples: 48000}\n"
      "stack: {name: ideal, input: {per_worker: 10}}\nstrategy: ";
  const auto iteration = [&](const std::string& strategy, std::vector<std::string> more = {}) {
    const TemporaryFolder folder;
    folder.write("study.yaml", study + strategy + "\n");
    more.insert(more.begin(), {"run", "study.yaml", "--format", "jsonl"});
    const nlohmann::json row = nlohmann::json::parse(run_good(more, folder).out);
    INFO(strategy);
    CHECK_THAT(row.at("limited_by").get<std::string>(), Contains("load"));
    return row.at("iteration_s").get<double>();
  };
  const std::pair<const char*, double> strategies[] = {
      {"data_parallel", 12},
      {"{name: data_parallel, accumulation: 4}", 12},
      {"sharded_data_parallel", 12},
      {"{name: local_sgd, period: 4}", 12},  // each step, though several are written as one
      {"{mesh: {tensor: 4}}", 48},           // four devices of one replica
      {"{mesh: {data: 2, tensor: 2}}", 24},
      {"{mesh: {tensor: 4}, body: filters}", 48},
      {"filter_parallel", 48},
      {"pipeline", 48},  // the first stage alone
      {"{mesh: {pipeline: 2, data: 2}}", 24},
      {"{name: pipeline, replicas: [3, 1]}", 16},
      {"{name: pipeline, schedule: pipedream}", 48},
      {"{name: pipeline, stages: 2, schedule: interleaved, virtual_stages: 2, micro_batches: 8}", 24},
      {"layerwise", 12},  // divides samples
      {"{name: layerwise, configuration: {conv1: {c: 4}}}", 48},
  };
  for (const auto& [strategy, samples] : strategies) {
    INFO(strategy);
    CHECK(iteration(strategy) == Approx(samples / 10).epsilon(1e-6));
  }
  // A node feeds those of its workers that read: 4 with 12 samples, one with all, or 4 with all.
  const std::vector<std::string> of_node{"--set", "stack={name: ideal, input: {per_node: 20}}"};
  CHECK(iteration("data_parallel", of_node) == Approx(2.4).epsilon(1e-6));
  CHECK(iteration("pipeline", of_node) == Approx(2.4).epsilon(1e-6));
  CHECK(iteration("{mesh: {tensor: 4}}", of_node) == Approx(9.6).epsilon(1e-6));
}

TEST_CASE("an input that nothing can wait for is named") {
  const TemporaryFolder folder;
  folder.write("study.yaml",
               "study: fed\nplatform: dgx_a100\nmodel: lenet\nworkers: 4\nbatch: {global: 48}\ndataset: {samples: "
               "48000}\nstack: {name: ideal, input: {per_worker: 10}}\nstrategy: {name: operators, bandwidth: 25 "
               "GB/s}\n");
  const nlohmann::json row = nlohmann::json::parse(run_good({"run", "study.yaml", "--format", "jsonl"}, folder).out);
  CHECK_THAT(row.at("warnings").dump(), Contains("the stack's input rate is left out"));
}

TEST_CASE("--explain says what each mechanism costs, largest first") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kStudy);
  const std::string out = run_good({"run", "study.yaml", "--explain", "--set",
                                    "stack={name: ideal, spread: 0.1, collective_overhead: 20 ms}"},
                                   folder)
                              .out;
  CHECK_THAT(
      out,
      Contains(
          "Software (stack ideal spread=0.1 collective_overhead=20 ms) costs 0.0764 s of an iteration of 1.4764 s"));
  const std::size_t spread = out.find("spread  "), overhead = out.find("collective_overhead ");
  REQUIRE(spread != std::string::npos);
  CHECK(out.find("collective_overhead  ", spread) != std::string::npos);
  CHECK_THAT(out, Contains("0.0564 s") && Contains("0.0200 s"));
  CHECK(overhead != std::string::npos);
}

TEST_CASE("a study on processors that names no stack is forecast with gloo") {
  const TemporaryFolder folder;
  folder.write("study.yaml", "study: s\nplatform: skylake_10gbe\nmodel: mlp_mnist\nworkers: 2\n");
  const auto stack = [&](std::vector<std::string> settings) {
    std::vector<std::string> arguments{"run", "study.yaml", "--format", "csv", "--columns", "stack"};
    arguments.insert(arguments.end(), settings.begin(), settings.end());
    return run_good(arguments, folder).out;
  };
  CHECK_THAT(stack({}), Contains("gloo"));
  CHECK_THAT(stack({"--set", "strategy=single", "--set", "workers=1"}), Contains("ideal"));
  CHECK_THAT(stack({"--set", "stack=ideal"}), Contains("ideal"));
}

TEST_CASE("the testbed says what it lacks, and that is no error") {
  // Neither `ip` nor `tc` is in this folder, or the user is not root.
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "out.txt").string();
  const std::string command = "/usr/bin/env PATH=" + folder.path().string() +
                              " /usr/bin/python3 " EPOCAST_SOURCE_DIR "/experiments/testbed/testbed.py > " + out;
  if (std::system("test -x /usr/bin/python3") != 0) return;
  CHECK(std::system(command.c_str()) == 0);
  CHECK_THAT(read_file(out), Catch::StartsWith("testbed: skipped: "));
}

}  // namespace epocast::stack_test
