// Activations in the hosts' memory, over links and buffers of all sizes: what a slower link or a smaller buffer does to
// a pipeline.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "costmodels/host_offload.hpp"
#include "tests/support/pipeline.hpp"

namespace epocast::offload_property_test {

using testing::compile_pipeline;
using testing::equal_layers;
using testing::ExecutedPipeline;
using testing::run_pipeline;

namespace {

constexpr int kMicroBatches = 6;
const std::string kStages = "{stages: 3, first_layers: [L2, L4], micro_batches: 6, schedule: ";

/// Six layers of 1 + 2 ms that keep 1000, 2000, ..., 6000 B of each sample: two on each of three stages.
TraceSource layers(const HostOffload& offload) {
  return [offload, made = equal_layers(6, {})](std::int64_t batch) {
    WorkloadTrace trace = made(batch);
    for (std::size_t l = 1; l < trace.layers.size(); ++l)
      trace.layers[l].kept_activations = Bytes(1000.0 * static_cast<double>(l) * static_cast<double>(batch));
    if (offload.any()) offload.apply(trace, Optimizer::sgd, 1);
    return trace;
  };
}

ExecutedPipeline run(const std::string& schedule, double rate, double buffer) {
  const HostOffload offload{.activations = true, .link = BytesPerSecond(rate), .buffer = Bytes(buffer)};
  return run_pipeline(kStages + schedule + "}", 3, kMicroBatches, layers(offload), 3);
}

}  // namespace

TEST_CASE("a slower link never takes less time, a larger buffer never more, and nothing jumps", "[offload]") {
  const std::vector<double> rates{1e5, 1e6, 3e6, 1e8};           // B/s
  const std::vector<double> buffers{0, 5000, 20e3, 65999, 1e9};  // B; 6 x 11000 B are all of the last stage
  constexpr double kTolerance = 1e-7, kRounding = 1 + kTolerance;
  for (const std::string schedule : {"gpipe", "1f1b"}) {
    const Cluster cluster = testing::cluster_of(3);
    const TrainingStep none = compile_pipeline(cluster, kStages + schedule + "}", 3, kMicroBatches, layers({}));
    std::vector<double> of_slower;  // by buffer
    for (const double rate : rates) {
      std::vector<double> iterations, peaks;
      for (const double buffer : buffers) {
        CAPTURE(schedule, rate, buffer);
        const ExecutedPipeline done = run(schedule, rate, buffer);
        const double iteration = done.result.iteration;
        if (!iterations.empty()) CHECK(iteration <= iterations.back() * kRounding);
        if (!of_slower.empty()) CHECK(iteration <= of_slower[iterations.size()] * kRounding);
        double peak = 0;
        for (std::size_t stage = 0; stage < 3; ++stage) {
          const double here = done.step.memory[stage].use.activations.value;
          const double all = none.memory[stage].use.activations.value;
          CHECK(here <= all * kRounding);
          // What is not on the device has left and come back.
          CHECK(iteration * kRounding >= 2 * (all - here) / rate);
          peak += here;
        }
        if (!peaks.empty()) CHECK(peak >= peaks.back() / kRounding);
        // A little more buffer saves no more than what it holds takes to be copied, of each pass there and back.
        const double more = 1e-3;
        const double shorter = run(schedule, rate, buffer + more).result.iteration;
        CHECK(iteration - shorter <= 2 * (kMicroBatches + 3) * more / rate + iteration * kTolerance);
        iterations.push_back(iteration);
        peaks.push_back(peak);
      }
      of_slower = iterations;
    }
  }
}

TEST_CASE("a buffer for all that is kept costs nothing and saves nothing, whatever the link", "[offload]") {
  const Cluster cluster = testing::cluster_of(3);
  for (const std::string schedule : {"gpipe", "1f1b"}) {
    INFO(schedule);
    const ExecutedPipeline none = run_pipeline(kStages + schedule + "}", 3, kMicroBatches, layers({}), 3);
    const ExecutedPipeline slow = run(schedule, 1, 1e9);
    CHECK(slow.result.iteration == Approx(none.result.iteration).epsilon(1e-9));
    for (std::size_t stage = 0; stage < 3; ++stage)
      CHECK(slow.step.memory[stage].use.activations == none.step.memory[stage].use.activations);
  }
}

}  // namespace epocast::offload_property_test
