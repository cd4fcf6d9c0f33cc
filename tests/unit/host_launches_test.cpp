// The longer of what host and device need, pass by pass, against the same worked out kernel by kernel.
#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

#include "costmodels/host_launches.hpp"
#include "experiments/scenario.hpp"
#include "sim/cost_model.hpp"
#include "sim/recompute.hpp"
#include "tests/support/transformer.hpp"

namespace epocast::host_launches_test {

using namespace epocast::testing;

namespace {

double sum(const WorkloadTrace& trace, DeviceTime LayerTimes::*pass) {
  double out = 0;
  for (const LayerTrace& layer : trace.layers) out += (layer.times.*pass).longest().value;
  return out;
}

WorkloadTrace trace_of(const Model& model) {
  static const FixedRate cost;
  return make_trace(model, cost, 1, Device{}, Precision::fp16);
}

/// Kernels of a forward pass.
double forward_kernels(const Model& model) {
  double out = 0;
  for (const Layer& layer : model.layers) out += HostLaunches::kernels(layer, 1, KernelPass::forward, Precision::fp16);
  return out;
}

}  // namespace

TEST_CASE("a host that takes no time changes nothing") {
  const auto model = small_transformer(2);
  WorkloadTrace trace = trace_of(*model);
  const double before = sum(trace, &LayerTimes::forward);
  HostLaunches().apply(trace, *model);
  CHECK(sum(trace, &LayerTimes::forward) == before);
}

TEST_CASE("a slow host alone says how long passes take") {
  // One kernel takes the host 1 s, the device's last one a few ns: all kernels of the network, of batch and loss.
  const auto model = small_transformer(3);
  WorkloadTrace trace = trace_of(*model);
  HostLaunches(Seconds(1)).apply(trace, *model);
  const double kernels = forward_kernels(*model) + HostLaunches::kKernelsOfBatch + HostLaunches::kKernelsOfLoss;
  CHECK(sum(trace, &LayerTimes::forward) == Approx(kernels).epsilon(1e-6));
  double backward = 0;
  for (const Layer& layer : model->layers)
    for (const KernelPass pass : {KernelPass::backward_data, KernelPass::backward_weights})
      backward += HostLaunches::kernels(layer, 1, pass, Precision::fp16);
  CHECK(sum(trace, &LayerTimes::backward_data) + sum(trace, &LayerTimes::backward_weights) ==
        Approx(HostLaunches::kBackwardShare * backward).epsilon(1e-6));
}

TEST_CASE("a pass takes at least what either needs, and at most both; what takes no kernels stays as it was") {
  const auto model = small_transformer(4);
  for (const double launch : {1e-9, 3e-8, 1e-7, 1e-6}) {
    WorkloadTrace trace = trace_of(*model);
    const double device = sum(trace, &LayerTimes::forward);
    HostLaunches(Seconds(launch)).apply(trace, *model);
    const double both = sum(trace, &LayerTimes::forward);
    const double host =
        launch * (forward_kernels(*model) + HostLaunches::kKernelsOfBatch + HostLaunches::kKernelsOfLoss);
    CHECK(both >= std::max(device, host) * (1 - 1e-12));
    CHECK(both <= (device + host) * (1 + 1e-12));
  }
}

TEST_CASE("a second forward pass costs the host as much as the first") {
  const auto model = small_transformer(4);
  WorkloadTrace trace = trace_of(*model);
  apply_recompute(trace, {.segments = Recompute::Segments::blocks});
  HostLaunches(Seconds(1)).apply(trace, *model);
  double again = 0;
  for (std::size_t l = 0; l < trace.layers.size(); ++l)
    if (trace.layers[l].segment >= 0)
      again += HostLaunches::kernels(model->layers[l], 1, KernelPass::forward, Precision::fp16);
  CHECK(sum(trace, &LayerTimes::recompute) == Approx(again).epsilon(1e-6));
  CHECK(again > 0.5 * forward_kernels(*model));
}

TEST_CASE("the host is the stack's, unless a study says it, or measured a step that contains it") {
  const auto forward = [](const std::string& compute, const std::string& launch) {
    const std::string text =
        "study: s\nplatform: dgx1_v100\nworkers: 1\nmodel: lenet\nstrategy: data_parallel\nbatch: {per_worker: "
        "4}\ncompute: {cost_model: " +
        compute + "}\nstack: {name: ideal, launch: " + launch + "}\n";
    const ScenarioSetup setup = read_scenario(parse_study(text, "study.yaml").scenarios.front(), builtin_registries());
    return sum(setup.trace(setup.phases.front().workers.front(), 4, {}), &LayerTimes::forward);
  };
  // LeNet: two convolutions, two poolings, three products, activations and the loss; ten kernels for the batch, ten
  // more for the loss.
  const double stack = forward("fitted, calibration: v100", "0.5 s");
  CHECK(stack > 12.5);
  CHECK(forward("fitted, calibration: v100", "1 s") == Approx(2 * stack).epsilon(1e-3));
  CHECK(forward("fitted, calibration: v100, launch: 1 s", "0.5 s") == Approx(2 * stack).epsilon(1e-3));
  CHECK(forward("fitted, calibration: v100, launch: 0 s", "1 s") == forward("fitted, calibration: v100", "0 s"));
  CHECK(forward("fitted, calibration: v100, step_time: {batch: 4, time: 1 s}", "1 s") < 1);
  CHECK(forward("roofline", "1 s") < 1);  // which knows no kernels
}

}  // namespace epocast::host_launches_test
