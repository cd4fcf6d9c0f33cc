// Schedules by rule: which phases they are, who trains in them, and those that learning decides.
#include <catch2/catch.hpp>

#include <cmath>
#include <nlohmann/json.hpp>

#include "experiments/batch_schedule.hpp"
#include "experiments/joining.hpp"
#include "experiments/learning/curves.hpp"
#include "experiments/run_study.hpp"
#include "tests/support/in_child.hpp"

namespace epocast::batch_schedule_test {

namespace {

constexpr const char* kStudy = R"(
study: doubling
platform: ideal_star_1024
model: mlp_mnist
workers: 16
dataset: {samples: 1000}
)";

const std::string kUneven = R"(
study: uneven
platform: ideal_star_1024
model: mlp_mnist
workers: 4
dataset: {samples: 1000}
strategy: {name: data_parallel, overlap: false}
)";

const std::string kJoining = R"(
study: joining
platform: ideal_star_1024
model: mlp_mnist
workers: 4
dataset: {samples: 1000}
optimizer: momentum
collective: {algorithm: binomial_tree, level: message}
)";

std::vector<ScenarioResult> run(const std::string& more) {
  return run_study(parse_study(kStudy + more, "study").scenarios, builtin_registries(), {}, 1, {});
}

ConfigNode rule(const std::string& text) { return ConfigNode::load_text(text, "rule"); }

}  // namespace

TEST_CASE("a batch that does not divide: one sample more for the first, or fewer workers", "[schedule]") {
  const auto shares = [](std::int64_t batch, std::vector<DeviceId> workers, Spare spare) {
    PhaseSettings phase{std::move(workers), batch, 1, 100};
    share_unevenly(phase, spare);
    return std::pair(phase.workers.size(), phase.shares);
  };
  using Shares = std::vector<std::int64_t>;
  CHECK(shares(8, {0, 1, 2, 3}, Spare::idle) == std::pair(std::size_t{4}, Shares{}));
  CHECK(shares(10, {0, 1, 2, 3}, Spare::idle) == std::pair(std::size_t{4}, Shares{3, 3, 2, 2}));
  CHECK(shares(10, {0, 1, 2, 3}, Spare::replicate) == std::pair(std::size_t{4}, Shares{3, 3, 2, 2}));
  CHECK(shares(3, {0, 1, 2, 3}, Spare::idle) == std::pair(std::size_t{3}, Shares{}));
  CHECK(shares(3, {0, 1, 2, 3}, Spare::replicate) == std::pair(std::size_t{4}, Shares{1, 1, 1, 1}));
}

TEST_CASE("uneven shares: the largest decides a step, and who has less idles", "[schedule]") {
  // Without overlap a step is the longest computation and an all-reduce.
  const auto with = [](const std::string& more) {
    const ScenarioResult result =
        run_study(parse_study(kUneven + more, "study").scenarios, builtin_registries(), {.details = true}, 1, {})
            .front();
    REQUIRE(result.error.empty());
    return result;
  };
  const auto idle = [](const ScenarioResult& result) {
    return nlohmann::json::parse(result.details).at("phases").at(0).at("idle_share").get<double>();
  };
  const ScenarioResult seven = with("batch: {global: 7, spare: idle}\n"), eight = with("batch: {global: 8}\n"),
                       four = with("batch: {global: 4}\n");
  CHECK(seven.iteration_s == Approx(eight.iteration_s).epsilon(1e-12));  // 2, 2, 2 and 1 samples
  CHECK(seven.compute_s == Approx((3 * eight.compute_s + four.compute_s) / 4).epsilon(1e-12));
  CHECK(seven.comm_bytes_per_iteration == eight.comm_bytes_per_iteration);
  CHECK(idle(seven) == Approx(1 - seven.compute_s / seven.iteration_s));
  // Three samples: three workers, and one that is booked and idle; or all four, of which one does what another does.
  const ScenarioResult three = with("batch: {global: 3, spare: idle}\n"),
                       copies = with("batch: {global: 3, spare: replicate}\n");
  CHECK(three.workers == 3);
  CHECK(idle(three) == Approx(1 - 3 * three.compute_s / (4 * three.iteration_s)));
  CHECK(copies.workers == 4);
  CHECK(copies.global_batch == 3);
  CHECK(copies.iteration_s == Approx(four.iteration_s).epsilon(1e-12));
  // A step of three samples as a step of four.
  CHECK(copies.total_s == Approx(four.total_s * std::ceil(1000.0 / 3) / 250).epsilon(1e-9));
}

TEST_CASE("workers that join are sent parameters and momentum over their links", "[schedule]") {
  // Two workers, then four: the third and fourth get a copy each, 1 GB/s and 2.5 us a message. A binomial tree of the
  // sender and these two takes two rounds, each of the parameters and as much momentum.
  const auto phases = [](const std::string& more) {
    const ScenarioResult result =
        run_study(parse_study(kJoining + more, "study").scenarios, builtin_registries(), {.details = true}, 1, {})
            .front();
    REQUIRE(result.error.empty());
    return std::pair(result, nlohmann::json::parse(result.details).at("phases"));
  };
  const auto [result, grows] =
      phases("schedule: [{epochs: 1, batch.global: 20, workers: 2}, {epochs: 1, batch.global: 40, workers: 4}]\n");
  const double bytes = grows[1].at("memory")[0].at("parameters").get<double>();
  CHECK(grows[1].at("memory")[0].at("optimizer_state") == bytes);
  CHECK(grows[0].at("joining_s") == 0);
  CHECK(grows[1].at("joining_bytes").get<double>() == Approx(2 * 2 * bytes));
  CHECK(grows[1].at("joining_s").get<double>() == Approx(2 * (2 * bytes / 1e9 + 2.5e-6)).epsilon(1e-6));
  double total = 0;
  for (const auto& phase : grows) total += phase.at("total_s").get<double>();
  CHECK(result.total_s == Approx(total).epsilon(1e-12));
  // Nobody waits for those that leave.
  const auto shrinks =
      phases("schedule: [{epochs: 1, batch.global: 40, workers: 4}, {epochs: 1, batch.global: 20, workers: 2}]\n")
          .second;
  CHECK(shrinks[1].at("joining_s") == 0);
  CHECK(shrinks[1].at("joining_bytes") == 0);
}

namespace {

/// Two workers, then four: the bytes that those who join are sent, and by holder what each has then of parameters and
/// the optimizer's state.
std::pair<double, std::vector<double>> joining(const std::string& more, const std::string& base = kJoining) {
  const ScenarioResult result =
      run_study(parse_study(base + more +
                                "\nschedule: [{epochs: 1, batch.global: 20, workers: 2}, {epochs: 1, batch.global: "
                                "40, workers: 4}]\n",
                            "study")
                    .scenarios,
                builtin_registries(), {.details = true}, 1, {})
          .front();
  INFO(more);
  REQUIRE(result.error == "");
  const auto phase = nlohmann::json::parse(result.details).at("phases").at(1);
  std::vector<double> held;
  for (const auto& memory : phase.at("memory"))
    held.push_back(memory.at("parameters").get<double>() + memory.at("optimizer_state").get<double>());
  return std::pair(phase.at("joining_bytes").get<double>(), held);
}

}  // namespace

TEST_CASE("workers that join are sent what training goes on with, and no buffers", "[schedule]") {
  // Two workers, then four. P bytes of parameters and as much momentum: both that join get all of it, or a quarter each
  // where all four share it; those before have half and need nothing.
  const auto joining_bytes = [](const std::string& more) { return joining(more).first; };
  const double all = joining_bytes("strategy: data_parallel");  // 2 x 2 P
  REQUIRE(all > 0);
  CHECK(joining_bytes("strategy: gossip") == Approx(all));  // not the neighbour's parameters
  CHECK(joining_bytes("strategy: data_parallel\nmemory: {offload: activations}") == Approx(all));
  for (const std::string stage : {"{stage: 3}", "{stage: 3, unit: 1 kB}", "{stage: 3, reshard: false}"}) {
    CAPTURE(stage);
    const std::string options = stage.substr(1);
    CHECK(joining_bytes("strategy: {name: sharded_data_parallel, " + options) == Approx(all / 4));
  }
  // Parameters are whole on all: 2 P, and 2 x P / 4 of momentum.
  CHECK(joining_bytes("strategy: {name: sharded_data_parallel, stage: 1}") == Approx(all * 5 / 8));
}

TEST_CASE("who joins is sent what it lacks, be it a worker, a stage or a server", "[schedule]") {
  // As above. P parameters and as much momentum.
  const double copy = joining("strategy: data_parallel").second[0];  // 2 P
  // Workers pull. The server leaves its host, where a worker trains now, and takes all along.
  CHECK(joining("strategy: parameter_server").first == Approx(copy));
  // Servers with the workers, each with an equal part of all layers: those that join have a quarter each.
  CHECK(joining("strategy: {name: parameter_server, location: device, servers: all, placement: even}").first ==
        Approx(2 * copy / 4));
  // Elastic workers pull at a round's end, and train with parameters and momentum of their own before: of those that
  // join, one was the server's host and has parameters, which is all that the next server needs.
  CHECK(joining("strategy: easgd").first == Approx(copy / 2 + copy + copy / 2));
  // The second worker changes from the second stage to the first, and those that join get the second.
  const auto [bytes, stages] = joining("strategy: {mesh: {pipeline: 2, data: rest}}");
  REQUIRE(stages.size() == 2);
  CHECK(bytes == Approx(stages[0] + 2 * stages[1]));
  // Shared memory stays where it is.
  CHECK(joining("strategy: hogwild",
                "study: joining\nplatform: dgx_a100\nmodel: mlp_mnist\nworkers: 4\ndataset: {samples: 1000}\n")
            .first == 0);
}

TEST_CASE("workers join where they and a sender cannot run the algorithm that all of them can", "[schedule]") {
  // One device of the first node sends to both of the second.
  const ScenarioResult result =
      run_study(parse_study("study: joining\nmodel: mlp_mnist\nworkers: 4\ndataset: {samples: 1000}\n"
                            "platform: {cluster: two, nodes: 2, devices: {kind: v100_sxm2_16gb, per_node: 2}, inside: "
                            "{rate: 10 GB/s, "
                            "latency: 3 us}, cards: {per_node: 1, rate: 10 Gb/s, latency: 10 us}}\n"
                            "collective: {algorithm: hierarchical}\n"
                            "schedule: [{epochs: 1, batch.global: 20, workers: 2}, {epochs: 1, batch.global: 40}]\n",
                            "study")
                    .scenarios,
                builtin_registries(), {.details = true}, 1, {})
          .front();
  REQUIRE(result.error == "");
  const auto phase = nlohmann::json::parse(result.details).at("phases").at(1);
  const double held = phase.at("memory")[0].at("parameters").get<double>();  // momentum there is none
  CHECK(phase.at("joining_bytes").get<double>() == Approx(2 * held));
  CHECK(phase.at("joining_s").get<double>() > 0);
}

TEST_CASE("devices that lack what one of them holds get it from there", "[schedule]") {
  // Two stages, the first of them on two devices; then the whole network on all three.
  const std::string text =
      "study: joining\nplatform: ideal_star_1024\nmodel: lenet\nworkers: 3\ndataset: {samples: 1000}\n"
      "collective: {algorithm: binomial_tree, level: message}\n"
      "schedule: [{epochs: 1, batch.global: 24}, {epochs: 1, batch.global: 24}]\nstrategy: {name: pipeline, ";
  const auto setup_of = [](const std::string& of) {
    return read_scenario(parse_study(of, "study").scenarios.front(), builtin_registries());
  };
  const ScenarioSetup before = setup_of(text + "replicas: [2, 1]}\n"), after = setup_of(text + "replicas: [3]}\n");
  const TrainingStep stages = before.compile(before.phases[0]), whole = after.compile(after.phases[1]);
  REQUIRE(stages.memory.size() == 2);
  const double first = stages.memory[0].use.parameters.value, last = stages.memory[1].use.parameters.value;
  REQUIRE(first < last);
  const std::string bytes = testing::in_child([&] {
    SimEngine engine(after.cluster, after.network);
    return std::to_string(joining_of(after, engine, stages, whole, after.phases[1], {}).bytes);
  });
  CHECK(std::stod(bytes) == Approx(2 * last + first));  // the last stage to two devices, the first to one
}

TEST_CASE("the batch doubles every so many epochs", "[schedule]") {
  const BatchDoubling doubling =
      read_batch_doubling(rule("{rule: doubling, from: 64, to: 200, every: 10, epochs: 45}"), {0, 1, 2, 3}, 4, 1000);
  const std::vector<PhaseSettings> phases = doubling.phases(doubling.every, 1000, false);
  REQUIRE(phases.size() == 3);
  CHECK(phases[0].global_batch == 64);
  CHECK(phases[0].epochs == 10);
  CHECK(phases[0].iterations == 160);  // 16 steps an epoch, the last with fewer samples
  CHECK(phases[1].global_batch == 128);
  CHECK(phases[2].global_batch == 200);
  CHECK(phases[2].epochs == 25);
  std::int64_t epochs = 0;
  for (const PhaseSettings& phase : phases) epochs += phase.epochs;
  CHECK(epochs == 45);
  // Training may end before the batch has grown.
  CHECK(doubling.phases(100, 1000, false).size() == 1);
}

TEST_CASE("a rule gives what its phases give one by one", "[schedule]") {
  const ScenarioResult by_rule = run("schedule: {rule: doubling, from: 8, to: 32, every: 2, epochs: 7}\n").front();
  const ScenarioResult by_list = run("schedule: [{epochs: 2, batch.global: 8, workers: 8}, {epochs: 2, batch.global: "
                                     "16}, {epochs: 3, batch.global: 32}]\n")
                                     .front();
  REQUIRE(by_rule.error.empty());
  CHECK(by_rule.total_s == by_list.total_s);
  CHECK(by_rule.comm_bytes_per_epoch == by_list.comm_bytes_per_epoch);
}

TEST_CASE("rules that cannot be", "[schedule]") {
  const auto problem = [](const std::string& schedule) { return run("schedule: " + schedule + "\n").front().error; };
  CHECK_THAT(problem("{rule: double, from: 8, to: 32, every: 2, epochs: 7}"), Catch::Contains("valid: doubling"));
  CHECK_THAT(problem("{rule: doubling, from: 64, to: 32, every: 2, epochs: 7}"), Catch::Contains("32 is too small"));
  CHECK_THAT(problem("{rule: doubling, from: 8, to: 32, every: 0, epochs: 7}"), Catch::Contains("schedule.every"));
  CHECK_THAT(problem("{rule: doubling, from: 8, to: 32, every: 2, epochs: 7, spare: busy}"),
             Catch::Contains("valid: idle, replicate"));
  CHECK_THAT(problem("{rule: doubling, from: 8, to: 2000, every: 1, epochs: 7}"), Catch::Contains("schedule.to"));
  CHECK_THAT(problem("{rule: doubling, from: 8, to: 32, every: adaptive, epochs: 7}"),
             Catch::Contains("no `learning` block"));
}

TEST_CASE("learning decides when the batch doubles", "[schedule]") {
  const std::string schedule = "schedule: {rule: doubling, from: 8, to: 32, every: adaptive, epochs: 30}\n";
  const std::string learning =
      "learning: {problem: {name: logistic, samples: 1000}, rate: {base: 0.01, scaling: linear}}\n";
  const ScenarioResult result = run(schedule + learning).front();
  REQUIRE(result.error.empty());
  const std::vector<learning::CurvePoint> curve = unpack_curves(result.curves).at(0).curve;
  // Theta of the first phase: the interval is the first epoch at which it has changed by less than a tenth.
  std::int64_t interval = 0;
  for (std::size_t n = 2; n < curve.size() && interval == 0; ++n)
    if (std::abs(curve[n].theta - curve[n - 1].theta) < 0.1 * std::abs(curve[n - 1].theta))
      interval = static_cast<std::int64_t>(n);
  REQUIRE(interval > 0);
  std::int64_t first_phase = 0;
  for (const learning::CurvePoint& point : curve) first_phase += point.phase == 0 && point.epoch > 0 ? 1 : 0;
  CHECK(first_phase == interval);
  CHECK(curve.back().phase == 2);
  CHECK(curve.back().rate == Approx(0.04));
  // Timing follows: the same as with that interval given.
  const ScenarioResult given =
      run("schedule: {rule: doubling, from: 8, to: 32, every: " + std::to_string(interval) + ", epochs: 30}\n").front();
  CHECK(result.total_s == Approx(given.total_s).epsilon(1e-9));
}

}  // namespace epocast::batch_schedule_test
