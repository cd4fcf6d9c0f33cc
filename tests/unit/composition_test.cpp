// Training steps put together from parts: bytes by formula, and the presets that they must agree with.
#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <vector>

#include "sim/executor.hpp"
#include "tests/support/conservation.hpp"
#include "tests/support/error_message.hpp"
#include "tests/support/in_child.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/transformer.hpp"

namespace epocast::composition_test {

using testing::compile_transformer;
using testing::small_transformer;

namespace {

constexpr double kBatch = 8, kWidth = 64, kSequence = 16, kWords = 96, kValue = 4;
constexpr double kHidden = kBatch * kSequence * kWidth * kValue;  // B of a tensor between layers

/// B that all devices send in one iteration; every collective by rings.
double sent(const TrainingStep& step, std::size_t devices) {
  return testing::sum(testing::bytes_sent_per_iteration(step.graph, devices));
}

double sent(int workers, const std::string& options, const testing::TransformerSetting& setting) {
  const testing::Star star(workers, 1e9, 1e-6);
  return sent(compile_transformer(star.cluster(), workers, "composition", options, setting),
              static_cast<std::size_t>(workers));
}

double parameters(const Model& model) { return kValue * static_cast<double>(model.parameter_count()); }

ExecutionResult run(const std::string& strategy, const std::string& options, int workers,
                    const testing::TransformerSetting& setting) {
  const testing::Star star(workers, 1e9, 1e-6);
  return testing::simulate(star.cluster(),
                           compile_transformer(star.cluster(), workers, strategy, options, setting).graph,
                           {.iterations = 30});
}

}  // namespace

TEST_CASE("tensor parallelism: two all-reduces a layer and direction", "[composition][tensor]") {
  for (const int layers : {1, 3})
    for (const int t : {2, 4}) {
      INFO(layers << " layers over " << t << " devices");
      const double bytes = sent(t, "{mesh: {tensor: " + std::to_string(t) + "}}", {small_transformer(layers)});
      // Behind each layer's two products by rows, and backward before its two by columns; the table that is looked up,
      // and the one that words are predicted with; three numbers a position for the softmax. A ring of t ranks sends
      // 2 (t - 1) times the vector in all.
      const double vectors = (4 * layers + 2) * kHidden + 3 * kBatch * kSequence * kValue;
      CHECK(bytes == Approx(2 * (t - 1) * vectors).epsilon(1e-9));
    }
}

TEST_CASE("sequence parallelism: as many bytes in twice as many operations, or two more gathers a layer",
          "[composition][tensor]") {
  const int layers = 3, t = 4;
  const auto model = small_transformer(layers);
  const auto with = [&](const std::string& options) {
    return sent(t, "{mesh: {tensor: 4}, body: {name: tensor, sequence_parallel: true" + options + "}}", {model});
  };
  // Each all-reduce is a reduce-scatter and an all-gather, (t - 1) times the vector each. Once more: the positions are
  // gathered again for the backward passes of the products by columns.
  const double loss = 2 * (t - 1) * 3 * kBatch * kSequence * kValue;
  const double kept = (t - 1) * 2 * (4 * layers + 2) * kHidden + loss;
  CHECK(with(", gather_again: false") == Approx(kept).epsilon(1e-9));
  CHECK(with("") == Approx(kept + (t - 1) * (2 * layers + 1) * kHidden).epsilon(1e-9));
}

TEST_CASE("tensor parallelism divides parameters, work and kept activations", "[composition][tensor]") {
  const auto model = small_transformer(2);
  const testing::Star star(4, 1e9, 1e-6);
  const auto step = [&](int workers, const std::string& options) {
    return compile_transformer(star.cluster(), workers, "composition", options, {model});
  };
  const TrainingStep whole = step(1, "{mesh: {data: 1}}"), part = step(4, "{mesh: {tensor: 4}}");
  // Norms, the table of positions and the biases behind rows are everywhere.
  const double rows_biases = 2 * 2 * kWidth, norms = 2 * (2 * 2 + 1) * kWidth;
  const double positions = kSequence * kWidth, shared = kValue * (rows_biases + norms + positions);
  CHECK(part.memory.front().use.parameters.value ==
        Approx((whole.memory.front().use.parameters.value - shared) / 4 + shared).epsilon(1e-9));
  CHECK(part.memory.front().use.activations.value < whole.memory.front().use.activations.value);
  double work = 0, alone = 0;
  for (const Task& task : part.graph.tasks())
    if (const auto* compute = std::get_if<Compute>(&task.work)) work += compute->duration.longest().value;
  for (const Task& task : whole.graph.tasks())
    if (const auto* compute = std::get_if<Compute>(&task.work)) alone += compute->duration.longest().value;
  CHECK(work > alone / 4);
  CHECK(work < alone / 2);
}

TEST_CASE("sharding with accumulation: bytes by formula", "[composition][sharded]") {
  const int d = 4, m = 2;
  const auto model = small_transformer(2);
  const double n = (d - 1) * parameters(*model);  // of an all-gather or reduce-scatter, on all devices together
  const auto bytes = [&](const std::string& options) {
    return sent(d,
                "{mesh: {data: 4}, schedule: {micro_batches: 2}, synchronisation: {name: sharded, unit: 10 kB, " +
                    options + "}}",
                {model});
  };
  CHECK(bytes("stage: 1") == Approx(2 * n).epsilon(1e-9));
  CHECK(bytes("stage: 2") == Approx((m + 1) * n).epsilon(1e-9));
  CHECK(bytes("stage: 3") == Approx(3 * m * n).epsilon(1e-9));
  CHECK(bytes("stage: 3, reshard: false") == Approx((m + 1) * n).epsilon(1e-9));
}

TEST_CASE("hybrid shard: bytes and memory by formula", "[composition][sharded]") {
  // c = 2 copies of k = 2 shards. On all devices together an all-gather or reduce-scatter of P bytes within each copy
  // moves c (k - 1) P, the all-reduce of k shares of P / k over the copies 2 (c - 1) P, once a step.
  const int d = 4, k = 2, c = 2, m = 2;
  const auto model = small_transformer(2);
  const double p = parameters(*model), within = c * (k - 1) * p, between = 2 * (c - 1) * p;
  const auto options = [](const std::string& more) {
    return "{mesh: {data: 4}, schedule: {micro_batches: 2}, synchronisation: {name: sharded, unit: 10 kB, " + more +
           "}}";
  };
  CHECK(sent(d, options("stage: 1, shards: 2"), {model}) == Approx(2 * within + between).epsilon(1e-9));
  CHECK(sent(d, options("stage: 2, shards: 2"), {model}) == Approx((m + 1) * within + between).epsilon(1e-9));
  CHECK(sent(d, options("stage: 3, shards: 2"), {model}) == Approx(3 * m * within + between).epsilon(1e-9));
  // All replicas as shards of one copy are no hybrid.
  CHECK(sent(d, options("stage: 3, shards: 4"), {model}) ==
        Approx(sent(d, options("stage: 3, shards: all"), {model})).epsilon(1e-9));
  const testing::Star star(4, 1e9, 1e-6);
  const auto state = [&](const std::string& more) {
    return compile_transformer(star.cluster(), 4, "composition", options(more), {model})
        .memory.front()
        .use.optimizer_state.value;
  };
  CHECK(state("stage: 1, shards: 2") == Approx(2 * state("stage: 1")).epsilon(1e-9));
}

TEST_CASE("stages of tensor-parallel teams: each device sends a part, and the receivers gather it",
          "[composition][tensor]") {
  const int t = 2;
  const auto model = small_transformer(2);
  const std::string mesh = "{mesh: {pipeline: 2, tensor: 2}, schedule: {micro_batches: 2, first_layers: [h.1.ln_1]";
  const double inside = sent(2, "{mesh: {tensor: 2}}", {model});
  // The table of words is on both stages: its gradients are added up, each device's half with its counterpart's.
  const double tables = 2 * kWords * kWidth * kValue;
  const double whole = sent(4, mesh + ", scatter_messages: false}}", {model});
  CHECK(whole == Approx(inside + tables + 2 * t * kHidden).epsilon(1e-9));
  // A half from each device, and as much again when the other half is gathered, on either device.
  const double parts = sent(4, mesh + "}}", {model});
  CHECK(parts == Approx(inside + tables + 2 * (1 + (t - 1)) * kHidden).epsilon(1e-9));
}

TEST_CASE("compositions of one or two axes are the strategies of that name", "[composition]") {
  const testing::TransformerSetting setting{small_transformer(4), 8};
  const auto same = [&](const std::string& mine, const std::string& strategy, const std::string& options, int workers) {
    INFO(mine << " as " << strategy << " " << options);
    const ExecutionResult a = run("composition", mine, workers, setting), b = run(strategy, options, workers, setting);
    CHECK(a.iteration == Approx(b.iteration).epsilon(1e-9));
    CHECK(a.metrics.bytes == Approx(b.metrics.bytes).epsilon(1e-9));
    CHECK(a.metrics.exposed_communication == Approx(b.metrics.exposed_communication).margin(1e-12));
  };
  same("{mesh: {data: 4}, synchronisation: {name: all_reduce, granularity: layer}}", "data_parallel",
       "{granularity: layer}", 4);
  same("{mesh: {data: 4}, schedule: {micro_batches: 2}}", "data_parallel", "{accumulation: 2}", 4);
  same("{mesh: {data: 4}, synchronisation: {name: sharded, stage: 3, unit: 20 kB}}", "fsdp", "{unit: 20 kB}", 4);
  same("{mesh: {data: 4}, schedule: {micro_batches: 2}, synchronisation: {name: sharded, stage: 2, unit: 20 kB}}",
       "zero2", "{unit: 20 kB, accumulation: 2}", 4);
  same("{mesh: {data: 4}, synchronisation: {name: average, period: 3}}", "local_sgd", "{period: 3}", 4);
  same("{mesh: {data: 4}, synchronisation: {name: gossip, topology: exponential}}", "gossip", "{topology: exponential}",
       4);
  same("{mesh: {data: 4}, synchronisation: {name: parameter_server, servers: all}}", "parameter_server",
       "{servers: all}", 4);
  same("{mesh: {data: 4}, synchronisation: {name: easgd, servers: all, period: 2}}", "easgd",
       "{servers: all, period: 2}", 4);
  same("{mesh: {pipeline: 2, data: 2}, schedule: {name: gpipe, split: time}}", "pipeline",
       "{stages: 2, schedule: gpipe}", 4);
  same("{mesh: {data: 2, pipeline: 2}, schedule: {name: gpipe, split: time}}", "gpipe",
       "{stages: 2, placement: replica_major}", 4);
  same(
      "{mesh: {pipeline: 2, data: 2, tensor: 2}, schedule: {name: 1f1b, micro_batches: 4}, "
      "synchronisation: {name: sharded, stage: 1, unit: 1 TB, overlap: false, overlap_gathers: false}}",
      "megatron", "{pipeline: 2, tensor: 2, micro_batches: 4, distributed_optimizer: true}", 8);
  same(
      "{mesh: {pipeline: 2, data: 2, tensor: 2}, schedule: {name: 1f1b, micro_batches: 4}, "
      "synchronisation: {name: all_reduce, granularity: model, overlap: false}}",
      "megatron", "{pipeline: 2, tensor: 2, micro_batches: 4}", 8);
  same(
      "{mesh: {data: 4, tensor: 2}, synchronisation: {name: sharded, stage: 1, unit: 80 MB}, "
      "schedule: {name: 1f1b, micro_batches: 2}}",
      "megatron",
      "{tensor: 2, micro_batches: 2, distributed_optimizer: true, overlap_grad_reduce: true, "
      "overlap_param_gather: true}",
      8);
}

// Keys and values of a layer of attention that a stage begins with, forward or backward, are there when its input has
// come from the stage before or behind it.
TEST_CASE("ring attention at the beginning of a pass waits for the pass's input", "[composition][context]") {
  const testing::Star star(4, 1e9, 1e-6);
  for (const std::string first : {"h.1.attn", "h.1.attn.c_proj"}) {
    INFO("stage 1 begins with " << first);
    const CyclicTaskGraph graph =
        compile_transformer(
            star.cluster(), 4, "composition",
            "{mesh: {pipeline: 2, context: 2}, schedule: {name: 1f1b, micro_batches: 2, first_layers: [" + first +
                "]}}",
            {small_transformer(2)})
            .graph;
    std::vector<int> before(graph.tasks().size());  // tasks of the same iteration
    for (const Edge& edge : graph.edges_with_program_order())
      if (edge.lag == 0) ++before[CyclicTaskGraph::index(edge.after)];
    int exchanges = 0;
    for (std::size_t t = 0; t < before.size(); ++t) {
      if (graph.tasks()[t].label.text().find("keys and values") == std::string::npos) continue;
      ++exchanges;
      INFO(graph.tasks()[t].label.text());
      CHECK(before[t] > 0);
    }
    CHECK(exchanges == 2 * 2 * 2);  // of two layers and two micro-batches, there and back
    const ExecutionResult result = testing::simulate(star.cluster(), graph, {.iterations = 30});
    CHECK(result.period.has_value());
  }
}

TEST_CASE("one rank stands for all of a mesh of stages, replicas, contexts and tensors", "[composition][context]") {
  const ExecutionResult result = run(
      "composition", "{mesh: {pipeline: 2, data: 2, context: 2, tensor: 2}, schedule: {name: 1f1b, micro_batches: 4}}",
      16, {small_transformer(2)});
  CHECK(result.folded);
  CHECK(result.iterations_simulated < 30);
}

TEST_CASE("steps of too many executions are refused", "[composition]") {
  const testing::Star star(4, 1e9, 1e-6);
  const CyclicTaskGraph graph =
      compile_transformer(star.cluster(), 4, "composition", "{mesh: {data: 4}}", {small_transformer(1)}).graph;
  const std::size_t tasks = graph.tasks().size();
  CHECK(testing::in_child([&] {
          SimEngine engine(star.cluster());
          execute(graph, star.cluster(), engine, {.iterations = 2, .most_executions = tasks});  // folded
          try {
            execute(graph, star.cluster(), engine, {.iterations = 2, .fold = false, .most_executions = tasks});
          } catch (const SimulationError& error) {
            return std::string(error.what()).find(" executed ") != std::string::npos ? "refused" : "otherwise";
          }
          return "simulated";
        }) == "refused");
}

TEST_CASE("bubble of pipelines of tensor-parallel teams", "[composition]") {
  // Links so fast that only computing counts. Layers of unlike times: the bubble follows from the stages' own times.
  const testing::TransformerSetting setting{small_transformer(8), 16};
  const testing::Star star(8, 1e15, 0);
  const auto period = [&](const std::string& schedule) {
    const TrainingStep step = compile_transformer(
        star.cluster(), 8, "composition", "{mesh: {pipeline: 4, tensor: 2}, schedule: {" + schedule + "}}", setting);
    return testing::simulate(star.cluster(), step.graph, {.iterations = 20}).iteration;
  };
  const double one = period("name: 1f1b, micro_batches: 16"), two = period("name: interleaved, micro_batches: 16");
  CHECK(two < one);
  CHECK(period("name: gpipe, micro_batches: 16") == Approx(one).epsilon(0.02));
}

TEST_CASE("meshes and parts that do not go together say why", "[composition]") {
  const testing::TransformerSetting setting{small_transformer(2)};
  const testing::Star star(8, 1e9, 1e-6);
  const auto problem = [&](const std::string& options, int workers = 8) {
    return testing::message([&] { compile_transformer(star.cluster(), workers, "composition", options, setting); });
  };
  using Catch::Contains;
  CHECK_THAT(problem("{mesh: {data: 4}}"), Contains("data 4 make 4 devices, but the study has 8"));
  CHECK_THAT(problem("{mesh: {data: rest, tensor: 3}}"), Contains("tensor 3 do not divide 8 workers"));
  CHECK_THAT(problem("{mesh: {dta: 8}}"), Contains("unknown axis 'dta' (did you mean 'data'?)"));
  CHECK_THAT(problem("{mesh: {tensor: 8}}"), Contains("a tensor axis of 8 is more than the 4 heads of 'h.0.attn'"));
  CHECK_THAT(problem("{mesh: {tensor: 8}, body: whole}"), Contains("has no use for this axis"));
  CHECK_THAT(problem("{mesh: {data: 8}, body: tensor}"), Contains("the mesh has no axis 'tensor'"));
  CHECK_THAT(problem("{mesh: {data: 8}, body: tenzor}"), Contains("unknown body 'tenzor'"));
  CHECK_THAT(problem("{mesh: {data: 8}, synchronisation: {name: all_reduc}}"), Contains("unknown synchronisation"));
  CHECK_THAT(problem("{mesh: {pipeline: 8}, synchronisation: {name: all_reduce, update: after_all}}"),
             Contains("a stage of a pipeline is updated as a whole"));
  CHECK_THAT(problem("{mesh: {pipeline: 2, data: 4}, schedule: {name: 1f1b, micro_batches: 3}}"),
             Contains("does not divide into 3 micro-batches"));
}

}  // namespace epocast::composition_test
