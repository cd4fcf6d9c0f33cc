// Stages of a pipeline whose operators have degrees of their own: the search against trying out everything, the replay
// against the pipeline strategy and by hand.
#include <catch2/catch.hpp>

#include <random>

#include "experiments/run_study.hpp"
#include "strategies/layerwise/stage_search.hpp"
#include "strategies/layerwise/step.hpp"
#include "tests/support/conservation.hpp"
#include "tests/support/layerwise.hpp"
#include "tests/support/simulate.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::layerwise_stage_test {

namespace {

/// Calls visit(choice) for every choice of a configuration for each operator.
template <class Visit>
void for_each_choice(const CostTables& tables, Visit visit) {
  std::vector<std::size_t> choice(tables.operators.size(), 0);
  for (;;) {
    visit(choice);
    std::size_t op = 0;
    while (op < choice.size() && ++choice[op] == tables.operators[op].configurations.size()) choice[op++] = 0;
    if (op == choice.size()) return;
  }
}

/// Calls visit(first operators) for every division of the network into stages at narrow cuts.
template <class Visit>
void for_each_division(const OperatorNetwork& network, int stages, Visit visit) {
  const std::vector<std::size_t> cuts = narrow_cuts(network);
  std::vector<bool> taken(cuts.size(), false);
  std::fill(taken.begin(), taken.begin() + stages - 1, true);
  do {
    std::vector<std::size_t> first{0};
    for (std::size_t c = 0; c < cuts.size(); ++c)
      if (taken[c]) first.push_back(cuts[c]);
    visit(first);
  } while (std::prev_permutation(taken.begin(), taken.end()));
}

std::string pipeline_of(const std::string& strategy) {
  return "{study: same, platform: skylake_10gbe, workers: 4, model: vgg16, batch: {global: 16}, compute: roofline, "
         "stack: "
         "ideal, strategy: " +
         strategy + "}";
}

ScenarioResult result_of(const std::string& study) {
  const std::vector<ScenarioResult> results =
      run_study(parse_study(study, "study.yaml").scenarios, builtin_registries(), {}, 1, {});
  REQUIRE(results.size() == 1);
  REQUIRE(results.front().error.empty());
  return results.front();
}

}  // namespace

TEST_CASE("stages and degrees are those of trying out everything", "[layerwise]") {
  const int workers = 2, stages = GENERATE(1, 2, 3), micro_batches = GENERATE(1, 4);
  const std::int64_t samples = 4;
  const testing::LayerwiseSetting setting(testing::shipped_model("mlp_mnist"), testing::cluster_of(workers), workers,
                                          samples);
  const OperatorNetwork network(setting.model());
  CostSettings settings;
  settings.dimensions = {Dimension::n, Dimension::c, Dimension::k};
  settings.links.device = BytesPerSecond(1e12);
  settings.micro_batches = micro_batches;
  TileTimes times(setting.context(), network);
  const CostTables tables = cost_tables(network, times, samples, workers, 4, 0, settings);
  const StageRequest request{.stages = stages,
                             .workers = workers,
                             .micro_batches = micro_batches,
                             .samples = samples,
                             .between = BytesPerSecond(1e11)};
  double least = std::numeric_limits<double>::infinity();
  for_each_division(network, stages, [&](const std::vector<std::size_t>& first) {
    for_each_choice(tables, [&](const std::vector<std::size_t>& choice) {
      least = std::min(least, step_cost(network, tables, request, first, choice));
    });
  });
  const StagedChoice found = search_stages(network, tables, request);
  CHECK(found.first_operators.size() == static_cast<std::size_t>(stages));
  CHECK(found.cost == Approx(least).epsilon(1e-12));
  CHECK(step_cost(network, tables, request, found.first_operators, found.choice) == Approx(found.cost).epsilon(1e-12));
}

TEST_CASE("memory decides where stages begin", "[layerwise]") {
  // mlp_mnist's first operator has most parameters. With memory for what the cheapest plan needs and no more, nothing
  // changes; with none nothing fits, and the result says so.
  const testing::LayerwiseSetting setting(testing::shipped_model("mlp_mnist"), testing::cluster_of(1), 1, 4);
  const OperatorNetwork network(setting.model());
  CostSettings settings;
  settings.links.device = BytesPerSecond(1e12);
  TileTimes times(setting.context(), network);
  const CostTables tables = cost_tables(network, times, 4, 1, 4, 0, settings);
  StageRequest request{.stages = 2, .samples = 4, .between = BytesPerSecond(1e11)};
  const StagedChoice free = search_stages(network, tables, request);
  CHECK(free.fits);
  request.memory_limit = 1;
  const StagedChoice none = search_stages(network, tables, request);
  CHECK_FALSE(none.fits);
  CHECK(none.cost == Approx(free.cost));
}

TEST_CASE("a stage holds its own weights that are not trained, not those of others", "[layerwise]") {
  const Model model = parse_model(
      "model: frozen\ninput: {channels: 10, height: 1, width: 1}\nlayers:\n"
      "  - {conv: first, filters: 20, kernel: 1, bias: false, trained: false}\n  - {conv: second, filters: 30, kernel: "
      "1, bias: false}\n"
      "  - {conv: third, filters: 40, kernel: 1, bias: false, trained: false}\n",
      "m.yaml");
  const testing::LayerwiseSetting setting(std::make_shared<const Model>(model), testing::cluster_of(2), 2, 4);
  const TrainingStep step = setting.compile("{stages: [{workers: 1}, {from: third, workers: 1}]}");
  REQUIRE(step.memory.size() == 2);
  CHECK(step.memory[0].use.parameters.value == 4 * (10 * 20 + 20 * 30));
  CHECK(step.memory[1].use.parameters.value == 4 * 30 * 40);
  // The search counts them as well: here on one device, weights and the gradients of those that are trained.
  const OperatorNetwork network(setting.model());
  TileTimes times(setting.context(), network);
  CostSettings settings;
  settings.links.device = BytesPerSecond(1e9);
  const CostTables tables = cost_tables(network, times, 4, 1, 4, 0, settings);
  const auto weights = [&](std::size_t op) {
    return tables.operators[op].memory.front() - tables.operators[op].kept.front();
  };
  CHECK(weights(0) == 4 * 10 * 20);
  CHECK(weights(1) == 2 * 4 * 20 * 30);
}

TEST_CASE("one worker a stage is the pipeline strategy", "[layerwise]") {
  const std::string schedule = GENERATE("gpipe", "1f1b");
  const ScenarioResult pipeline = result_of(pipeline_of(
      "{name: pipeline, schedule: " + schedule + ", micro_batches: 8, first_layers: [conv2_1, conv3_2, conv5_1]}"));
  const ScenarioResult layerwise = result_of(pipeline_of(
      "{name: layerwise, schedule: {name: " + schedule +
      ", micro_batches: 8}, stages: [{workers: 1}, {from: conv2_1, workers: 1}, {from: conv3_2, workers: 1}, {from: "
      "conv5_1, workers: 1}], configuration: image}"));
  CHECK(layerwise.iteration_s == Approx(pipeline.iteration_s).epsilon(1e-9));
  CHECK(layerwise.compute_s == Approx(pipeline.compute_s).epsilon(1e-9));
  CHECK(layerwise.comm_bytes_per_iteration == Approx(pipeline.comm_bytes_per_iteration).epsilon(1e-9));
  // At the peak it also has what comes in and goes out between two layers: at most the largest map and its gradient,
  // 64 channels of 224 x 224 for the two images of a micro-batch.
  const double more = (layerwise.peak_memory_bytes.value() - pipeline.peak_memory_bytes.value());
  CHECK(more >= 0);
  CHECK(more <= 2 * 4 * 2 * 64 * 224 * 224);
}

TEST_CASE("a table that stages share is on both, as in the pipeline strategy", "[layerwise]") {
  const testing::LayerwiseSetting setting(
      testing::shipped_model("{name: gpt2, layers: 2, width: 64, heads: 4, sequence: 16, vocabulary: 96}"),
      testing::cluster_of(2), 2, 8);
  const TrainingStep pipeline = setting.compile("{first_layers: [lm_head], micro_batches: 4}", "pipeline");
  const TrainingStep layerwise = setting.compile(
      "{schedule: {name: 1f1b, micro_batches: 4}, stages: [{workers: 1}, {from: lm_head, workers: 1}], configuration: "
      "image}");
  REQUIRE(pipeline.memory.size() == 2);
  REQUIRE(layerwise.memory.size() == 2);
  CHECK(layerwise.memory[1].use.parameters.value == 4 * 64 * 96);  // nothing but the table
  for (std::size_t s = 0; s < 2; ++s) {
    CHECK(layerwise.memory[s].use.parameters.value == Approx(pipeline.memory[s].use.parameters.value).epsilon(1e-12));
    CHECK(layerwise.memory[s].use.gradients.value == Approx(pipeline.memory[s].use.gradients.value).epsilon(1e-12));
  }
  const auto compute = [](const TrainingStep& step) {
    double sum = 0;
    for (const Task& task : step.graph.tasks())
      if (const auto* work = std::get_if<Compute>(&task.work)) sum += work->duration.longest().value;
    return sum;
  };
  CHECK(compute(layerwise) == Approx(compute(pipeline)).epsilon(1e-9));
  const auto sent = [](const TrainingStep& step) {
    return testing::sum(testing::bytes_sent_per_iteration(step.graph, 2));
  };
  CHECK(sent(layerwise) == Approx(sent(pipeline)).epsilon(1e-9));
}

TEST_CASE("micro-batches on one stage: the same work, gradients exchanged once", "[layerwise]") {
  // With a cost per FLOP passes take as long in parts as whole; what is done once a step does not change.
  const testing::LayerwiseSetting setting(testing::shipped_model("vgg16"), testing::cluster_of(4), 4, 16);
  const auto work_of = [&](const std::string& options) {
    double compute = 0, reduced = 0;
    const TrainingStep step = setting.compile(options);
    for (const Task& task : step.graph.tasks()) {
      if (const auto* passes = std::get_if<Compute>(&task.work)) compute += passes->duration.longest().value;
      if (const auto* sum = std::get_if<Collective>(&task.work)) reduced += sum->bytes.value;
    }
    return std::pair(compute, reduced);
  };
  const auto [whole, bytes] = work_of("{configuration: image}");
  const auto [parts, bytes_of_parts] = work_of("{configuration: image, schedule: {micro_batches: 4}}");
  CHECK(parts == Approx(whole).epsilon(1e-12));
  CHECK(bytes_of_parts == bytes);
  CHECK(bytes == Approx(4 * 138357544.0).epsilon(1e-12));  // VGG-16's parameters in fp32
}

TEST_CASE("a replay in stages sends what the boxes say, whatever the configuration", "[layerwise]") {
  std::mt19937 random(31);
  const auto draw = [&](std::size_t least, std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(least, most)(random);
  };
  constexpr std::size_t kWorkers = 12;
  const testing::Star star(kWorkers, 1e9, 1e-6);
  for (const char* name :
       {"alexnet_owt", "{name: gpt2, layers: 2, width: 64, heads: 4, sequence: 16, vocabulary: 96}"}) {
    const testing::LayerwiseSetting setting(testing::shipped_model(name), star.cluster(), kWorkers, 60);
    const auto network = std::make_shared<const OperatorNetwork>(setting.model());
    for (int trial = 0; trial < 8; ++trial) {
      // Any cut, narrow or not; stages of any size.
      LayerwisePipeline pipeline{.stages = {}, .micro_batches = static_cast<int>(draw(1, 5))};
      while (60 % pipeline.micro_batches != 0) ++pipeline.micro_batches;
      pipeline.schedule = trial % 2 == 0 ? PipelineSchedule::gpipe : PipelineSchedule::one_f_one_b;
      const std::size_t stages = draw(1, 3);
      std::size_t left = kWorkers;
      for (std::size_t s = 0; s < stages; ++s) {
        const std::size_t own = s + 1 == stages ? left : draw(1, left - (stages - s - 1));
        pipeline.stages.push_back({s * network->size() / stages, own});
        left -= own;
      }
      std::vector<Configuration> configurations;
      for (std::size_t op = 0; op < network->size(); ++op)
        configurations.push_back(
            {testing::random_degrees(random, *network, op, 60 / pipeline.micro_batches,
                                     static_cast<int>(pipeline.stages[pipeline.stage_of_operator(op)].workers)),
             {}});
      const LayerwisePlan plan = make_plan(network, configurations, 60, 4, pipeline, PlaceRule::packed);
      TileTimes times(setting.context(), *network);
      const TrainingStep step = layerwise_step(setting.context(), plan, times, {});
      INFO(name << ", trial " << trial << ": " << stages << " stages, " << pipeline.micro_batches << " micro-batches");
      CHECK_NOTHROW(step.graph.validate(setting.cluster()));
      const double sent = testing::sum(testing::bytes_sent_per_iteration(step.graph, kWorkers));
      CHECK(sent == Approx(traffic(plan, GradientExchange::all_reduce).total().value).epsilon(1e-9));
      CHECK(testing::simulate(star.cluster(), step.graph).iteration > 0);
    }
  }
}

}  // namespace epocast::layerwise_stage_test
