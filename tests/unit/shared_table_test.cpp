// Tables that stages of a pipeline share: what a copy costs, by formula. The network is GPT-2 of two layers, whose
// words are looked up on the first stage and predicted with on the second; updates take 1 ps a parameter.
#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sim/executor.hpp"
#include "strategies/step/shared_table.hpp"
#include "tests/support/conservation.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/transformer.hpp"

namespace epocast::shared_table_test {

namespace {

constexpr double kValue = 4;                          // B
constexpr double kTable = 96 * 64 * kValue;           // B
constexpr double kHidden = 8.0 * 16 * 64 * kValue;    // B between layers, of the batch
const std::string kCut = "first_layers: [h.1.ln_1]";  // in the middle
const std::string kSchedule = "schedule: {micro_batches: 2, " + kCut + "}";
const std::string kSum = "all-reduce gradients of wte";

double parameters() { return kValue * static_cast<double>(testing::small_transformer(2)->parameter_count()); }

TrainingStep compile(const Cluster& cluster, int workers, const std::string& strategy, const std::string& options,
                     Optimizer optimizer = Optimizer::sgd) {
  testing::TransformerSetting setting{testing::small_transformer(2)};
  setting.optimizer = optimizer;
  return testing::compile_transformer(cluster, workers, strategy, options, setting);
}

/// Two stages of so many replicas, synchronised like that.
std::string stages(int replicas, const std::string& synchronisation) {
  return "{mesh: {pipeline: 2, data: " + std::to_string(replicas) + "}, " + kSchedule +
         ", synchronisation: " + synchronisation + "}";
}

template <class Of>
double over_stages(const TrainingStep& step, Of of) {
  double sum = 0;
  for (const DeviceMemory& memory : step.memory) sum += of(memory.use).value;
  return sum;
}

std::vector<TaskId> named(const CyclicTaskGraph& graph, const std::string& begin) {
  std::vector<TaskId> found;
  for (std::size_t t = 0; t < graph.tasks().size(); ++t)
    if (graph.tasks()[t].label.text().starts_with(begin)) found.push_back(TaskId(t));
  return found;
}

/// Whether a task of an iteration waits for another one of it.
bool waits(const CyclicTaskGraph& graph, TaskId task, TaskId before) {
  std::vector<bool> reached(graph.tasks().size(), false);
  std::vector<TaskId> open{before};
  while (!open.empty()) {
    const TaskId next = open.back();
    open.pop_back();
    for (const Edge& edge : graph.edges_with_program_order()) {
      if (edge.before != next || edge.lag > 0 || reached[CyclicTaskGraph::index(edge.after)]) continue;
      reached[CyclicTaskGraph::index(edge.after)] = true;
      open.push_back(edge.after);
    }
  }
  return reached[CyclicTaskGraph::index(task)];
}

}  // namespace

TEST_CASE("which stage has a copy of which table", "[pipeline]") {
  Model model;
  model.layers.resize(7);  // input, table, and layers tied to it, one of them by way of another
  for (const std::size_t l : {3U, 4U, 6U}) model.layers[l].tied_to = 1;
  model.layers[5].tied_to = 4;
  const std::vector<std::size_t> stage{0, 0, 1, 0, 1, 1, 2};
  const std::vector<SharedTable> tables = shared_tables(model, [&](std::size_t layer) { return stage[layer]; });
  REQUIRE(tables.size() == 1);
  CHECK(tables.front().layer == 1);
  CHECK(tables.front().readers == std::vector<std::size_t>{4, 6});
  CHECK(shared_tables(model, [](std::size_t) { return 0; }).empty());
}

TEST_CASE("a copy takes the memory and the update of any parameter", "[pipeline][sharded]") {
  const testing::Star star(4, 1e9, 1e-6);
  const double all = parameters() + kTable;
  const TrainingStep whole = compile(star.cluster(), 4, "composition", stages(2, "all_reduce"), Optimizer::adam);
  const TrainingStep shares =
      compile(star.cluster(), 4, "composition", stages(2, "{name: sharded, stage: 1}"), Optimizer::adam);
  for (const TrainingStep* step : {&whole, &shares}) {
    CHECK(over_stages(*step, [](const MemoryUse& use) { return use.parameters; }) == Approx(all).epsilon(1e-9));
    CHECK(over_stages(*step, [](const MemoryUse& use) { return use.gradients; }) == Approx(all).epsilon(1e-9));
    const double replicas = step == &whole ? 1 : 2;
    // Adam keeps two values for each.
    CHECK(over_stages(*step, [](const MemoryUse& use) { return use.optimizer_state; }) ==
          Approx(2 * all / replicas).epsilon(1e-9));
    double update = 0;
    for (const TaskId task : named(step->graph, "update stage"))
      update += std::get<Compute>(step->graph.task(task).work).duration.longest().value;
    CHECK(update == Approx(1e-12 * all / kValue / replicas).epsilon(1e-9));
  }
  // What is gathered of each stage at a time is its largest layer, a product of 64 x 256 with biases.
  const TrainingStep gathered =
      compile(star.cluster(), 4, "composition", stages(2, "{name: sharded, stage: 3, unit: 1 B, prefetch: 0}"));
  CHECK(over_stages(gathered, [](const MemoryUse& use) { return use.parameters; }) ==
        Approx(all / 2 + 2 * kValue * (64 * 256 + 256)).epsilon(1e-9));
}

TEST_CASE("a copy is summed like its stage's parameters, then with the original", "[pipeline][sharded]") {
  const int d = 4;
  const testing::Star star(2 * d, 1e9, 1e-6);
  const double all = parameters() + kTable;
  const auto sent = [&](const std::string& synchronisation) {
    const TrainingStep step = compile(star.cluster(), 2 * d, "composition", stages(d, synchronisation));
    return testing::sum(testing::bytes_sent_per_iteration(step.graph, 2 * d));
  };
  // All by rings: an all-reduce over d moves 2 (d - 1) times the vector, d pairs each move 2 tables or a share of them.
  CHECK(sent("all_reduce") == Approx(2 * (d - 1) * all + d * 2 * kTable + 2 * kHidden).epsilon(1e-9));
  CHECK(sent("{name: sharded, stage: 1}") == Approx(2 * (d - 1) * all + 2 * kTable + 2 * kHidden).epsilon(1e-9));
  // Two copies of two shards.
  CHECK(sent("{name: sharded, stage: 1, shards: 2}") ==
        Approx((2 * 2 * (2 - 1) + 2 * (2 - 1)) * all + d * 2 * kTable / 2 + 2 * kHidden).epsilon(1e-9));
}

TEST_CASE("stages sum a table's gradients after replicas have, and before updates", "[pipeline][sharded]") {
  const testing::Star star(4, 1e9, 1e-6);
  for (const std::string synchronisation : {"all_reduce", "{name: sharded, stage: 2}"}) {
    INFO(synchronisation);
    const CyclicTaskGraph graph = compile(star.cluster(), 4, "composition", stages(2, synchronisation)).graph;
    const std::vector<TaskId> sums = named(graph, kSum);
    REQUIRE(sums.size() == 1);
    const std::vector<TaskId> reductions =
        named(graph, synchronisation == "all_reduce" ? "all-reduce stage" : "reduce-scatter stage");
    REQUIRE(reductions.size() >= 2);  // one of each stage at least
    for (const std::string stage : {"stage 0", "stage 1"})
      CHECK(std::ranges::any_of(reductions, [&](TaskId task) {
        return graph.task(task).label.text().find(stage) != std::string::npos && waits(graph, sums.front(), task);
      }));
    const std::vector<TaskId> updates = named(graph, "update stage");
    REQUIRE(updates.size() == 2);
    for (const TaskId update : updates) CHECK(waits(graph, update, sums.front()));
  }
}

TEST_CASE("unequal replicas of stages sum all copies at once", "[pipeline]") {
  const testing::Star star(3, 1e9, 1e-6);
  const std::string options = "{replicas: [2, 1], micro_batches: 4, " + kCut + "}";
  const TrainingStep step = compile(star.cluster(), 3, "pipeline", options);
  CHECK_NOTHROW(step.graph.validate(star.cluster()));
  CHECK(over_stages(step, [](const MemoryUse& use) { return use.parameters; }) ==
        Approx(parameters() + kTable).epsilon(1e-9));
  const std::vector<TaskId> sums = named(step.graph, kSum);
  REQUIRE(sums.size() == 1);
  CHECK(step.graph.ranks_of(sums.front()) == 3);
  CHECK(step.graph.width_of(sums.front()) == 1);
  CHECK(std::get<Collective>(step.graph.task(sums.front()).work).bytes.value == kTable);
  const std::vector<TaskId> updates = named(step.graph, "update stage");
  REQUIRE(updates.size() == 3);
  for (const TaskId update : updates) CHECK(waits(step.graph, update, sums.front()));
  for (const TaskId reduction : named(step.graph, "all-reduce stage 0"))
    CHECK(waits(step.graph, sums.front(), reduction));
  CHECK(testing::simulate(star.cluster(), step.graph).iteration > 0);
}

TEST_CASE("three stages with a table sum its gradients together", "[pipeline]") {
  const Model model = parse_model(
      "model: shared\ninput: {channels: 1, width: 4}\nlayers:\n"
      "  - {embedding: words, vocabulary: 32, units: 8}\n"
      "  - {linear: first, units: 32, bias: false, tied: words}\n"
      "  - {linear: back, units: 8, bias: false}\n"
      "  - {linear: second, units: 32, bias: false, tied: words}\n",
      "shared.yaml");
  const testing::Star star(6, 1e9, 1e-6);
  const testing::TransformerSetting setting{std::make_shared<const Model>(model)};
  const TrainingStep step = testing::compile_transformer(
      star.cluster(), 6, "composition",
      "{mesh: {pipeline: 3, data: 2}, schedule: {micro_batches: 2, first_layers: [first, second]}}", setting);
  CHECK_NOTHROW(step.graph.validate(star.cluster()));
  const std::vector<TaskId> sums = named(step.graph, "all-reduce gradients of words");
  REQUIRE(sums.size() == 1);
  CHECK(step.graph.task(sums.front()).axis == Axis{.stride = 2, .extent = 3});
  CHECK(step.memory[1].use.parameters.value == kValue * 2 * 32 * 8);  // first, with its copy, and back
  CHECK(step.memory[2].use.parameters.value == kValue * 32 * 8);
}

TEST_CASE("whatever replicas do, each step sums the table's gradients once", "[pipeline]") {
  const testing::Star star(4, 1e9, 1e-6);
  for (const std::string synchronisation :
       {"{name: all_reduce, compression: int8}", "{name: all_reduce, granularity: tensor}", "{name: sharded, stage: 3}",
        "{name: sharded, stage: 2, compression: int8}", "{name: parameter_server, servers: 2, location: colocated}",
        "{name: parameter_server, mode: async, location: colocated, compression: int8}", "{name: average, period: 3}",
        "{name: gossip, period: 2}", "{name: downpour, period: 2, location: colocated}",
        "{name: easgd, period: 2, location: colocated}", "{name: aeasgd, location: colocated}",
        "{name: partial_gradients, gradients: reduce_scatter}",
        "{name: partial_gradients, gradients: all_to_all, overlap: none}", "{name: two_chunks, k: 2}"}) {
    INFO(synchronisation);
    const TrainingStep step = compile(star.cluster(), 4, "composition", stages(2, synchronisation));
    CHECK_NOTHROW(step.graph.validate(star.cluster()));
    CHECK(static_cast<std::int64_t>(named(step.graph, kSum).size()) == step.steps);
    CHECK(testing::simulate(star.cluster(), step.graph, {.iterations = 3}).iteration > 0);
  }
  for (const std::string schedule : {"pipedream", "{name: 2bw, micro_batches: 2}", "threaded", "zb_h1"}) {
    INFO(schedule);
    const TrainingStep step =
        compile(star.cluster(), 4, "composition", "{mesh: {pipeline: 2, data: 2}, schedule: " + schedule + "}");
    CHECK_NOTHROW(step.graph.validate(star.cluster()));
    CHECK(named(step.graph, kSum).size() == 1);
  }
}

TEST_CASE("servers get gradients that stages have summed", "[pipeline][parameter_server]") {
  const testing::Star star(4, 1e9, 1e-6);
  const CyclicTaskGraph graph =
      compile(star.cluster(), 4, "composition", stages(2, "{name: parameter_server, servers: 2, location: colocated}"))
          .graph;
  const std::vector<TaskId> sums = named(graph, kSum);
  REQUIRE(sums.size() == 1);
  int pushes = 0;
  for (const std::string piece : {"push stage 0 wte", "push stage 1 lm_head"})
    for (const TaskId push : named(graph, piece)) {
      CHECK(waits(graph, push, sums.front()));
      ++pushes;
    }
  CHECK(pushes == 2);
}

TEST_CASE("a network that is not trained is computed once, and gathers no gradients", "[pipeline][recompute]") {
  const testing::Star star(4, 1e9, 1e-6);
  testing::TransformerSetting setting{std::make_shared<const Model>(untrained(*testing::small_transformer(2)))};
  setting.recompute = true;
  const CyclicTaskGraph single =
      testing::compile_transformer(star.cluster(), 4, "composition", "{mesh: {data: 4}}", setting).graph;
  CHECK(named(single, "recompute").empty());
  const CyclicTaskGraph teams =
      testing::compile_transformer(star.cluster(), 4, "composition",
                                   "{mesh: {pipeline: 2, tensor: 2}, " + kSchedule + "}", setting)
          .graph;
  for (const TaskId backward : named(teams, "backward")) {
    const auto* compute = std::get_if<Compute>(&teams.task(backward).work);
    if (compute != nullptr) CHECK_FALSE(compute->duration.any());
  }
  CHECK(named(teams, "all-gather stage 1 received").size() == 2);  // of each micro-batch
  CHECK(named(teams, "all-gather stage 0 received").empty());
  CHECK(named(teams, kSum).empty());
}

}  // namespace epocast::shared_table_test
