// How often training stands still, and for how long.
#include <catch2/catch.hpp>

#include <string>

#include "experiments/costs/pauses.hpp"
#include "experiments/scenario.hpp"
#include "experiments/study.hpp"
#include "tests/support/error_message.hpp"
#include "tests/support/run_study.hpp"

namespace epocast::pauses_test {

namespace {

Pauses pauses(const std::string& text) { return read_pauses(ConfigNode::load_text(text, "pauses")); }

ScenarioResult run(const std::string& lines) {
  const std::string base =
      "study: pauses\nplatform: skylake_10gbe\nworkers: 2\nmodel: mlp_mnist\ndataset: {samples: 6400, epochs: 2}\n"
      "batch: {per_worker: 32}\nstrategy: data_parallel\noptimizer: momentum\n";
  return testing::run_study(base + lines);
}

}  // namespace

TEST_CASE("pauses: after times, steps or epochs", "[pauses]") {
  using enum PauseInterval::Of;
  CHECK(PauseInterval{seconds, 10}.times_in(95, 1000, 3) == 9);
  CHECK(PauseInterval{steps, 100}.times_in(95, 1000, 3) == 10);
  CHECK(PauseInterval{epochs, 2}.times_in(95, 1000, 3) == 1);
  CHECK(PauseInterval{steps, 0.1}.times_in(95, 3, 3) == 30);  // not 29, whatever 3 / 0.1 is
  const Pauses read =
      pauses("{evaluation: {every: 2 epochs, samples: 10}, checkpoint: {every: 500 steps, rate: 1 GB/s}}");
  CHECK(read.evaluation->every.of == epochs);
  CHECK(read.evaluation->every.count == 2);
  CHECK(read.checkpoint->every.of == steps);
  CHECK(read.checkpoint->every.count == 500);
  CHECK(pauses("{checkpoint: {every: 5 min, rate: 1 GB/s}}").checkpoint->every.count == 300);
}

TEST_CASE("pauses: storage or the nodes' links limit a checkpoint; in the background only copies stop training",
          "[pauses]") {
  // 100 GB at 10 GB/s take 10 s; four nodes with 1 GB/s each need 25 s.
  CHECK(CheckpointPause{.rate = 10e9}.seconds(100e9, 4, 8, 60) == Approx(10));
  CheckpointPause slow{.rate = 10e9, .node_rate = 1e9};
  CHECK(slow.seconds(100e9, 4, 8, 60) == Approx(25));
  // Eight devices copy 12.5 GB each at 25 GB/s; every 20 s is too often by 5 s.
  slow.background = true;
  slow.copy_rate = 25e9;
  CHECK(slow.seconds(100e9, 4, 8, 60) == Approx(0.5));
  CHECK(slow.seconds(100e9, 4, 8, 20) == Approx(5.5));
}

TEST_CASE("pauses lengthen epochs by what they take", "[pauses]") {
  const ScenarioResult without = run(""), with = run("pauses: {checkpoint: {every: 20 steps, rate: 1 MB/s}}");
  // 200 steps: ten checkpoints of parameters and momentum, 8 B for each of 784 x 512 + 512 + 512 x 512 + 512 + 512 x 10
  // + 10.
  const double pause = 10 * 8 * 669706 / 1e6;
  CHECK(with.total_s - without.total_s == Approx(pause));
  CHECK(with.epoch_s == Approx(with.total_s / 2));
  CHECK(with.iteration_s == without.iteration_s);
  CHECK(*with.goodput == Approx(without.total_s / with.total_s));
  const ScenarioResult twice = run("pauses: {checkpoint: {every: 10 steps, rate: 1 MB/s}}");
  CHECK(twice.total_s - without.total_s == Approx(2 * pause));

  // A pass over 640 samples is ten forward passes of the batch, each shorter than a step.
  const ScenarioResult evaluated = run("pauses: {evaluation: {samples: 640}}");
  const double pass = (evaluated.total_s - without.total_s) / 2 / 10;
  CHECK(pass > 0);
  CHECK(pass < 0.5 * without.iteration_s);
  const ScenarioResult longer = run("pauses: {evaluation: {samples: 1270}}");  // twenty passes, the last one not full
  CHECK((longer.total_s - without.total_s) / 2 == Approx(20 * pass));
}

TEST_CASE("pauses and failures do not depend on how a run is cut into phases", "[pauses]") {
  const std::string base =
      "study: cut\nplatform: skylake_10gbe\nworkers: 2\nmodel: mlp_mnist\ndataset: {samples: 6400}\n"
      "batch: {per_worker: 32}\nstrategy: data_parallel\noptimizer: momentum\n";
  const auto in_phases = [&](const std::string& lines, const std::string& schedule) {
    return testing::run_study(base + "schedule: " + schedule + "\n" + lines).total_s;
  };
  const std::string one = "[{epochs: 6}]", three = "[{epochs: 1}, {epochs: 4}, {epochs: 1}]";
  const double without = in_phases("", one);
  REQUIRE(in_phases("", three) == Approx(without).epsilon(1e-12));
  // 600 steps: four checkpoints, each of 8 B for 669,706 parameters. No phase but the second has 150.
  const double pause = 8 * 669706 / 1e6;
  for (const std::string& schedule : {one, three})
    CHECK(in_phases("pauses: {checkpoint: {every: 150 steps, rate: 1 MB/s}}\n", schedule) - without ==
          Approx(4 * pause));
  // In the background, each is begun when the one before is written: then all of training is 4 of them and copies.
  for (const std::string& schedule : {one, three})
    CHECK(in_phases("pauses: {checkpoint: {every: 150 steps, rate: 1 kB/s, background: true, copy_rate: 1 TB/s}}\n",
                    schedule) == Approx(4 * 1000 * pause));
  for (const std::string lines : {"pauses: {evaluation: {every: 3 epochs, samples: 640}}\n",
                                  "failures: {node_mtbf: 100 s, write: 1 s, restart: 1 s, checkpoint: 1 d}\n"}) {
    CAPTURE(lines);
    const double whole = in_phases(lines, one);
    CHECK(whole > without * (1 + 1e-6));
    CHECK(in_phases(lines, three) == Approx(whole).epsilon(1e-9));
  }
}

TEST_CASE("pauses that make no sense are refused", "[pauses]") {
  using testing::message;
  CHECK_THAT(message([] { pauses("{}"); }), Catch::Contains("write `pauses:"));
  CHECK_THAT(message([] { pauses("{evaluation: {every: 0 steps, samples: 3}}"); }),
             Catch::Contains("more than nothing"));
  CHECK_THAT(message([] { pauses("{evaluation: {every: 5, samples: 3}}"); }), Catch::Contains("missing unit"));
  CHECK_THAT(message([] { pauses("{checkpoint: {rate: 1 GB/s, copy_rate: 1 GB/s}}"); }),
             Catch::Contains("background: true"));
}

TEST_CASE("pauses: experts in stages are evaluated by forward passes, in which nothing is updated", "[pauses]") {
  const std::string study =
      "study: experts\nplatform: dgx1_v100\nworkers: 4\nstack: ideal\noptimizer: adam\n"
      "model: {name: mixtral, layers: 4, heads: 4, sequence: 16, vocabulary: 96, hidden: 64, inner: 96, kv_heads: 2, "
      "experts: 8, chosen: 2}\n"
      "dataset: {samples: 6400}\nbatch: {per_worker: 16}\n"
      "strategy: {mesh: {pipeline: 2, expert: 2}, schedule: {name: gpipe, micro_batches: 4}, body: experts}\n";
  const ScenarioResult training = testing::run_study(study);
  // As many samples as training has: forward passes alone take less than training does, and more than a fifth of it.
  const ScenarioResult evaluated =
      testing::run_study(study + "pauses: {evaluation: {every: 1 epoch, samples: 6400}}\n");
  CHECK(evaluated.iteration_s == training.iteration_s);
  CHECK(evaluated.total_s < 2 * training.total_s);
  CHECK(evaluated.total_s > 1.2 * training.total_s);
}

}  // namespace epocast::pauses_test
