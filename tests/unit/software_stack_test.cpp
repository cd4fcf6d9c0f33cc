// What software costs, each mechanism by hand.
#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>
#include <string>

#include "costmodels/software_stack.hpp"
#include "experiments/interval.hpp"
#include "experiments/stack_settings.hpp"
#include "experiments/usual_stack.hpp"
#include "sim/data_file.hpp"
#include "strategies/register.hpp"
#include "tests/support/error_message.hpp"

namespace epocast::software_stack_test {

namespace {

SoftwareStack stack(const std::string& keys) {
  return SoftwareStack(ConfigNode::load_text("stack: s\n" + keys, "stack.yaml"));
}

/// A layer of 1, 2, 3 and 0.5 s with 100 MB of gradients, in 2 bytes each.
struct Changed {
  explicit Changed(const SoftwareStack& software, std::int64_t workers, bool in_step = true) {
    trace.precision = Precision::fp16;
    LayerTrace layer;
    layer.times = PassTimes{Seconds(1), Seconds(2), Seconds(3), Seconds(0.5)};
    layer.gradients = {{"w", Bytes(60e6)}, {"b", Bytes(40e6)}};
    trace.layers = {layer};
    software.apply(trace, workers, in_step);
  }
  double operator()(DeviceTime LayerTimes::*pass) const { return (trace.layers[0].times.*pass).longest().value; }
  double bytes() const { return trace.layers[0].gradients[0].bytes.value + trace.layers[0].gradients[1].bytes.value; }

  WorkloadTrace trace;
};

}  // namespace

TEST_CASE("the slowest of n draws: means of order statistics") {
  // Tippett 1925; for 2 and 3 in closed form
  CHECK(expected_maximum(1) == 0);
  CHECK(expected_maximum(2) == Approx(1 / std::sqrt(M_PI)).epsilon(1e-9));
  CHECK(expected_maximum(3) == Approx(1.5 / std::sqrt(M_PI)).epsilon(1e-9));
  CHECK(expected_maximum(10) == Approx(1.53875).epsilon(1e-5));
  CHECK(expected_maximum(100) == Approx(2.50759).epsilon(1e-5));
  CHECK(expected_maximum(1000) == Approx(3.24144).epsilon(1e-5));
}

TEST_CASE("scale is a factor on all that several workers lose, and on nothing else") {
  const std::string keys =
      "copies: 4\naccumulation: 12\nprocessor_rate: 1 GB/s\nhandshake: 1\nwindow: 1 MB\ncollective_overhead: 20 us\n"
      "interference: 0.4\nspread: 0.02\nranges: {spread: [0.01, 0.04]}\n";
  const SoftwareStack plain = stack(keys), twice = stack(keys + "scale: 2\n"), none = stack(keys + "scale: 0\n");
  for (const auto& [scaled, factor] : {std::pair{&twice, 2.0}, std::pair{&none, 0.0}}) {
    CAPTURE(factor);
    CHECK(scaled->copies() == factor * plain.copies());
    CHECK(scaled->processor_time() == factor * plain.processor_time());
    CHECK(scaled->handshake() == factor * plain.handshake());
    CHECK(scaled->collective_overhead().value == factor * plain.collective_overhead().value);
    CHECK(scaled->interference() == Approx(factor * plain.interference()));
    CHECK(scaled->spread() == factor * plain.spread());
    CHECK(scaled->window() == plain.window());
    CHECK(scaled->accumulates());
    CHECK(scaled->ends()[0].high->spread() == factor * 0.04);
  }
  CHECK(stack(keys + "scale: 3\n").interference() < 1);  // a device that computes nothing would never end
  CHECK_THAT(testing::message([&] { stack(keys + "scale: -1\n"); }), Catch::Contains("scale"));
}

TEST_CASE("the ideal stack changes nothing, and no other one a worker that is alone") {
  const SoftwareStack all = stack("gradients: fp32\ncopies: 4\nprocessor_rate: 1 GB/s\nspread: 0.1\n");
  for (const Changed& layer : {Changed(SoftwareStack(), 8), Changed(all, 1)}) {
    CHECK(layer(&LayerTimes::forward) == 1);
    CHECK(layer(&LayerTimes::backward_data) == 2);
    CHECK(layer(&LayerTimes::backward_weights) == 3);
    CHECK(layer(&LayerTimes::update) == 0.5);
    CHECK(layer.bytes() == 100e6);
  }
}

TEST_CASE("gradients in fp32 under mixed precision are twice as large") {
  CHECK(Changed(stack("gradients: fp32\n"), 2).bytes() == 200e6);
  CHECK(Changed(stack("gradients: as_weights\n"), 2).bytes() == 100e6);
}

TEST_CASE("copies take memory's time, and bytes the processor's") {
  // 4 accesses at 80 % of 10 GB/s: half a second a GB
  Device device;
  device.memory_bandwidth = BytesPerSecond(10e9);
  CHECK(stack("copies: 4\n").copy_time(device) == Approx(0.5e-9));
  CHECK(stack("processor_rate: 2 GB/s\n").processor_time() == Approx(0.5e-9));
}

TEST_CASE("workers that wait for each other take as long as the slowest") {
  const double slowest = 1 + 0.1 / std::sqrt(M_PI);
  const Changed in_step(stack("spread: 0.1\n"), 2), apart(stack("spread: 0.1\n"), 2, false);
  CHECK(in_step(&LayerTimes::backward_data) == Approx(2 * slowest));
  CHECK(in_step(&LayerTimes::update) == Approx(0.5 * slowest));
  CHECK(apart(&LayerTimes::backward_data) == 2);
}

TEST_CASE("a cost model that knows kernels gets those of the loss from the stack") {
  const SoftwareStack software = stack("loss: fused\n");
  const auto compute = [&](const std::string& text) {
    return with_stack_defaults(ConfigNode::load_text("study: s\ncompute: " + text, "study.yaml"), software,
                               builtin_strategies())
        .at("compute")
        .flow_text();
  };
  CHECK(compute("{cost_model: fitted, calibration: v100}") == "{cost_model: fitted, calibration: v100, loss: fused}");
  CHECK(compute("{cost_model: fitted, calibration: v100, loss: framework}") ==
        "{cost_model: fitted, calibration: v100, loss: framework}");
  CHECK(compute("{cost_model: roofline}") == "{cost_model: roofline}");
}

TEST_CASE("updates move as often as the stack's do, where a study does not say") {
  const auto optimizer = [&](const std::string& text) {
    const ConfigNode study = ConfigNode::load_text("study: s\n" + text, "study.yaml");
    return with_stack_defaults(study, stack("attention: eager\nupdate_accesses: foreach\n"), builtin_strategies())
        .at("optimizer")
        .flow_text();
  };
  CHECK(optimizer("") == "{accesses: foreach}");
  CHECK(optimizer("optimizer: adam\n") == "{name: adam, accesses: foreach}");
  CHECK(optimizer("optimizer: {name: adam, fused: false}\n") == "{name: adam, fused: false, accesses: foreach}");
  CHECK(optimizer("optimizer: {name: adam, accesses: 33}\n") == "{name: adam, accesses: 33}");
}

TEST_CASE("workers of a node share what it can feed") {
  const SoftwareStack both = stack("input: {per_worker: 100, per_node: 300}\n");
  CHECK(*both.input_rate(1) == 100);
  CHECK(*both.input_rate(4) == 75);
  CHECK(!stack("").input_rate(4));
}

TEST_CASE("a stack fills in what a study leaves out of its strategy") {
  const SoftwareStack software =
      stack("strategies: {data_parallel: {first_bucket: 1 MiB, bucket: 2 MiB, update: after_all}}\n");
  const auto strategy = [&](const std::string& text) {
    return with_stack_defaults(ConfigNode::load_text("study: s\n" + text, "study.yaml"), software, builtin_strategies())
        .at("strategy")
        .flow_text();
  };
  CHECK(strategy("strategy: data_parallel") ==
        "{name: data_parallel, first_bucket: 1 MiB, bucket: 2 MiB, update: after_all}");
  CHECK(strategy("") == strategy("strategy: data_parallel"));
  CHECK(strategy("strategy: {name: data_parallel, bucket: 8 MiB}") ==
        "{name: data_parallel, bucket: 8 MiB, first_bucket: 1 MiB, update: after_all}");
  CHECK(strategy("strategy: {name: data_parallel, granularity: model}") ==
        "{name: data_parallel, granularity: model, update: after_all}");
  CHECK(strategy("strategy: {name: parameter_server}") == "{name: parameter_server}");
  // A preset fixes the granularity; the all-reduce of a composition is that of data_parallel; stages are updated whole.
  CHECK(strategy("strategy: ddp") == "{name: ddp, first_bucket: 1 MiB, bucket: 2 MiB, update: after_all}");
  CHECK(
      strategy("strategy: {mesh: {data: 4}}") ==
      "{mesh: {data: 4}, synchronisation: {name: all_reduce, first_bucket: 1 MiB, bucket: 2 MiB, update: after_all}}");
  CHECK(strategy("strategy: {mesh: {data: 4}, synchronisation: all_reduce}") ==
        strategy("strategy: {mesh: {data: 4}, synchronisation: {name: all_reduce}}"));
  CHECK(strategy("strategy: {mesh: {pipeline: 2, data: 2}, synchronisation: {name: all_reduce, bucket: 8 MiB}}") ==
        "{mesh: {pipeline: 2, data: 2}, synchronisation: {name: all_reduce, bucket: 8 MiB, first_bucket: 1 MiB}}");
  CHECK(strategy("strategy: {mesh: {data: 4}, synchronisation: sharded}") ==
        "{mesh: {data: 4}, synchronisation: sharded}");
  // So do the replicas of stages.
  for (const std::string name : {"pipeline", "gpipe"})
    CHECK(strategy("strategy: {name: " + name + ", stages: 2}") ==
          "{name: " + name + ", stages: 2, first_bucket: 1 MiB, bucket: 2 MiB}");
}

TEST_CASE("a stack fills in how replicas share what they train, by the stage") {
  const SoftwareStack software =
      stack("strategies: {sharded_data_parallel: {unit: block}, zero1: {unit: 1 GB, overlap: false}}\n");
  const auto part = [&](const std::string& text) {
    return with_stack_defaults(
               ConfigNode::load_text("study: s\nstrategy: {mesh: {data: 4}, synchronisation: " + text + "}",
                                     "study.yaml"),
               software, builtin_strategies())
        .at("strategy")
        .at("synchronisation")
        .flow_text();
  };
  CHECK(part("sharded") == "{name: sharded, unit: block}");
  CHECK(part("{name: sharded, stage: 2}") == "{name: sharded, stage: 2, unit: block}");
  CHECK(part("{name: sharded, stage: 1}") == "{name: sharded, stage: 1, unit: 1 GB, overlap: false}");
  CHECK(part("{name: sharded, stage: 1, unit: 5 MB, overlap: true}") ==
        "{name: sharded, stage: 1, unit: 5 MB, overlap: true}");
}

TEST_CASE("a study that names no stack gets that of its strategy and devices") {
  Device accelerator, alone;
  accelerator.name = "gpu-0";
  accelerator.node = "node-0";
  alone.name = alone.node = "a";
  const auto stack = [](const std::string& strategy, const Device& device) {
    return usual_stack(ConfigNode::load_text(strategy, "strategy"), device);
  };
  CHECK(stack("ddp", accelerator) == "pytorch_ddp");
  CHECK(stack("fsdp", accelerator) == "pytorch_fsdp");
  CHECK(stack("zero1", accelerator) == "deepspeed");
  CHECK(stack("{name: zero3}", accelerator) == "deepspeed");
  CHECK(stack("horovod", accelerator) == "horovod");
  CHECK(stack("gossip", accelerator) == "pytorch_ddp");
  CHECK(stack("{mesh: {data: 4}, synchronisation: {name: average}}", accelerator) == "pytorch_ddp");
  CHECK(stack("hogwild", accelerator) == "ideal");
  CHECK(stack("parameter_server", accelerator) == "tensorflow1");
  CHECK(stack("{mesh: {data: 4}, synchronisation: {name: parameter_server}}", accelerator) == "tensorflow1");
  CHECK(stack("dist_device_sync", accelerator) == "mxnet");
  CHECK(stack("gpipe", accelerator) == "megatron");
  CHECK(stack("{mesh: {data: 4}}", accelerator) == "pytorch_ddp");
  CHECK(stack("{mesh: {data: rest, tensor: 1}}", accelerator) == "pytorch_ddp");
  CHECK(stack("{mesh: {data: rest}, synchronisation: {name: sharded, stage: 1}}", accelerator) == "pytorch_fsdp");
  CHECK(stack("{mesh: {data: rest}, synchronisation: server}", accelerator) == "ideal");
  CHECK(stack("{mesh: {data: rest, tensor: 2}, synchronisation: sharded}", accelerator) == "megatron");
  CHECK(stack("{mesh: {data: 4}, body: {name: layerwise}}", accelerator) == "megatron");
  CHECK(stack("{mesh: {tensor: 4}, body: filters}", accelerator) == "megatron");
  CHECK(stack("{mesh: {tensor: 4}, body: [{name: filters, exchange: root}]}", accelerator) ==
        stack("filter_parallel", accelerator));
  CHECK(stack("layerwise", accelerator) == "megatron");  // so that it compares with expert plans
  CHECK(stack("[1, 2]", accelerator) == "ideal");        // refused elsewhere
  CHECK(stack("ddp", alone) == "ideal");
  alone.model = "2x Intel Xeon Platinum 8180";
  CHECK(stack("ddp", alone) == "gloo");
  CHECK(stack("parameter_server", alone) == "gloo");
  CHECK(stack("{mesh: {pipeline: 2}}", alone) == "gloo");
  CHECK(stack("{mesh: {data: 4}, body: operators}", alone) == "ideal");
  CHECK(stack("single", alone) == "ideal");
  alone.other_rates[Precision::bf16] = FlopPerSecond(1e14);
  CHECK(stack("ddp", alone) == "pytorch_ddp");
}

TEST_CASE("what is run on TPUs is compiled by XLA") {
  Device tpu;
  tpu.name = tpu.node = "tpu-0";
  tpu.model = "Google TPU v4";
  const auto stack = [&](const std::string& strategy) {
    return usual_stack(ConfigNode::load_text(strategy, "strategy"), tpu);
  };
  for (const char* strategy : {"ddp", "data_parallel", "horovod", "fsdp", "zero1", "megatron", "gpipe",
                               "{mesh: {data: 4}}", "{mesh: {data: rest, tensor: 2}, synchronisation: sharded}"})
    CHECK(stack(strategy) == "xla");
  CHECK(stack("single") == "ideal");
  CHECK(stack("collective_benchmark") == "ideal");
  tpu.node = "node-0";  // shared with others, which is an accelerator's mark
  tpu.other_rates[Precision::bf16] = FlopPerSecond(2.75e14);
  CHECK(stack("ddp") == "xla");
}

TEST_CASE("stacks of one framework share what is its own") {
  const auto shipped = [](const char* name) {
    return ConfigNode::load_file(std::filesystem::path(EPOCAST_SOURCE_DIR) / "costmodels" / "stacks" /
                                 (std::string(name) + ".yaml"));
  };
  const auto same = [](const ConfigNode& a, const ConfigNode& b, const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      CAPTURE(key);
      REQUIRE(a.has(key));
      CHECK(a.at(key).flow_text() == b.at(key).flow_text());
    }
  };
  const ConfigNode ddp = shipped("pytorch_ddp");
  same(shipped("horovod_pytorch"), ddp,
       {"gradients", "accumulation", "update_traffic", "attention", "autocast", "update_accesses", "launch"});
  same(shipped("pytorch_compile"), ddp,
       {"strategies", "gradients", "copies", "accumulation", "update_traffic", "update_accesses", "spread"});
  same(shipped("mirrored"), shipped("horovod"),
       {"gradients", "accumulation", "update_traffic", "attention", "gelu", "launch"});
  same(shipped("horovod_pytorch"), shipped("horovod"), {"copies", "collective_overhead"});
  CHECK_FALSE(shipped("xla").has("launch"));
}

TEST_CASE("DeepSpeed's buckets are those of the stage") {
  const SoftwareStack software = load_stack(ConfigNode::load_text("deepspeed", "study.yaml"), EPOCAST_SOURCE_DIR);
  const auto unit = [&](const std::string& strategy) {
    return with_stack_defaults(ConfigNode::load_text("study: s\nstrategy: " + strategy, "study.yaml"), software,
                               builtin_strategies())
        .at("strategy")
        .at("unit")
        .as_string();
  };
  CHECK(unit("zero1") == "1 GB");
  CHECK(unit("zero2") == "1 GB");
  CHECK(unit("zero3") == "100 MB");
  CHECK(unit("{name: zero3, unit: 5 MB}") == "5 MB");
}

namespace {

/// Of two bytes, in the second of two layers, whose gradients and updates take 1 ms.
WorkloadTrace a_million_parameters() {
  WorkloadTrace trace;
  trace.precision = Precision::fp16;
  trace.layers.resize(2);
  trace.layers[1].parameters = Bytes(2e6);
  trace.layers[1].times.backward_weights = trace.layers[1].times.update = Seconds(1e-3);
  return trace;
}

Seconds streaming_at_1_tb() {
  Device device;
  device.memory_bandwidth = BytesPerSecond(1e12);
  return SoftwareStack::streaming_time(device);
}

}  // namespace

TEST_CASE("gradients of micro-batches are added up behind each layer's backward pass") {
  // A million parameters of two bytes, 12 bytes for each, and a memory of 1 TB/s of which 80 % are reached: 15 us,
  // three times in four micro-batches.
  const WorkloadTrace trace = a_million_parameters();
  const DeviceTime per_byte = streaming_at_1_tb();
  const auto adds = [&](const std::string& keys, int micro_batches) {
    WorkloadTrace made = trace;
    stack(keys).accumulate(made, micro_batches, per_byte);
    CHECK(made.layers[0].times.total().longest().value == 0);
    CHECK(made.layers[1].times.forward.longest().value == 0);
    return made.layers[1].times.backward_weights.longest().value - 1e-3;
  };
  CHECK(adds("accumulation: 12\n", 4) == Approx(15e-6 * 3 / 4));
  CHECK(adds("accumulation: 12\n", 1) == Approx(0).margin(1e-15));
  CHECK_FALSE(stack("copies: 1\n").accumulates());
}

TEST_CASE("updates move more than the optimizer's own bytes, by precision") {
  // A million parameters of 30 bytes, at 0.8 of 1 TB/s: 37.5 us, on top of the update.
  const WorkloadTrace trace = a_million_parameters();
  const auto update = [&](const std::string& keys) {
    WorkloadTrace made = trace;
    stack(keys).add_update_traffic(made, streaming_at_1_tb());
    CHECK_FALSE(made.layers[0].times.update.any());
    return made.layers[1].times.update.longest().value;
  };
  CHECK(update("update_traffic: {fp16: 30, bf16: 22}\n") == Approx(1e-3 + 37.5e-6));
  CHECK(update("update_traffic: {bf16: 22}\n") == 1e-3);
  const std::vector<std::pair<std::string, SoftwareStack>> without =
      stack("update_traffic: {fp16: 30}\n").without_each();
  REQUIRE(without.size() == 1);
  CHECK(without[0].first == "update_traffic");
}

TEST_CASE("each mechanism can be left out by itself") {
  const SoftwareStack software = stack("copies: 4\nspread: 0.1\ninterference: 0.2\naccumulation: 12\n");
  const auto without = software.without_each();
  REQUIRE(without.size() == 4);
  CHECK(without[0].first == "copies");
  CHECK(without[0].second.copies() == 0);
  CHECK(without[0].second.spread() == 0.1);
  CHECK(without[1].first == "accumulation");
  CHECK_FALSE(without[1].second.accumulates());
  CHECK(without[2].first == "interference");
  CHECK(without[2].second.interference() == 0);
  CHECK(without[3].first == "spread");
  CHECK(Changed(without[3].second, 2)(&LayerTimes::forward) == 1);
}

TEST_CASE("stacks that ship say where their numbers come from") {
  const std::filesystem::path folder = std::filesystem::path(EPOCAST_SOURCE_DIR) / "costmodels" / "stacks";
  const std::vector<std::string> names = data_file_names(folder, ".yaml");
  CHECK(names.size() >= 8);
  for (const std::string& name : names) {
    CAPTURE(name);
    const ConfigNode root = ConfigNode::load_file(folder / (name + ".yaml"));
    CHECK(SoftwareStack(root).name() == name);
    CHECK(!root.at("source").as_string().empty());
  }
}

TEST_CASE("stacks that make no sense are refused") {
  const auto said = [](const std::string& keys) { return testing::message([&] { stack(keys); }); };
  CHECK(said("spred: 0.1\n").find("stack.yaml:2:1: spred: unknown key 'spred' (did you mean 'spread'?)") !=
        std::string::npos);
  CHECK(said("interference: 1\n").find("interference") != std::string::npos);
  CHECK(said("processor_rate: 0 B/s\n").find("processor_rate") != std::string::npos);
  CHECK(said("input: {per_node: 0}\n").find("input.per_node") != std::string::npos);
  CHECK(said("gradients: fp31\n").find("did you mean 'fp32'") != std::string::npos);
}

TEST_CASE("a forecast's interval: what constants at the ends of their ranges change, as a root of squares") {
  const SoftwareStack software = stack(
      "spread: 0.02\ninterference: 0.5\nunexplained: 0.1\n"
      "ranges: {spread: [0, 0.05], interference: [0.4, 0.6]}\n");
  // 100 s + 1000 s x spread + 10 s x interference = 125 s
  const auto forecasts = [](const std::vector<SoftwareStack>& others) {
    std::vector<double> out;
    for (const SoftwareStack& s : others) out.push_back(100 + 1000 * s.spread() + 10 * s.interference());
    return out;
  };
  const ForecastInterval interval = interval_of(125, software, forecasts);
  CHECK(interval.low == Approx(125 - std::sqrt(20. * 20 + 1 + std::pow(125 - 125 / 1.1, 2))));
  CHECK(interval.high == Approx(125 + std::sqrt(30. * 30 + 1 + 12.5 * 12.5)));
  const ForecastInterval among = interval_among_steps(125, std::log(1.25));
  CHECK(among.low == Approx(100));
  CHECK(among.high == Approx(156.25));
  const ForecastInterval also = interval_of(125, stack("spread: 0.02\n"), forecasts, 0.25);
  CHECK(also.low == Approx(100));
  CHECK(also.high == Approx(156.25));
  const ForecastInterval none = interval_of(125, stack("spread: 0.02\n"), forecasts);
  CHECK(none.low == 125);
  CHECK(none.high == 125);
  // The share of kernels' sums is the caller's to add.
  CHECK(stack("unexplained_kernels: 0.3\n").unexplained_kernels() == 0.3);
  const ForecastInterval of_kernels = interval_of(125, stack("unexplained_kernels: 0.3\n"), forecasts);
  CHECK(of_kernels.high == 125);
  using Catch::Contains;
  CHECK_THAT(testing::message([] { stack("spread: 0.1\nranges: {spread: [0]}\n"); }), Contains("must be [low, high]"));
  CHECK_THAT(testing::message([] { stack("ranges: {spread: [0, 1]}\n"); }),
             Contains("ranges.spread: is a range of a key"));
  CHECK_THAT(testing::message([] { stack("spread: 0.1\nranges: {spred: [0, 1]}\n"); }),
             Contains("did you mean 'spread'?"));
}

}  // namespace epocast::software_stack_test
