// What pipelines forget and compute again.
#include <catch2/catch.hpp>

#include <string>

#include "sim/recompute.hpp"
#include "tests/support/error_message.hpp"
#include "tests/support/pipeline.hpp"

namespace epocast::pipeline_recompute_test {

using testing::compile_pipeline;
using testing::equal_layers;
using testing::ExecutedPipeline;
using testing::interval;
using testing::kMs;
using testing::run_pipeline;

TEST_CASE("recomputation adds a forward pass to each backward pass", "[pipeline]") {
  const int p = 3, m = 6;
  const ExecutedPipeline done = run_pipeline("{micro_batches: 6, recompute: true}", p, m * p, equal_layers(p, {}), 4);
  CHECK(done.result.iteration == Approx((m + p - 1) * 4 * kMs).epsilon(1e-9));
}

TEST_CASE("what the trace forgets is computed again by the stage that holds it", "[pipeline]") {
  // Four equal layers of 1 + 2 ms on 2 stages. Cut into 2 segments, L0 and L1 forget and are computed again: stage 0's
  // step is 2 + 4 + 2 ms, stage 1's 2 + 4.
  const TraceSource source = [made = equal_layers(4, {})](std::int64_t batch) {
    WorkloadTrace trace = made(batch);
    apply_recompute(trace, {Recompute::Segments::count, 2});
    return trace;
  };
  const WorkloadTrace trace = source(1);
  double forgotten = 0;
  for (const LayerTrace& layer : trace.layers) forgotten += layer.times.recompute.longest().value;
  REQUIRE(forgotten == Approx(2 * kMs));  // L0 and L1
  for (const std::string schedule : {"naive", "gpipe", "1f1b", "zb_h1", "pipedream", "2bw, micro_batches: 2"}) {
    INFO(schedule);
    const int micro_batches = schedule.starts_with("2bw") ? 2 : 1;
    const std::string given =
        schedule == "naive" || schedule == "pipedream" || micro_batches == 2 ? "" : ", micro_batches: 1";
    const ExecutedPipeline done =
        run_pipeline("{stages: 2, first_layers: [L2], schedule: " + schedule + given + "}", 2, 4, source);
    // Of a device, on average: forward and backward passes of four layers on two, and what is forgotten.
    CHECK(done.result.metrics.compute == Approx(micro_batches * (4 * 3 + 2) / 2.0 * kMs).epsilon(1e-9));
  }
  // A batch at a time: 4 layers of 3 ms one after the other, and the second forward pass.
  const ExecutedPipeline naive = run_pipeline("{stages: 2, first_layers: [L2], schedule: naive}", 2, 4, source);
  CHECK(naive.result.iteration == Approx((4 * 3 + 2) * kMs).epsilon(1e-9));
}

TEST_CASE("a segment is computed again where the backward pass reaches its end", "[pipeline]") {
  // One stage on 2 replicas, layers of 1 + 2 ms, 4 all-reduces of 1 ms; L0 and L1 are forgotten. F 0-4, backward L3
  // 4-6, L2 6-8, again L0 and L1 8-10, L1 10-12, L0 12-14; the last all-reduce ends at 15.
  const TraceSource source = [made = equal_layers(4, {})](std::int64_t batch) {
    WorkloadTrace trace = made(batch);
    apply_recompute(trace, {Recompute::Segments::count, 2});
    return trace;
  };
  const ExecutedPipeline done =
      run_pipeline("{stages: 1, micro_batches: 1, granularity: layer}", 2, 4, source, 4, 1e9, 0);
  CHECK(interval(done.step.graph, done.result, "all-reduce stage 0 L2").start == Approx(8 * kMs).epsilon(1e-9));
  CHECK(interval(done.step.graph, done.result, "all-reduce stage 0 L1").start == Approx(12 * kMs).epsilon(1e-9));
  CHECK(done.result.iteration == Approx(15 * kMs).epsilon(1e-9));
}

TEST_CASE("memory: of what segments forget, a stage holds the largest while it computes", "[pipeline]") {
  // Each micro-batch in flight holds what is kept, and the one that runs also what the forgotten segment makes.
  const TraceSource source = [made = equal_layers(4, {}, 1, 500)](std::int64_t batch) {
    WorkloadTrace trace = made(batch);
    apply_recompute(trace, {Recompute::Segments::count, 2});
    return trace;
  };
  double kept = 0, recomputed = 0;
  for (const LayerTrace& layer : source(2).layers) {
    kept += layer.kept_activations.value;
    recomputed += layer.recomputed.value;
  }
  CHECK(recomputed > 0);
  const Cluster cluster = testing::cluster_of(1);
  const auto activations = [&](const std::string& options) {
    return compile_pipeline(cluster, options, 1, 16, source).memory.front().use.activations.value;
  };
  CHECK(activations("{schedule: gpipe, micro_batches: 8}") == 8 * kept + recomputed);
  CHECK(activations("{schedule: 1f1b, micro_batches: 8}") == kept + recomputed);
}

TEST_CASE("recomputation is said once", "[pipeline]") {
  const TraceSource source = [made = equal_layers(4, {})](std::int64_t batch) {
    WorkloadTrace trace = made(batch);
    apply_recompute(trace, {Recompute::Segments::count, 2});
    return trace;
  };
  const Cluster cluster = testing::cluster_of(2);
  CHECK_THAT(testing::message([&] { compile_pipeline(cluster, "{recompute: true}", 2, 8, source); }),
             Catch::Contains("recompute: memory.recompute already says what is forgotten"));
}

}  // namespace epocast::pipeline_recompute_test
