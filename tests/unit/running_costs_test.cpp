// What training costs, against numbers worked out by hand and a simulation of failures.

#include "experiments/costs/running_costs.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "experiments/costs/scenario_costs.hpp"
#include "tests/support/run_study.hpp"

namespace epocast::running_costs_test {

namespace {

RunningCosts read(const std::string& text) {
  const ConfigNode study = ConfigNode::load_text(text, "study.yaml");
  return read_running_costs(study, ConfigNode::load_text("here", "study.yaml"));
}

/// Trains for `useful` s, step by step as the model says: training of t and writing of d, a failure in which starts it
/// again after a restart, in which nodes may fail too.
double train(const FailureModel& model, double useful, std::mt19937_64& random) {
  std::exponential_distribution<double> failure(1 / model.mtbf);
  double now = 0, done = 0, next = failure(random);
  while (done < useful) {
    const double part = std::min(*model.checkpoint, useful - done);
    double end = now + part + model.write;
    while (next < end) {
      now = next;
      next = now + failure(random);
      const double back = now + model.restart;
      end = back + part + model.write;
    }
    now = end;
    done += part;
  }
  return now;
}

}  // namespace

TEST_CASE("the best interval is Daly's", "[costs]") {
  // d = 2 s, M = 100 s: sqrt(2 d M) = 20, d / 2M = 0.01, so 20 (1 + 0.1 / 3 + 0.01 / 9) - 2 = 18.68888...
  CHECK(optimal_interval(100, 2) == Approx(20 * (1 + 0.1 / 3 + 0.01 / 9) - 2).epsilon(1e-14));
  // Young's for checkpoints that cost little; what takes longer than 2 M has an interval of M.
  CHECK(optimal_interval(1e6, 1e-3) == Approx(std::sqrt(2e3)).epsilon(1e-4));
  CHECK(optimal_interval(100, 200) == 100);
  CHECK(optimal_interval(100, 0) == 0);
}

TEST_CASE("the best interval is close to the shortest of all", "[costs]") {
  for (const double write : {0.1, 1.0, 10.0, 60.0}) {
    const double best = expected_time({.mtbf = 100, .write = write}, 1e5);
    double shortest = 1e300;
    for (double t = 0.5; t < 500; t *= 1.001)
      shortest = std::min(shortest, expected_time({.mtbf = 100, .write = write, .checkpoint = t}, 1e5));
    CAPTURE(write);
    CHECK(best <= shortest * 1.002);  // Daly's figure 6: his formula is that close up to d = M
  }
}

TEST_CASE("expected time by hand", "[costs]") {
  // M = 10 s, R = 0, d = 0, t = 10 s: 10 (e - 1) for every 10 s.
  CHECK(expected_time({.mtbf = 10, .checkpoint = 10.0}, 100) == Approx(100 * (std::exp(1.0) - 1)).epsilon(1e-14));
  // Failures that never come: only the checkpoints are left, 10 of 1 s.
  CHECK(expected_time({.mtbf = 1e15, .write = 1, .checkpoint = 10.0}, 100) == Approx(110).epsilon(1e-12));
  // An interval longer than all of training is training once: with 5 s, 10 (e^0.5 - 1).
  CHECK(expected_time({.mtbf = 10, .checkpoint = 1e9}, 5) == Approx(10 * (std::exp(0.5) - 1)).epsilon(1e-14));
  // Half of 10 s between whose beginning and end there is no checkpoint takes half of what they take.
  CHECK(expected_time({.mtbf = 10, .checkpoint = 1e9}, 5, 10) == Approx(5 * (std::exp(1.0) - 1)).epsilon(1e-14));
  // Checkpoints for nothing, all the time: only restarts are left, of which one comes every 10 s: e^(R/M).
  CHECK(expected_time({.mtbf = 10, .restart = 1}, 100) == Approx(100 * std::exp(0.1)).epsilon(1e-14));
  CHECK(expected_time({.mtbf = 1, .checkpoint = 1e4}, 1e5) == std::numeric_limits<double>::infinity());
  CHECK(expected_time({.mtbf = 1}, 0) == 0);
}

TEST_CASE("expected time is the mean of simulated failures", "[costs]") {
  std::mt19937_64 random(7);
  const FailureModel model{.mtbf = 50, .write = 2, .restart = 3, .checkpoint = 12.5};
  constexpr int kRuns = 4000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kRuns; ++i) {
    const double time = train(model, 100, random);
    sum += time;
    squares += time * time;
  }
  const double mean = sum / kRuns, error = std::sqrt((squares / kRuns - mean * mean) / kRuns);
  CHECK(expected_time(model, 100) == Approx(mean).margin(4 * error));  // once in 16,000 seeds beyond
}

TEST_CASE("rent counts whole nodes, or devices", "[costs]") {
  const Machines machines{.devices = 12, .nodes = 2};
  // 2 nodes for 90 minutes at 20 $; 12 devices at 2.50 EUR.
  CHECK(rent(*read("price: {node_hour: 20 $}").price, machines, 5400) == Approx(60).epsilon(1e-14));
  const Price price = *read("price: {device_hour: 2.50 EUR}").price;
  CHECK(rent(price, machines, 5400) == Approx(45).epsilon(1e-14));
  CHECK(price.currency == "EUR");
  CHECK(read("price: {node_hour: 20$}").price->currency == "$");
  CHECK(read("price: {node_hour: 20 \u20ac}").price->currency == "\u20ac");
}

TEST_CASE("energy is of idling and of computing", "[costs]") {
  const PowerSetting power =
      *read("power: {device: {idle: 100 W, busy: 500 W}, node: 1 kW, overhead: 1.5, intensity: 360 g/kWh}").power;
  // For 10 s, a quarter of it computing: 12 * 200 W + 2 * 1000 W = 4400 W, times 1.5 and 10 s.
  CHECK(energy(power, {.devices = 12, .nodes = 2}, 10, 0.25) == Approx(66'000).epsilon(1e-14));
  // 360 g for 3.6 MJ are 1e-7 kg/J.
  CHECK(*power.intensity == Approx(1e-7).epsilon(1e-14));
}

TEST_CASE("a platform's blocks stand for the study's", "[costs]") {
  const ConfigNode platform =
      ConfigNode::load_text("{name: x, price: {node_hour: 1 $}, power: {node: 1 W}}", "study.yaml");
  const ConfigNode study = ConfigNode::load_text("price: {node_hour: 2 $}", "study.yaml");
  const RunningCosts costs = read_running_costs(study, platform);
  CHECK(costs.price->per_hour == 2);
  CHECK(costs.power->node.busy == 1);
  CHECK_FALSE(costs.failures);
  CHECK(without_running_costs(platform).flow_text() == "{name: x}");
}

TEST_CASE("a scenario's cost, energy and goodput follow from its times", "[costs]") {
  const std::string base =
      "study: priced\nplatform: dgx_a100\nmodel: mlp_mnist\nworkers: 2\ndataset: {samples: 64000, epochs: 5}\n"
      "optimizer: adam\nstrategy: ";
  const auto run = [&](const std::string& strategy, const std::string& more) {
    return testing::run_study(base + strategy + "\n" + more);
  };
  const ScenarioResult plain = run("data_parallel", "");
  CHECK_FALSE(plain.cost);
  CHECK_FALSE(plain.energy_j);
  CHECK_FALSE(plain.goodput);

  const std::string price =
      "price: {device_hour: 3600 $}\npower: {device: {idle: 1 W, busy: 3 W}, intensity: 1 kg/kWh}\n";
  const ScenarioResult priced = run("data_parallel", price);
  CHECK(priced.total_s == plain.total_s);
  CHECK(*priced.cost == Approx(2 * plain.total_s).epsilon(1e-12));  // 1 $ per second and device
  const double busy = plain.compute_s / plain.iteration_s;
  CHECK(*priced.energy_j == Approx(2 * plain.total_s * (1 + 2 * busy)).epsilon(1e-9));
  CHECK(*priced.co2_kg == Approx(*priced.energy_j / 3.6e6).epsilon(1e-12));

  // A server on a device of its own is paid, and idles.
  const ScenarioResult served = run("parameter_server", price);
  const double share = served.compute_s / served.iteration_s;
  CHECK(*served.cost == Approx(3 * served.total_s).epsilon(1e-12));
  CHECK(*served.energy_j == Approx(served.total_s * (2 * (1 + 2 * share) + 1)).epsilon(1e-9));

  // Both devices are of one node. Three fp32 values of 4 B for each parameter at 1 MB/s.
  const ScenarioResult failing =
      run("data_parallel", price + "failures: {node_mtbf: 100 s, write: 1 MB/s, restart: 1 s, checkpoint: 10 ms}\n");
  const ScenarioSetup setup =
      read_scenario(parse_study(base + "data_parallel", "study.yaml").scenarios.front(), builtin_registries());
  const double write = 12 * static_cast<double>(setup.model.parameter_count()) / 1e6;
  CHECK(checkpoint_bytes(setup) == 12 * static_cast<double>(setup.model.parameter_count()));
  const double expected = expected_time({.mtbf = 100, .write = write, .restart = 1, .checkpoint = 0.01}, plain.total_s);
  CHECK(failing.total_s == Approx(expected).epsilon(1e-12));
  CHECK(failing.epoch_s == Approx(expected / 5).epsilon(1e-9));
  CHECK(*failing.goodput == Approx(plain.total_s / expected).epsilon(1e-12));
  CHECK(*failing.cost == Approx(2 * expected).epsilon(1e-12));
  CHECK(failing.iteration_s == plain.iteration_s);

  CHECK_THROWS_WITH(run("data_parallel", "failures: {node_mtbf: 1 s, write: 1 h, checkpoint: 1 s}\n"),
                    Catch::Contains("training never ends: one of 1 node fails every 1.000 s"));
}

TEST_CASE("workers that join are paid while they do, and it is no loss", "[costs]") {
  // One device, then two of the same node, of which the second is sent parameters and Adam's state before.
  const std::string base =
      "study: joined\nplatform: dgx_a100\nmodel: vgg16\nworkers: 2\ndataset: {samples: 320}\nbatch: {per_worker: "
      "16}\noptimizer: adam\nstrategy: data_parallel\nschedule: [{epochs: 1, workers: 1}, {epochs: 1, workers: 2}]\n";
  const auto run = [&](const std::string& more) { return testing::run_study(base + more, {.details = true}); };
  const ScenarioResult priced =
      run("price: {device_hour: 3600 $}\npower: {device: {idle: 1 W, busy: 3 W}, node: 10 W}\n");
  const auto phases = nlohmann::json::parse(priced.details).at("phases");
  const double first = phases[0].at("total_s"), second = phases[1].at("total_s"), joining = phases[1].at("joining_s");
  REQUIRE(joining > 0);
  REQUIRE(second > joining);
  CHECK(priced.total_s == Approx(first + second).epsilon(1e-12));
  CHECK(*priced.cost == Approx(first + 2 * second).epsilon(1e-12));  // 1 $ per second and device
  // While parameters are sent, devices idle. The first phase's device computes all the time, one of two that are
  // booked.
  CHECK(phases[0].at("idle_share").get<double>() == Approx(0.5));
  const double busy = 1 - phases[1].at("idle_share").get<double>();
  CHECK(*priced.energy_j ==
        Approx((1 + 2 + 10) * first + (2 + 10) * second + 2 * 2 * busy * (second - joining)).epsilon(1e-9));

  // Failures that hardly ever come, and checkpoints for nothing: as without.
  const ScenarioResult failing = run("failures: {node_mtbf: 1000000 d, write: 0 s}\n");
  CHECK(failing.total_s == Approx(priced.total_s).epsilon(1e-9));
  CHECK(*failing.goodput == Approx(1).epsilon(1e-9));
  // A checkpoint at the end of each phase.
  const ScenarioResult paused = run("pauses: {checkpoint: {every: 1 epoch, rate: 1 GB/s}}\n");
  CHECK(paused.total_s > priced.total_s);
  CHECK(*paused.goodput == Approx(priced.total_s / paused.total_s).epsilon(1e-9));
}

}  // namespace epocast::running_costs_test
