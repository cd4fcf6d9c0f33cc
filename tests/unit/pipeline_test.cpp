// Pipelines of equal stages on free links, against the closed forms of the schedules' papers; and hand-made timelines.
// With p stages, m micro-batches, and f, b (= data + w) for the passes of one micro-batch on one stage.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/support/error_message.hpp"
#include "tests/support/pipeline.hpp"

namespace epocast::pipeline_test {

using testing::compile_pipeline;
using testing::equal_layers;
using testing::ExecutedPipeline;
using testing::interval;
using testing::kMs;
using testing::Passes;
using testing::run_pipeline;

namespace {

std::string with_micro_batches(const std::string& schedule, int m) {
  return "{schedule: " + schedule + ", micro_batches: " + std::to_string(m) + "}";
}

const std::vector<Passes> kPasses{{1, 1, 1}, {1, 1.2, 0.8}, {2, 3, 0.5}, {1.5, 0.9, 0.9}};

}  // namespace

TEST_CASE("GPipe and 1F1B: (m + p - 1)(f + b) per batch, bubble (p - 1) / (m + p - 1)", "[pipeline]") {
  for (const std::string schedule : {"gpipe", "1f1b"})
    for (const int p : {2, 3, 8})
      for (const int m : {1, 5, 16})
        for (const Passes& pass : {kPasses[0], kPasses[2]}) {
          INFO(schedule << ", " << p << " stages, " << m << " micro-batches");
          const ExecutedPipeline done =
              run_pipeline(with_micro_batches(schedule, m), p, m * p, equal_layers(p, pass), 6);
          const double period = (m + p - 1) * (pass.f + pass.b()) * kMs;
          CHECK(done.result.iteration == Approx(period).epsilon(1e-9));
          CHECK(done.bubble() == Approx((p - 1.0) / (m + p - 1)).epsilon(1e-9).margin(1e-12));
          CHECK(done.result.bound->seconds == Approx(period).epsilon(1e-9));
          CHECK(done.result.metrics.mean_staleness == 0.0);
        }
}

TEST_CASE("replicas: auto takes as few micro-batches as the stages where more cost more", "[pipeline]") {
  // A pass takes as long for one sample as for eight: of 8, 4 and 2 micro-batches on two stages, 2 end first.
  const ExecutedPipeline done =
      run_pipeline("{stages: 2, replicas: auto, split_bandwidth: 1 TB/s}", 2, 8, equal_layers(2, {}), 4);
  CHECK(done.result.iteration == Approx((2 + 2 - 1) * 3 * kMs).epsilon(1e-9));
}

TEST_CASE("micro-batches in flight: m for GPipe, p - s on stage s for 1F1B", "[pipeline]") {
  const int p = 4, m = 10;
  const auto gpipe = run_pipeline(with_micro_batches("gpipe", m), p, m * p, equal_layers(p, {}), 1);
  const auto one_f_one_b = run_pipeline(with_micro_batches("1f1b", m), p, m * p, equal_layers(p, {}), 1);
  for (int s = 0; s < p; ++s) {
    const std::string stage = "stage " + std::to_string(s);
    CHECK(gpipe.peak_in_flight("backward").at(stage) == m);
    CHECK(one_f_one_b.peak_in_flight("backward").at(stage) == p - s);
  }
}

TEST_CASE("interleaving divides the bubble by the number of virtual stages", "[pipeline]") {
  // Time m (f + b) + (p - 1)(f + b) / v: Narayanan et al. 2021, section 2.2.
  for (const int p : {2, 4})
    for (const int v : {2, 3})
      for (const int m : {p, 2 * p, 4 * p})
        for (const Passes& pass : {kPasses[0], kPasses[2]}) {
          INFO(p << " stages, " << v << " virtual, " << m << " micro-batches");
          const std::string options = "{schedule: interleaved, virtual_stages: " + std::to_string(v) +
                                      ", micro_batches: " + std::to_string(m) + "}";
          const ExecutedPipeline done = run_pipeline(options, p, m * p, equal_layers(p * v, pass, v), 5);
          const double whole = (pass.f + pass.b()) * kMs;
          CHECK(done.result.iteration == Approx((m + (p - 1.0) / v) * whole).epsilon(1e-9));
          CHECK(done.result.metrics.compute == Approx(m * whole).epsilon(1e-9));
        }
}

TEST_CASE("zero bubble: (p - 1)(f + b - w) for H1 and (p - 1)(f + b - 2 w) for H2", "[pipeline]") {
  // Qi et al. 2023, Table 1, with b for the gradient of activations; from 2 p - 1 micro-batches on for H2.
  for (const int p : {2, 3, 5})
    for (const int m : {p, 2 * p - 1, 2 * p})
      for (const Passes& pass : kPasses) {
        INFO(p << " stages, " << m << " micro-batches, f " << pass.f << ", b " << pass.data << ", w " << pass.w);
        const ExecutedPipeline h1 = run_pipeline(with_micro_batches("zb_h1", m), p, m * p, equal_layers(p, pass), 6);
        const double busy = m * (pass.f + pass.b());
        CHECK(h1.result.iteration == Approx((busy + (p - 1) * (pass.f + pass.data - pass.w)) * kMs).epsilon(1e-9));
        CHECK(h1.result.metrics.compute == Approx(busy * kMs).epsilon(1e-9));
        if (m < 2 * p - 1) continue;
        const ExecutedPipeline h2 = run_pipeline(with_micro_batches("zb_h2", m), p, m * p, equal_layers(p, pass), 6);
        CHECK(h2.result.iteration == Approx((busy + (p - 1) * (pass.f + pass.data - 2 * pass.w)) * kMs).epsilon(1e-9));
      }
}

TEST_CASE("zero bubble: activations in flight as 1F1B's first stage for H1, 2 p - 1 for H2", "[pipeline]") {
  const int p = 4, m = 12;
  const auto h1 = run_pipeline(with_micro_batches("zb_h1", m), p, m * p, equal_layers(p, {}), 1);
  const auto h2 = run_pipeline(with_micro_batches("zb_h2", m), p, m * p, equal_layers(p, {}), 1);
  for (int s = 0; s < p; ++s) {
    const std::string stage = "stage " + std::to_string(s);
    CHECK(h1.peak_in_flight("backward weights").at(stage) == p);
    CHECK(h2.peak_in_flight("backward weights").at(stage) == 2 * p - 1);
  }
}

TEST_CASE("PipeDream: the slowest stage sets the pace, and stage s is p - 1 - s updates behind", "[pipeline]") {
  for (const int p : {2, 4, 6})
    for (const int slowest : {0, p / 2, p - 1})
      for (const Passes& pass : {kPasses[0], kPasses[2]}) {
        INFO(p << " stages, slowest " << slowest);
        const TraceSource uneven = [=](std::int64_t batch) {
          WorkloadTrace trace = equal_layers(p, pass)(batch);
          LayerTimes& times = trace.layers[static_cast<std::size_t>(slowest) + 1].times;
          times.forward = times.forward * 1.5;
          times.backward_data = times.backward_data * 1.5;
          times.backward_weights = times.backward_weights * 1.5;
          return trace;
        };
        const ExecutedPipeline done = run_pipeline("{schedule: pipedream, split: even}", p, 4 * p, uneven, 60);
        CHECK(done.result.iteration == Approx(1.5 * (pass.f + pass.b()) * kMs).epsilon(1e-9));
      }
  const int p = 5;
  const ExecutedPipeline equal = run_pipeline("{schedule: pipedream}", p, 4 * p, equal_layers(p, {}), 60);
  CHECK(equal.result.iteration == Approx(3 * kMs).epsilon(1e-9));
  CHECK(equal.bubble() == Approx(0).margin(1e-9));
  CHECK(equal.result.metrics.max_staleness == p - 1);
  CHECK(*equal.result.metrics.mean_staleness == Approx((p - 1) / 2.0).epsilon(0.1));  // its first updates are not yet
  for (int s = 0; s < p; ++s) CHECK(equal.peak_in_flight("backward").at("stage " + std::to_string(s)) == p - s);
}

TEST_CASE("2BW: no bubble, every gradient one update behind", "[pipeline]") {
  for (const int p : {2, 4})
    for (const int m : {p, 2 * p}) {
      INFO(p << " stages, " << m << " micro-batches");
      const ExecutedPipeline done = run_pipeline(with_micro_batches("2bw", m), p, m * p, equal_layers(p, {}), 40);
      CHECK(done.result.iteration == Approx(m * 3 * kMs).epsilon(1e-9));
      CHECK(done.result.metrics.mean_staleness == 1.0);
      CHECK(done.result.metrics.max_staleness == 1);
    }
}

TEST_CASE("naive: one stage at a time", "[pipeline]") {
  const int p = 4;
  const ExecutedPipeline done = run_pipeline("{schedule: naive}", p, p, equal_layers(p, {}), 4);
  CHECK(done.result.iteration == Approx(p * 3 * kMs).epsilon(1e-9));
  CHECK(done.bubble() == Approx(1 - 1.0 / p).epsilon(1e-9));
}

TEST_CASE("naive, all gradients on one processor: it is sent activations and weights, and sends gradients",
          "[pipeline]") {
  // Two layers of 1 MB of parameters, activations of 4 samples x 1 kB kept, 2 MB sent between the stages, 1 GB/s.
  // forward L0 1, send 2, forward L1 1, backward both 2 + 2, gradients of L0 1: 9 ms. Its activations and weights,
  // 1.004 MB, queue up behind or before the 2 MB; both are on the way well before the backward pass of L0 at 6 ms.
  const ExecutedPipeline done =
      run_pipeline("{schedule: naive, gradients: one_processor}", 2, 4, equal_layers(2, {}, 1, 2e6), 4, 1e9, 0);
  CHECK(interval(done.step.graph, done.result, "backward stage 0", 0, 0).start == Approx(6 * kMs).epsilon(1e-9));
  CHECK(done.result.iteration == Approx(9 * kMs).epsilon(1e-9));
  CHECK(done.result.metrics.bytes == Approx(2e6 + 1.004e6 + 1e6).epsilon(1e-9));
  // Collocated: gradients of activations, 2 MB, go back instead: 1 + 2 + 1 + 2 + 2 + 2 = 10 ms.
  const ExecutedPipeline own = run_pipeline("{schedule: naive}", 2, 4, equal_layers(2, {}, 1, 2e6), 4, 1e9, 0);
  CHECK(own.result.iteration == Approx(10 * kMs).epsilon(1e-9));
  CHECK(own.result.metrics.bytes == Approx(4e6).epsilon(1e-9));
}

TEST_CASE("threaded: batches in flight share the stages, weights are as stale as there are others", "[pipeline]") {
  // One batch in flight is plain model parallelism. With n on two stages of 3 ms each, a stage is never idle.
  const ExecutedPipeline one = run_pipeline("{schedule: threaded, in_flight: 1}", 2, 2, equal_layers(2, {}), 10);
  CHECK(one.result.iteration == Approx(6 * kMs).epsilon(1e-9));
  CHECK(one.result.metrics.max_staleness == 0);
  const ExecutedPipeline many = run_pipeline("{schedule: threaded, in_flight: 4}", 2, 2, equal_layers(2, {}), 40);
  CHECK(many.result.iteration == Approx(3 * kMs).epsilon(1e-9));
  CHECK(*many.result.metrics.max_staleness <= 3);
  CHECK(*many.result.metrics.max_staleness >= 1);
}

TEST_CASE("activations and gradients travel while stages compute", "[pipeline]") {
  // 2 stages, 2 micro-batches, f = 1, b = 2, messages of 0.5 MB at 1 GB/s with 0.1 ms of latency: 0.6 ms.
  // Stage 0: F0 0-1, F1 1-2. F0's activations 1-1.6. Stage 1: F0 1.6-2.6, B0 2.6-4.6, F1 4.6-5.6, B1 5.6-7.6.
  // Gradients of 0 4.6-5.2, of 1 7.6-8.2. Stage 0: B0 5.2-7.2, B1 8.2-10.2.
  const ExecutedPipeline done =
      run_pipeline("{micro_batches: 2}", 2, 4, equal_layers(2, {}, 1, 0.5e6), 3, 1e9, 0.1 * kMs);
  const auto check = [&](const std::string& label, double start, double end) {
    INFO(label);
    const Interval i = interval(done.step.graph, done.result, label, 0, 0);
    CHECK(i.start == Approx(start * kMs).epsilon(1e-9));
    CHECK(i.end == Approx(end * kMs).epsilon(1e-9));
  };
  check("send activations stage 0 #0", 1, 1.6);
  check("send activations stage 0 #1", 2, 2.6);
  check("forward stage 1 #0", 1.6, 2.6);
  check("backward stage 1 #0", 2.6, 4.6);
  check("forward stage 1 #1", 4.6, 5.6);
  check("send gradients stage 1 #0", 4.6, 5.2);
  check("backward stage 0 #0", 5.2, 7.2);
  check("backward stage 0 #1", 8.2, 10.2);
  CHECK(done.result.iteration == Approx(10.2 * kMs).epsilon(1e-9));
  CHECK(done.result.metrics.bytes == Approx(4 * 0.5e6));
}

TEST_CASE("stages stand still while messages block", "[pipeline]") {
  // Messages of 0.6 ms, all of it latency, else as above. Stage 0: F0 0-1, its message 1-1.6, F1 1.6-2.6, its message
  // 2.6-3.2. Stage 1: F0 1.6-2.6, B0 2.6-4.6, its message 4.6-5.2, F1 5.2-6.2, B1 6.2-8.2, its message 8.2-8.8. Stage
  // 0: B0 5.2-7.2, B1 8.8-10.8.
  const auto time = [](const std::string& options, int layers, int batch, double latency = 0.6) {
    return run_pipeline(options, 2, batch, equal_layers(layers, {}, 1, 1), 3, 1e15, latency * kMs).result.iteration;
  };
  const std::string blocking = ", blocking_messages: true}";
  CHECK(time("{micro_batches: 2" + blocking, 2, 4) == Approx(10.8 * kMs).epsilon(1e-9));
  // Two chunks a stage, of 1 and 2 ms, every forward pass before the first backward pass. Fck is chunk c, micro-batch
  // k. Stage 0: F00 0-1, F01 1.6-2.6, F20 3.2-4.2, F21 4.8-5.8. Stage 1: F10 1.6-2.6, F11 3.2-4.2, F30 4.8-5.8, F31
  // 6.4-7.4, B30 7.4-9.4, B31 10-12. Stage 0: B20 10-12, B21 12.6-14.6. Stage 1: B10 12.6-14.6, B11 15.2-17.2. Stage
  // 0: B00 15.2-17.2, B01 17.8-19.8.
  const std::string chunks = "{schedule: interleaved, virtual_stages: 2, micro_batches: ";
  CHECK(time(chunks + "2" + blocking, 4, 4) == Approx(19.8 * kMs).epsilon(1e-9));
  // Of a forward and a backward pass in turn both messages travel at once, behind both: each micro-batch more adds two
  // chunks of 3 ms, and a message behind each, to stages that are never idle.
  CHECK(time(chunks + "16" + blocking, 4, 32) - time(chunks + "12" + blocking, 4, 24) ==
        Approx(4 * 2 * (3 + 0.6) * kMs).epsilon(1e-9));
  for (const char* schedule : {"gpipe", "1f1b", "interleaved"}) {  // free messages block nobody
    const std::string options = fmt::format("{{schedule: {}, micro_batches: 4", schedule);
    CHECK(time(options + blocking, 4, 8, 0) == Approx(time(options + "}", 4, 8, 0)).epsilon(1e-9));
  }
}

TEST_CASE("replicas of a stage share the batch and sum its gradients", "[pipeline]") {
  // 2 stages x 2 replicas; micro-batches of 1 ms passes, free messages. An all-reduce of 1 MB between 2 at 1 GB/s and
  // no latency takes 1 ms; both stages do theirs, stage 0 last: (m + p - 1) x 3 + 1.
  for (const std::string placement : {"stage_major", "replica_major"}) {
    const ExecutedPipeline done = run_pipeline("{stages: 2, micro_batches: 4, placement: " + placement + "}", 4, 16,
                                               equal_layers(2, {}), 4, 1e9, 0);
    CHECK(done.result.iteration == Approx((5 * 3 + 1) * kMs).epsilon(1e-9));
    CHECK(done.result.metrics.bytes == Approx(2 * 2 * 1e6));
    REQUIRE(done.step.memory.size() == 2);
    const std::vector<DeviceId> first =
        placement == "stage_major" ? std::vector<DeviceId>{0, 1} : std::vector<DeviceId>{0, 2};
    CHECK(done.step.memory.front().devices == first);
  }
}

TEST_CASE("all-reduces of replicas start during the last backward pass, or after it", "[pipeline]") {
  // One stage of 4 layers of 1 MB on 2 replicas, 2 micro-batches; passes of 1 + 2 ms in 4 layers. Between 2 at 1 GB/s
  // an all-reduce of 1 MB takes 1 ms. F0 B0 F1 end at 4; B1 makes a gradient every 0.5 ms, 4.5 .. 6: the reductions
  // queue up from 4.5 on and end at 8.5. After the backward pass, or as one for all: from 6 on, 10.
  for (const auto& [options, end] : {std::pair<std::string, double>{"granularity: layer", 8.5},
                                     {"granularity: layer, overlap: false", 10},
                                     {"granularity: model", 10},
                                     {"bucket: 2 MB", 9}}) {  // 5: 2 MB until 7; 2 MB until 9
    INFO(options);
    const ExecutedPipeline done =
        run_pipeline("{stages: 1, micro_batches: 2, " + options + "}", 2, 4, equal_layers(4, {}, 4), 4, 1e9, 0);
    CHECK(done.result.iteration == Approx(end * kMs).epsilon(1e-9));
    CHECK(done.result.metrics.compute == Approx(6 * kMs).epsilon(1e-9));
    CHECK(done.result.metrics.bytes == Approx(2 * 4e6));
  }
  // Two stages: the last backward pass of stage 0 begins when stage 1's gradients are there, in whatever pieces it is.
  const ExecutedPipeline two =
      run_pipeline("{stages: 2, micro_batches: 2, granularity: layer}", 4, 8, equal_layers(8, {}, 4), 4, 1e9, 0);
  CHECK(two.result.iteration == Approx((3 * 3 + 2.5) * kMs).epsilon(1e-9));  // reductions from 7.5 to 11.5
  // ZB-H1 makes them in the pass for weights, 0.25 ms a layer: F B W F B end at 5, gradients 5.25 .. 6.
  const ExecutedPipeline zero = run_pipeline("{stages: 1, schedule: zb_h1, micro_batches: 2, granularity: layer}", 2, 4,
                                             equal_layers(4, {}, 4), 4, 1e9, 0);
  CHECK(zero.result.iteration == Approx(9.25 * kMs).epsilon(1e-9));
}

TEST_CASE("memory of a stage: weights and their versions, activations of what is in flight", "[pipeline]") {
  // 4 stages of one layer: 1 MB of parameters; a micro-batch of 2 samples keeps 2 kB, and stages but the first receive
  // 500 B more. Adam: two values of state.
  const int p = 4;
  const Cluster cluster = testing::cluster_of(p);
  const auto memory = [&](const std::string& options) {
    return compile_pipeline(cluster, options, p, 64, equal_layers(p, {}, 1, 500), Optimizer::adam).memory;
  };
  const auto kept = [](int stage) { return stage == 0 ? 2000.0 : 2500.0; };
  const std::string m32 = ", micro_batches: 32}";
  for (int s = 0; s < p; ++s) {
    INFO("stage " << s);
    const auto stage = static_cast<std::size_t>(s);
    const auto of = [&](const std::string& options) { return memory(options)[stage].use; };
    CHECK(of("{schedule: gpipe" + m32).activations.value == 32 * kept(s));
    CHECK(of("{schedule: 1f1b" + m32).activations.value == (p - s) * kept(s));
    CHECK(of("{schedule: zb_h1" + m32).activations.value == p * kept(s));
    CHECK(of("{schedule: zb_h2" + m32).activations.value == (2 * p - 1) * kept(s));
    CHECK(of("{schedule: 2bw" + m32).activations.value == (p - s) * kept(s));
    // What comes in is kept for all in flight, the rest for one.
    CHECK(of("{schedule: gpipe, recompute: true" + m32).activations.value == 31 * (kept(s) - 2000) + kept(s));
    for (const auto& [schedule, versions] :
         {std::pair<std::string, int>{"1f1b", 1}, {"gpipe", 1}, {"2bw", 2}, {"pipedream", p - s}, {"threaded", 1}}) {
      const MemoryUse use = of("{schedule: " + schedule + "}");
      CHECK(use.parameters.value == versions * 1e6);
      CHECK(use.gradients.value == 1e6);
      CHECK(use.optimizer_state.value == 2e6);
    }
    const std::string last = "L" + std::to_string(s), first = s == 0 ? "data" : last;
    CHECK(memory("{}")[stage].holder == "stage " + std::to_string(s) + " (" + first + " to " + last + ")");
  }
}

TEST_CASE("a branch that runs past a stage is handed on by it", "[pipeline]") {
  // L0 -> L1 -> L2, and L2 reads L0 as well: after L1, the outputs of L0 and L1 are alive.
  const TraceSource branch = [](std::int64_t batch) {
    WorkloadTrace trace = equal_layers(3, {}, 1, 1e6)(batch);
    trace.layers[3].inputs = {2, 1};
    return trace;
  };
  const ExecutedPipeline done = run_pipeline("{micro_batches: 1}", 3, 3, branch, 3);
  CHECK(done.result.metrics.bytes == Approx(2 * (1e6 + 2e6)));
}

TEST_CASE("where stages begin", "[pipeline]") {
  // Forward + backward of 1, 1, 1, 1, 4 and 2 ms, 10 in all; one boundary.
  const TraceSource uneven = [](std::int64_t batch) {
    std::vector<LayerTrace> layers;
    for (const double ms : {1, 1, 1, 1, 4, 2})
      layers.push_back(testing::layer("L" + std::to_string(layers.size()), ms * kMs / 2, ms * kMs / 2, 0, {1e3}));
    return testing::chain(std::move(layers), batch);
  };
  const auto longest = [&](const std::string& options, int stages) {
    const ExecutedPipeline done =
        run_pipeline("{schedule: pipedream, " + options + "}", stages, stages, uneven, 40, 1e15);
    return done.result.iteration / kMs;
  };
  CHECK(longest("split: time", 2) == Approx(6).epsilon(1e-5));             // 1 1 1 1 | 4 2
  CHECK(longest("split: even", 2) == Approx(7).epsilon(1e-5));             // 1 1 1 | 1 4 2
  CHECK(longest("split: time", 3) == Approx(4).epsilon(1e-5));             // 1 1 1 1 | 4 | 2
  CHECK(longest("split: bisection", 4) == Approx(4).epsilon(1e-5));        // 1 1 | 1 1 | 4 | 2
  CHECK(longest("first_layers: [L1]", 2) == Approx(9).epsilon(1e-5));      // 1 | 1 1 1 4 2
  CHECK(longest("first_layers: [L1, L5]", 3) == Approx(7).epsilon(1e-5));  // 1 | 1 1 1 4 | 2
}

TEST_CASE("options that do not fit are errors that say what would", "[pipeline]") {
  const Cluster cluster = testing::cluster_of(8);
  const auto message = [&](const std::string& options, int workers, int batch, int layers = 8) {
    return testing::message([&] { compile_pipeline(cluster, options, workers, batch, equal_layers(layers, {})); });
  };
  using Catch::Contains;
  CHECK_THAT(message("{stages: 3}", 8, 8), Contains("stages: 8 workers do not divide into pipelines of 3 stages") &&
                                               Contains("set stages to 2 or 4"));
  CHECK_THAT(message("{stages: 6}", 4, 4), Contains("6 stages need 6 workers, but the study has 4"));
  CHECK_THAT(message("{}", 8, 8, 5), Contains("8 stages are too many") && Contains("5 layers that take time"));
  CHECK_THAT(message("{micro_batches: 5}", 4, 32), Contains("does not divide into 5 micro-batches; use 4 or 8"));
  CHECK_THAT(message("{schedule: interleaved, micro_batches: 2}", 4, 32), Contains("too few to interleave 4 stages"));
  CHECK_THAT(message("{schedule: interleaved, micro_batches: 6}", 4, 24), Contains("use 4 or 8"));
  CHECK_THAT(message("{schedule: zb_h1, blocking_messages: true}", 4, 32),
             Contains("gpipe, 1f1b or interleaved waits for messages"));
  CHECK_THAT(message("{schedule: 2bw, micro_batches: 2}", 4, 32), Contains("from 4 micro-batches"));
  CHECK_THAT(message("{schedule: pipedream, micro_batches: 2}", 4, 32), Contains("takes a batch as a whole"));
  CHECK_THAT(message("{first_layers: [L1, L3]}", 4, 32),
             Contains("4 stages begin at 3 layers besides the first, not at 2"));
  CHECK_THAT(message("{first_layers: [L1, L3, M5]}", 4, 32), Contains("no layer 'M5'") && Contains("did you mean"));
  CHECK_THAT(message("{first_layers: [L3, L1, L5]}", 4, 32), Contains("'L1' does not come after 'L3'"));
}

}  // namespace epocast::pipeline_test
