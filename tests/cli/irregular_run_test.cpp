// Runs that noise, stragglers and stops disturb, as users see them.

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/cli/text.hpp"

namespace epocast::irregular_run_test {

using namespace epocast::test;
using nlohmann::ordered_json;

namespace {

const std::string kAsync =
    "study: small\nplatform: skylake_10gbe\nstack: ideal\nmodel: mlp_mnist\nworkers: 3\ndataset: {samples: 9600}\n"
    "strategy: {name: parameter_server, mode: async}\n";

ordered_json row(const std::vector<std::string>& settings, const TemporaryFolder& folder) {
  std::vector<std::string> arguments{"run", "study.yaml", "--format", "json"};
  for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
  return ordered_json::parse(run_good(arguments, folder).out).front();
}

ordered_json read_json(const std::filesystem::path& file) {
  std::ifstream in(file);
  return ordered_json::parse(in);
}

}  // namespace

TEST_CASE("a deadlock names who waits for whom, and exits with 1") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kAsync);
  const auto run = run_program(
      {"run", "study.yaml", "--set", "strategy.mode=sync", "--set", "stops=[{worker: 1, from: 10 ms}]"}, folder.path());
  INFO(run.err);
  CHECK(run.exit_code == 1);
  CHECK(run.err.find("deadlock") != std::string::npos);
  CHECK(run.err.find("stands still for ever since 0.01 s") != std::string::npos);
  CHECK(run.err.find("of rank 1") != std::string::npos);
}

TEST_CASE("asynchronous workers go on without one that never returns, and the output says how far it came") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kAsync + "stops: [{worker: 1, from: 10 ms}]\n");
  const auto run = run_good({"run", "study.yaml", "--details", "d.json"}, folder);
  CHECK(run.out.find("worker 1 (") != std::string::npos);
  CHECK(run.out.find("stands still for ever since 0.01 s and did ") != std::string::npos);
  CHECK(run.out.find("of 100 steps") != std::string::npos);
  const ordered_json workers = read_json(folder.path() / "d.json").front().at("phases").front().at("by_worker");
  REQUIRE(workers.size() == 3);
  CHECK(workers[0].at("iterations") == 100);
  CHECK(workers[1].at("iterations") < 100);
  CHECK(workers[1].at("stopped_s") == Approx(0.01));
  CHECK(workers[2].at("stopped_s").is_null());
}

TEST_CASE("several seeds give means with an interval") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kAsync + "noise: {compute_cv: 0.2, seeds: [4, 9, 7]}\n");
  run_good({"run", "study.yaml", "--details", "d.json"}, folder);
  const ordered_json seeds = read_json(folder.path() / "d.json").front().at("seeds");
  CHECK(seeds.at("seeds") == ordered_json({4, 9, 7}));
  double sum = 0;
  std::vector<double> values;
  for (const int seed : {4, 9, 7}) {
    const ordered_json one = row({"noise={compute_cv: 0.2, seed: " + std::to_string(seed) + "}"}, folder);
    values.push_back(one.at("iteration_s").get<double>());
    sum += values.back();
  }
  for (std::size_t s = 0; s < values.size(); ++s)  // later seeds start at a later date: the clock's last digits differ
    CHECK(seeds.at("iteration_s").at("values").at(s).get<double>() == Approx(values[s]).epsilon(1e-9));
  CHECK(seeds.at("iteration_s").at("values").at(0) == values[0]);
  CHECK(row({}, folder).at("iteration_s").get<double>() == Approx(sum / 3).epsilon(1e-9));
  // t(0.975, 2) = 4.303 times the standard error of three.
  double square = 0;
  for (const double v : values) square += (v - sum / 3) * (v - sum / 3);
  CHECK(seeds.at("iteration_s").at("ci95").get<double>() == Approx(4.3027 * std::sqrt(square / 2 / 3)).epsilon(1e-4));
}

TEST_CASE("the order of seeds does not move the interval of a forecast") {
  const TemporaryFolder folder;
  folder.write("study.yaml",
               "study: seeds\nplatform: skylake_10gbe\nmodel: alexnet\nworkers: 3\nbatch: {per_worker: 8}\n"
               "dataset: {samples: 240}\n");
  const auto ends = [&](const std::string& ranges, const std::string& seeds) {
    const ordered_json result =
        nlohmann::ordered_json::parse(run_good({"run", "study.yaml", "--interval", "--format", "json", "--set",
                                                "stack={name: gloo, unexplained: 0, ranges: " + ranges + "}", "--set",
                                                "noise={compute_cv: 1, per: step, seeds: " + seeds + "}"},
                                               folder)
                                          .out)
            .at(0);
    const double point = result.at("iteration_s");
    return std::pair{result.at("iteration_low_s").get<double>() / point,
                     result.at("iteration_high_s").get<double>() / point};
  };
  for (const char* seeds : {"[1, 2, 3]", "[3, 2, 1]"}) CHECK(ends("{copies: [4, 4]}", seeds) == std::pair{1.0, 1.0});
  // A range that is one value on one side: the interval ends at the forecast, whichever seed comes first.
  for (const char* seeds : {"[1, 2, 3]", "[3, 2, 1]"}) {
    const auto [low, high] = ends("{copies: [4, 40]}", seeds);
    CHECK(low == Approx(1));
    CHECK(high > 1.01);
  }
}

TEST_CASE("workers join whatever was measured of collectives, and however samples are shared out") {
  const TemporaryFolder folder;
  const std::string head =
      "study: join\nplatform: dgx_a100\nmodel: mlp_mnist\nworkers: 4\nbatch: {per_worker: 8}\nstack: ideal\n"
      "schedule: [{epochs: 1, workers: 2, batch.global: 16}, {epochs: 1}]\n";
  folder.write("study.yaml", head + "dataset: {samples: 640}\ncollective: {calibration: collectives_a100_nvswitch}\n");
  run_good({"run", "study.yaml"}, folder);
  folder.write("study.yaml", head + "dataset: {samples: 640, shards: stealing}\nstrategy: {name: gossip, period: 2}\n");
  run_good({"run", "study.yaml"}, folder);
}

TEST_CASE("with stealing a slow worker costs its own rate, not everybody's") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kAsync + "stragglers: [{worker: 2, slowdown: 200}]\n");
  const double fixed = row({}, folder).at("samples_per_s"),
               stolen = row({"dataset.shards=stealing"}, folder).at("samples_per_s");
  CHECK(stolen > 1.5 * fixed);
}

TEST_CASE("samples whose gradients come too late do not count") {
  const TemporaryFolder folder;
  folder.write("study.yaml", kAsync);
  const auto with = [&](const std::string& strategy) {
    return row({"workers=4", "batch.per_worker=32", "strategy={name: parameter_server, " + strategy + "}"}, folder);
  };
  // Equal workers, one of them spare: 3 x 32 of 4 x 32 samples are applied, 100 times an epoch instead of 75.
  const ordered_json all = with("mode: backup, backup: 0"), three = with("mode: backup, backup: 1");
  CHECK(all.at("global_batch") == 128);
  CHECK(three.at("global_batch") == 96);
  CHECK(three.at("workers") == 4);
  for (const ordered_json& one : {all, three}) {
    const double iteration = one.at("iteration_s"), batch = one.at("global_batch");
    CHECK(one.at("samples_per_s").get<double>() == Approx(batch / iteration).epsilon(1e-12));
    // Filling the pipeline of iterations is a small part.
    CHECK(one.at("total_s").get<double>() == Approx(9600 / batch * iteration).epsilon(0.02));
    const ordered_json alone =
        row({"workers=1", "strategy=single", "batch.per_worker=" + one.at("global_batch").dump()}, folder);
    CHECK(one.at("speedup").get<double>() == Approx(alone.at("iteration_s").get<double>() / iteration).epsilon(1e-9));
  }
}

TEST_CASE("what a fast worker computes counts, however early it is done") {
  // Two workers that do not wait for each other, one of which is three times as slow: both do all 100 steps, and
  // compute twice as long as a worker that nothing slows down, on average.
  const TemporaryFolder folder;
  folder.write("study.yaml", kAsync + "power: {device: {idle: 0 W, busy: 1 W}}\n");
  const std::vector<std::string> both{"workers=2", "batch.per_worker=8192", "dataset.samples=1638400"};
  std::vector<std::string> unequal = both;
  unequal.push_back("stragglers=[{worker: 1, slowdown: 3}]");
  const ordered_json even = row(both, folder), uneven = row(unequal, folder);
  CHECK(uneven["iterations_simulated"] == 100);
  CHECK(uneven["compute_s"].get<double>() == Approx(2 * even["compute_s"].get<double>()).epsilon(1e-6));
  // Each watt is drawn while somebody computes.
  CHECK(uneven["energy_j"].get<double>() == Approx(200 * uneven["compute_s"].get<double>()).epsilon(0.02));

  // So it is where a link is slower for a while, until the fast one has done half.
  const double done = 100 * even["iteration_s"].get<double>();
  std::vector<std::string> changing = unequal;
  changing.push_back(fmt::format("degraded_links=[{{worker: 1, slowdown: 2, from: 0 s, until: {} s}}]", 0.5 * done));
  const ordered_json changed = row(changing, folder);
  CHECK(changed["compute_s"].get<double>() == Approx(2 * even["compute_s"].get<double>()).epsilon(1e-6));
}

}  // namespace epocast::irregular_run_test
