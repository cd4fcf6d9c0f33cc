// What stages keep in their hosts' memory, and how long their passes wait for it, by hand.
#include <catch2/catch.hpp>

#include <string>

#include "costmodels/host_offload.hpp"
#include "tests/support/pipeline.hpp"

namespace epocast::pipeline_offload_test {

using testing::compile_pipeline;
using testing::equal_layers;
using testing::ExecutedPipeline;
using testing::kMs;
using testing::run_pipeline;

namespace {

/// Layers of 1 + 2 ms that keep 1000 B of each sample, across a link that takes 4 ms for these.
TraceSource offloaded_layers(int layers, double buffer, bool overlap = true, double output = 0) {
  const HostOffload offload{
      .activations = true, .link = BytesPerSecond(250e3), .overlap = overlap, .buffer = Bytes(buffer)};
  return [offload, made = equal_layers(layers, {}, 1, output)](std::int64_t batch) {
    WorkloadTrace trace = made(batch);
    offload.apply(trace, Optimizer::sgd, 1);
    return trace;
  };
}

/// On two stages of a layer each, four micro-batches of one sample.
ExecutedPipeline run_two_stages(const std::string& schedule, const TraceSource& source) {
  return run_pipeline("{micro_batches: 4, schedule: " + schedule + "}", 2, 4, source, 4);
}

MemoryUse use_of(const ExecutedPipeline& done, std::size_t stage) { return done.step.memory.at(stage).use; }

}  // namespace

TEST_CASE("gpipe: all micro-batches under way share the buffer, and the rest is copied there and back", "[offload]") {
  struct Case {
    double buffer, pass_forward, pass_backward, on_device;  // B, ms, ms, B
    bool overlap = true;
  };
  for (const Case& c : {
           // All leaves, 4 ms each way. The one that runs is on the device.
           Case{0, 4, 4, 1000},
           // 500 B of each of four stay, and 500 B more of the one that runs; 2 ms each way.
           Case{2000, 2, 2, 2500},
           // 250 B leave, 1 ms each way: just beside computing.
           Case{3000, 1, 2, 3250},
           // All stays.
           Case{4000, 1, 2, 4000},
           // Whatever the buffer, each copy takes its time.
           Case{4000, 1 + 4, 2 + 4, 1000, false},
       }) {
    CAPTURE(c.buffer, c.overlap);
    const ExecutedPipeline done = run_two_stages("gpipe", offloaded_layers(2, c.buffer, c.overlap));
    // Each of the two sweeps takes four passes on one stage and one on the other.
    CHECK(done.result.iteration == Approx(5 * (c.pass_forward + c.pass_backward) * kMs).epsilon(1e-9));
    for (const std::size_t stage : {0U, 1U}) {
      CHECK(use_of(done, stage).activations.value == Approx(c.on_device));
      CHECK(use_of(done, stage).on_host == Bytes(4000));
    }
  }
}

TEST_CASE("1f1b: each stage divides its buffer by the micro-batches that it has under way", "[offload]") {
  // Of 1000 B. Stage 0 has two under way: 500 B of each stay, and each pass takes 2 ms. Stage 1 has one, which stays.
  const ExecutedPipeline done = run_two_stages("1f1b", offloaded_layers(2, 1000));
  // Stage 0: F0 0-2, F1 2-4; stage 1: F0 2-3, B0 3-5, F1 5-6, B1 6-8; stage 0: B0 5-7, F2 7-9, B1 9-11; stage 1: F2
  // 9-10, B2 10-12; stage 0: F3 11-13, B2 13-15; stage 1: F3 13-14, B3 14-16; stage 0: B3 16-18.
  CHECK(done.result.iteration == Approx(18 * kMs).epsilon(1e-9));
  CHECK(use_of(done, 0).activations.value == Approx(1500));
  CHECK(use_of(done, 1).activations.value == Approx(1000));
  CHECK(use_of(done, 0).on_host == Bytes(2000));
  CHECK(use_of(done, 1).on_host == Bytes(1000));
}

TEST_CASE("a stage waits for its own layers' copies only", "[offload]") {
  // Layers that compute before and after those of a stage give its copies no time: a naive batch of four layers on two
  // stages has two layers' 2000 B to copy in 8 ms each way, beside 2 ms forward and 4 ms backward.
  const ExecutedPipeline done = run_pipeline("{schedule: naive, first_layers: [L2]}", 2, 1, offloaded_layers(4, 0), 4);
  CHECK(done.result.iteration == Approx((2 * 8 + 2 * 8) * kMs).epsilon(1e-9));
  // Two neighbours are on the device while one pass runs.
  CHECK(use_of(done, 0).activations.value == Approx(2000));
}

TEST_CASE("one stage with one micro-batch under way waits as a device that has the network", "[offload]") {
  const TraceSource source = offloaded_layers(4, 2000);
  const WorkloadTrace trace = source(1);
  const double step = trace.compute_time().longest().value;
  REQUIRE(step > 4 * 3 * kMs);
  for (const std::string schedule : {"naive", "1f1b, micro_batches: 1", "gpipe, micro_batches: 1"}) {
    INFO(schedule);
    const ExecutedPipeline done = run_pipeline("{stages: 1, schedule: " + schedule + "}", 1, 1, source, 4);
    CHECK(done.result.iteration == Approx(step).epsilon(1e-9));
    CHECK(use_of(done, 0).activations.value == Approx(2000));
  }
  // Two micro-batches under way share the buffer: 1000 of 4000 B stay of each, and two neighbours of the one that runs.
  // 3000 B take 12 ms each way, beside 4 and 8 ms.
  const ExecutedPipeline both = run_pipeline("{stages: 1, schedule: gpipe, micro_batches: 2}", 1, 2, source, 4);
  CHECK(both.result.iteration == Approx(2 * (12 + 12) * kMs).epsilon(1e-9));
  CHECK(use_of(both, 0).activations.value == Approx(2 * 1000 + 1000));
}

TEST_CASE("what a stage computes again is not copied; what it receives is", "[offload]") {
  // Stage 1 receives 500 B, which take 2 ms, and computes again: F 2 ms, B 1 + 2 ms. Stage 0 has nothing to keep but
  // the data.
  const ExecutedPipeline done =
      run_pipeline("{schedule: gpipe, micro_batches: 1, recompute: true}", 2, 1, offloaded_layers(2, 0, true, 500), 4);
  CHECK(done.result.iteration == Approx((1 + 2 + 3 + 3) * kMs).epsilon(1e-5));  // and messages of 0.5 ns
  CHECK(use_of(done, 0).on_host == Bytes(0));
  CHECK(use_of(done, 0).activations.value == Approx(1000));
  CHECK(use_of(done, 1).on_host == Bytes(500));
  CHECK(use_of(done, 1).activations.value == Approx(1500));
}

TEST_CASE("where stages begin does not depend on the link", "[offload]") {
  const Cluster cluster = testing::cluster_of(2);
  const auto boundary = [&](const TraceSource& source) {
    return compile_pipeline(cluster, "{schedule: gpipe, micro_batches: 2}", 2, 4, source).memory.front().holder;
  };
  CHECK(boundary(offloaded_layers(6, 0)) == boundary(equal_layers(6, {})));
  CHECK(boundary(offloaded_layers(6, 2000)) == boundary(equal_layers(6, {})));
}

TEST_CASE("batches in flight of divided filters have a buffer each", "[offload]") {
  // A layer that keeps 4 MB, all of which the buffer holds: nothing is saved, nothing waits.
  const auto source = [](const HostOffload& offload) {
    return TraceSource([offload](std::int64_t batch) {
      WorkloadTrace trace = testing::chain({testing::layer("a", 1, 1, 0, {8})}, batch);
      trace.layers[1].output = trace.layers[1].kept_activations = Bytes(4e6);
      if (offload.any()) offload.apply(trace, Optimizer::sgd, 1);
      return trace;
    });
  };
  const Cluster cluster = testing::cluster_of(1);
  const ConfigNode node = ConfigNode::load_text("{in_flight: 4}", "options");
  const auto strategy = builtin_strategies().make("filter_parallel", node, node);
  const auto use = [&](const HostOffload& offload) {
    return strategy->compile({cluster, {0}, 1, source(offload), {}, Optimizer::sgd}).memory.front().use;
  };
  const HostOffload all_fits{.activations = true, .link = BytesPerSecond(1), .buffer = Bytes(1e11)};
  CHECK(use(all_fits).activations == use({}).activations);
  CHECK(use(all_fits).on_host == Bytes(4 * 4e6));
}

}  // namespace epocast::pipeline_offload_test
