// Local SGD on two workers and two layers, worked out by hand. All times are in ms; a local step takes 103.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/hand_timeline.hpp"

namespace epocast::local_sgd_test {

using testing::check;

namespace {

TrainingStep compile(const Cluster& cluster, int period) {
  const ConfigNode options = ConfigNode::load_text("{period: " + std::to_string(period) + "}", "options");
  return builtin_strategies()
      .make("local_sgd", options, options)
      ->compile({cluster, {0, 1}, 2, testing::two_layers, {}});
}

}  // namespace

TEST_CASE("local SGD: two steps alone, one in detail, then 30 MB of parameters are averaged", "[local_sgd]") {
  check({"local_sgd",
         "{period: 3}",
         341,
         {{"local steps", 0, 206},
          {"forward A", 206, 216},
          {"forward B", 216, 236},
          {"backward B", 236, 266},
          {"backward A", 266, 306},
          {"update B", 306, 308},
          {"update A", 308, 309},
          {"all-reduce B..A", 309, 341}},
         309});
}

TEST_CASE("local SGD with overlap: averaging hides behind the next round", "[local_sgd]") {
  check({"local_sgd",
         "{period: 3, overlap: true}",
         309,
         {{"local steps", 0, 206},
          {"forward A", 206, 216},
          {"forward B", 216, 236},
          {"backward B", 236, 266},
          {"backward A", 266, 306},
          {"update B", 306, 308},
          {"update A", 308, 309},
          {"all-reduce B..A", 309, 341}},
         309});
}

TEST_CASE("period 1 moves the bytes of synchronous data parallelism", "[local_sgd]") {
  check({"local_sgd",
         "{period: 1}",
         135,
         {{"forward A", 0, 10},
          {"forward B", 10, 30},
          {"backward B", 30, 60},
          {"backward A", 60, 100},
          {"update B", 100, 102},
          {"update A", 102, 103},
          {"all-reduce B..A", 103, 135}}});
}

TEST_CASE("local steps that are written as one vary as their layers would by themselves", "[local_sgd][noise]") {
  const testing::Star star(2, 1e9, 1e-3);
  const TrainingStep step = compile(star.cluster(), 3);
  const auto steps = std::ranges::find(step.graph.tasks(), "local steps", [](const Task& t) { return t.label.text(); });
  REQUIRE(steps != step.graph.tasks().end());
  // Tasks of 10, 20, 30, 40, 2 and 1 ms, 103 in all: as many as 103^2 / 3005 alike, twice.
  CHECK(std::get<Compute>(steps->work).parts == Approx(2 * 103.0 * 103 / 3005).epsilon(1e-12));
}

TEST_CASE("under noise, steps of a longer period take no longer", "[local_sgd][noise]") {
  // Two workers wait for each other once a period of p steps, each of which varies by s = 0.5 sqrt(3005) = 27.4 ms; the
  // larger of two sums lies about s sqrt(p) / sqrt(pi) above their mean. Messages take no time to speak of.
  const testing::Star star(2, 1e15, 1e-9);
  const NoiseKind kind = GENERATE(NoiseKind::log_normal, NoiseKind::gamma);
  std::vector<testing::Run> runs;
  const std::vector<int> periods{1, 2, 8, 100, 1'000'000};
  for (const int period : periods)
    runs.push_back({compile(star.cluster(), period).graph,
                    {.iterations = 1'000'000, .noise = {.compute_cv = 0.5, .kind = kind}, .sample_iterations = 2000}});
  const std::vector<ExecutionResult> results = testing::simulate(star.cluster(), runs);
  for (std::size_t i = 0; i < periods.size(); ++i) {
    INFO("period " << periods[i]);
    const double waiting = 0.5 * std::sqrt(3005 / (3.14159265 * periods[i]));  // ms a step
    // 2000 rounds: the mean's standard error is 27.4 sqrt(p / 2000) / p ms, 0.6 at most. Distributions are skewed.
    CHECK(results[i].iteration / periods[i] / testing::kMs ==
          Approx(103 + waiting).margin(2.5 / std::sqrt(periods[i])));
    if (i > 0) CHECK(results[i].iteration / periods[i] < results[i - 1].iteration / periods[i - 1]);
  }
}

TEST_CASE("noise per step is drawn for each local step", "[local_sgd][noise]") {
  // As above, but steps vary by 0.5 * 103 ms, all of their layers together.
  const testing::Star star(2, 1e15, 1e-9);
  for (const int period : {1, 2, 100}) {
    const ExecutionResult result = testing::simulate(
        star.cluster(), compile(star.cluster(), period).graph,
        {.iterations = 1'000'000, .noise = {.compute_cv = 0.5, .scope = NoiseScope::step}, .sample_iterations = 2000});
    const double waiting = 0.5 * 103 / std::sqrt(3.14159265 * period);  // ms a step
    CHECK(result.iteration / period / testing::kMs == Approx(103 + waiting).margin(5 / std::sqrt(period)));
  }
}

}  // namespace epocast::local_sgd_test
