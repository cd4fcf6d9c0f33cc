// Memory as users meet it: settings, what they do to memory and time under every strategy, the warning's remedies, and
// the timeline that `trace --memory` writes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace epocast::memory_test {

using namespace epocast::test;
using Catch::Contains;
using nlohmann::json;

namespace {

const std::string kStudy =
    "study: memory\nplatform: dgx1_v100\nmodel: resnet50\nworkers: 2\nbatch: {per_worker: 16}\n"
    "dataset: {samples: 6400}\n";

json scenarios(const TemporaryFolder& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"run", folder.write("study.yaml", kStudy).string()});
  arguments.insert(arguments.end(), {"--format", "json"});
  return json::parse(run_good(arguments, folder).out);
}

}  // namespace

TEST_CASE("recomputation takes less memory and more time, whatever the strategy") {
  const TemporaryFolder folder;
  for (const char* strategy : {"{name: data_parallel, granularity: layer}", "{name: data_parallel, overlap: false}",
                               "{name: parameter_server, location: colocated}"}) {
    INFO(strategy);
    const json rows = scenarios(folder, {"--set", std::string("strategy=") + strategy, "--set",
                                         "sweep={memory.recompute: [none, sqrt, blocks, 3]}"});
    REQUIRE(rows.size() == 4);
    for (std::size_t r = 1; r < rows.size(); ++r) {
      CHECK(rows[r]["peak_memory_bytes"] < rows[0]["peak_memory_bytes"]);
      CHECK(rows[r]["iteration_s"] > rows[0]["iteration_s"]);
      CHECK(rows[r]["compute_s"] > rows[0]["compute_s"]);
    }
  }
}

TEST_CASE("workspace and reserve come on top of the tensors") {
  const TemporaryFolder folder;
  const auto peak = [&](const std::string& memory) {
    return scenarios(folder, {"--set", "memory=" + memory})[0]["peak_memory_bytes"].get<double>();
  };
  const double bare = peak("{workspace: none}");
  CHECK(peak("{workspace: none, reserve: 500 MB}") == bare + 500e6);
  // dgx1_v100's devices have 16 GB.
  CHECK(peak("{workspace: none, reserve_share: 0.1}") == Approx(bare + 0.1 * 16e9));
  CHECK(peak("{workspace: none, reserve: 500 MB, reserve_share: 0.1}") == Approx(bare + 500e6 + 0.1 * 16e9));
  CHECK(peak("{workspace: 10 GB}") > bare + 9e9);
  CHECK(peak("{}") >= bare);
}

TEST_CASE("a run that does not fit says by how much, and the remedy it names fits, barely") {
  const TemporaryFolder folder;
  const std::string study = folder.write("study.yaml", kStudy).string();
  const ProgramRun run = run_good({"run", study, "--set", "batch.per_worker=400"}, folder);
  CHECK_THAT(run.out, Contains("warning: worker needs") && Contains("has; batch.per_worker: "));
  CHECK_THAT(run.out,
             Contains("; with this batch use ") && Contains("memory.recompute: sqrt (") && Contains(" an iteration)"));
  const std::string key = "batch.per_worker: ";
  const int batch = std::stoi(run.out.substr(run.out.find(key, run.out.find("warning")) + key.size()));
  const auto fits = [&](const std::string& setting) {
    return scenarios(folder, {"--set", "batch.per_worker=400", "--set", setting})[0]["fits_memory"].get<bool>();
  };
  CHECK(fits("batch.per_worker=" + std::to_string(batch)));
  CHECK_FALSE(fits("batch.per_worker=" + std::to_string(batch + 1)));
  CHECK(fits("memory.recompute=sqrt"));
  // Nothing helps where the parameters alone are too large.
  const ProgramRun hopeless = run_good({"run", study, "--set", "model=gpt3_175b"}, folder);
  CHECK_THAT(hopeless.out, Contains("no smaller batch would fit"));
}

TEST_CASE("the memory timeline's peak is the run's, at the same moment") {
  const TemporaryFolder folder;
  const std::string study = folder.write("study.yaml", kStudy).string();
  const json timeline = json::parse(run_good({"trace", study, "--memory", "--format", "json"}, folder).out);
  const json& moments = timeline["moments"];
  const auto peak = std::max_element(moments.begin(), moments.end(),
                                     [](const json& a, const json& b) { return a["total_bytes"] < b["total_bytes"]; });
  run_good({"run", study, "--details", "details.json"}, folder);
  const json memory = json::parse(read_file(folder.path() / "details.json"))[0]["phases"][0]["memory"][0];
  CHECK((*peak)["total_bytes"] == memory["total"]);
  CHECK((*peak)["pass"].get<std::string>() + " " + (*peak)["layer"].get<std::string>() == memory["moment"]);
  CHECK((*peak)["activation_gradient_bytes"] == memory["activation_gradients"]);

  const std::vector<std::string> lines = split(run_good({"trace", study, "--memory"}, folder).out, '\n');
  CHECK(lines.front() ==
        "pass,layer,total_bytes,parameter_bytes,gradient_bytes,optimizer_state_bytes,activation_bytes,"
        "activation_gradient_bytes,workspace_bytes");
  CHECK(lines.size() == moments.size() + 1);
}

}  // namespace epocast::memory_test
