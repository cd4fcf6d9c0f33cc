// Cost models: times computed by hand from their formulas on round numbers; anchors and measured points are returned
// exactly; bad timings files are refused with file and line.
#include <catch2/catch.hpp>

#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "costmodels/corrected.hpp"
#include "costmodels/interpolation.hpp"
#include "costmodels/measured_table.hpp"
#include "costmodels/register.hpp"
#include "costmodels/roofline.hpp"
#include "costmodels/step_time.hpp"
#include "sim/memory.hpp"
#include "tests/support/error_message.hpp"
#include "workloads/model_reader.hpp"
#include "workloads/trace_writer.hpp"

namespace epocast::cost_model_test {

using epocast::testing::message;

namespace {

const std::filesystem::path kRoot = EPOCAST_SOURCE_DIR;

// Times below are sums of a few products of doubles.
constexpr double kRounding = 1e-12;

Device device() {
  Device out;
  out.name = "d0";
  out.peak_rate = FlopPerSecond(1e9);
  out.memory_bandwidth = BytesPerSecond(1e9);
  return out;
}

/// fc1: 1000 -> 100 (100,100 parameters, 2e5 FLOP per pass); fc2: 100 -> 10 (1,010 parameters).
Model mlp() {
  return parse_model(
      "model: mlp\ninput: {channels: 1000}\nlayers: [{fc: fc1, units: 100, bias: true}, relu, {fc: fc2, units: 10}]\n",
      "mlp.yaml");
}

std::unique_ptr<CostModel> make(const std::string& compute, const Model& model, const Device& on) {
  const ConfigNode node = ConfigNode::load_text(compute, "study.yaml");
  auto out = make_cost_model(node, {.data_dir = kRoot, .model = &model, .device = &on});
  node.check_all_read();
  return out;
}

const std::string kHead = "# device: x\n# source: y\n# precision: fp32\n";
const std::string kColumns = "layer,kind,batch,forward_s,backward_data_s,backward_weights_s,update_s\n";

TimingsFile timings(const std::string& rows, const std::string& head = kHead, const std::string& columns = kColumns) {
  std::istringstream in(head + columns + rows);
  return read_timings(in, "t.csv");
}

}  // namespace

TEST_CASE("roofline: overhead plus the longer of computing and moving data") {
  const Roofline model({.efficiency = 0.5, .memory_efficiency = 0.5, .overhead = Seconds(1e-3)});
  const Model net = mlp();
  const Layer& fc1 = net.layers[1];

  // One sample: 2e5 FLOP at 0.5e9 FLOP/s = 0.4 ms; 4 B x (1000 + 100 + 100,100) = 404,800 B at 0.5e9 B/s = 0.8096 ms.
  const PassTimes one = model.times(fc1, 1, device());
  CHECK(one.forward.value == Approx(1e-3 + 0.8096e-3).epsilon(kRounding));
  CHECK(one.backward_data.value == 0);  // the input is the data
  CHECK(one.backward_weights.value == Approx(one.forward.value).epsilon(kRounding));
  // SGD: 3 x 4 B x 100,100 at 0.5e9 B/s = 2.4024 ms, and a kernel for each of weight and bias.
  CHECK(one.update.value == Approx(2e-3 + 2.4024e-3).epsilon(kRounding));

  // 1000 samples: 2e8 FLOP = 400 ms; 4 B x (1.1e6 + 100,100) = 4,800,400 B = 9.6 ms: computing is longer.
  CHECK(model.times(fc1, 1000, device()).forward.value == Approx(1e-3 + 0.4).epsilon(kRounding));
  CHECK(model.times(net.layers[3], 1000, device()).backward_data.value > 0);

  const Roofline momentum({.overhead = Seconds(0), .optimizer = Optimizer::momentum});
  const Roofline sgd({.overhead = Seconds(0), .optimizer = Optimizer::sgd});
  CHECK(momentum.times(fc1, 1, device()).update / sgd.times(fc1, 1, device()).update ==
        Approx(5.0 / 3).epsilon(kRounding));
}

TEST_CASE("roofline needs the device's rates") {
  const Roofline model({});
  CHECK_THAT(message([&] { model.times(mlp().layers[1], 1, Device{}); }), Catch::Contains("peak rate"));
}

TEST_CASE("time by batch: linear between points, sane outside") {
  const TimeByBatch points{{10, 2}, {20, 3}};
  CHECK(time_at(points, 10) == 2);
  CHECK(time_at(points, 15) == Approx(2.5).epsilon(kRounding));
  CHECK(time_at(points, 40) == Approx(5).epsilon(kRounding));   // 1 + 0.1 x batch
  CHECK(time_at(points, 1) == Approx(1.1).epsilon(kRounding));  // the fixed part remains
  CHECK(time_at({{10, 2}}, 5) == 1);
  // Steeper than proportional: the line would fall below 0 at batch 10; proportional is the floor.
  CHECK(time_at({{20, 1}, {40, 10}}, 10) == Approx(0.5).epsilon(kRounding));
  // Falling: never below the last time.
  CHECK(time_at({{20, 10}, {40, 1}}, 1000) == 1);
}

TEST_CASE("an anchor scales the passes; updates, which may run elsewhere, keep their time") {
  const Model net = mlp();
  const Device on = device();
  const auto update = [&](const CostModel& model) {
    Seconds sum;
    for (const LayerTrace& layer : make_trace(net, model, 32, on).layers) sum += layer.times.update.longest();
    return sum.value;
  };
  const double plain = update(*make("{}", net, on));
  for (const char* step : {"1.9 s", "100 ms"}) {
    const auto anchored = make(std::string("{step_time: {batch: 32, time: ") + step + "}}", net, on);
    CHECK(update(*anchored) == Approx(plain).epsilon(kRounding));
    CHECK(make_trace(net, *anchored, 32, on).compute_time().longest().value ==
          Approx(step == std::string("1.9 s") ? 1.9 : 0.1).epsilon(kRounding));
  }
  CHECK_THAT(message([&] { make("{step_time: {batch: 32, time: 1 ns}}", net, on); }),
             Catch::Contains("leaves no time for passes"));
}

TEST_CASE("a fused update launches one kernel for all parameters, of which each layer has its share") {
  const Model net = mlp();
  const Device on = device();
  const auto updates = [&](UpdateKernels kernels, double overhead) {
    const Roofline model({.overhead = Seconds(overhead), .update_kernels = kernels});
    std::vector<double> times;
    for (const Layer& layer : net.layers) times.push_back(model.times(layer, 32, on).update.value);
    return times;
  };
  const std::vector<double> bare = updates({}, 0), single = updates({}, 1e-3),
                            fused = updates(UpdateKernels(net), 1e-3);
  double launches = 0;
  for (std::size_t l = 0; l < net.layers.size(); ++l) {
    CHECK(single[l] - bare[l] == Approx(1e-3 * static_cast<double>(net.layers[l].parameters.size())).margin(1e-12));
    launches += fused[l] - bare[l];
  }
  CHECK(launches == Approx(1e-3).epsilon(kRounding));
  // Corrected adds its overhead to an update as often.
  const auto total = [&](UpdateKernels kernels) {
    double sum = 0;
    const Corrected model(std::make_unique<Roofline>(RooflineOptions{.overhead = Seconds(0)}), net,
                          {.kernel_overhead = Seconds(1e-3)}, kernels);
    for (const Layer& layer : net.layers) sum += model.times(layer, 32, on).update.value;
    return sum;
  };
  double with_parameters = 0;
  for (const Layer& layer : net.layers) with_parameters += layer.parameters.empty() ? 0 : 1;
  CHECK(total({}) - total(UpdateKernels(net)) == Approx(1e-3 * (with_parameters - 1)).epsilon(1e-9));
}

TEST_CASE("an update moves as often as its operations say") {
  const Model net = mlp();
  const Device on = device();
  const auto update = [&](UpdateKernels kernels) {
    const Roofline model({.overhead = Seconds(0), .optimizer = Optimizer::adam, .update_kernels = kernels});
    return model.times(net.layers.back(), 32, on).update.value;
  };
  UpdateKernels by_operation(net);
  by_operation.set_accesses(33);
  CHECK(update(by_operation) == Approx(33.0 / 7 * update(UpdateKernels(net))).epsilon(kRounding));
}

TEST_CASE("an anchored step takes the given time; shares stay") {
  const Model net = mlp();
  const Device on = device();
  const auto plain = make("{}", net, on);
  const auto anchored = make("{step_time: {batch: 32, time: 1.9 s}}", net, on);
  CHECK(make_trace(net, *anchored, 32, on).compute_time().longest().value == Approx(1.9).epsilon(kRounding));
  // One point: the same factor at every batch size.
  double updates = 0;
  for (const LayerTrace& layer : make_trace(net, *plain, 32, on).layers) updates += layer.times.update.longest().value;
  const double factor = (1.9 - updates) / (make_trace(net, *plain, 32, on).compute_time().longest().value - updates);
  CHECK(anchored->times(net.layers[1], 8, on).forward / plain->times(net.layers[1], 8, on).forward ==
        Approx(factor).epsilon(kRounding));
  CHECK(anchored->caveats(32).empty());
  CHECK(anchored->caveats(64).size() == 1);

  const auto two = make("{step_time: [{batch: 32, time: 2 s}, {batch: 64, time: 3 s}]}", net, on);
  CHECK(make_trace(net, *two, 32, on).compute_time().longest().value == Approx(2).epsilon(kRounding));
  CHECK(make_trace(net, *two, 48, on).compute_time().longest().value == Approx(2.5).epsilon(kRounding));
  CHECK(make_trace(net, *two, 96, on).compute_time().longest().value == Approx(4).epsilon(kRounding));
  CHECK(make_trace(net, *two, 16, on).compute_time().longest().value == Approx(1.5).epsilon(kRounding));

  // A device of half the rates takes longer by what the inner model says.
  Device slow = on;
  slow.peak_rate = slow.peak_rate * 0.5;
  CHECK(make_trace(net, *two, 32, slow).compute_time().longest() > Seconds(2));
}

TEST_CASE("of a network whose layers are not known, passes take in proportion to their samples") {
  Model net = mlp();
  net.opaque = true;
  const Device on = device();
  const auto anchored = make("{step_time: {batch: 32, time: 1.9 s}}", net, on);
  const auto [update, passes] = [&] {
    Seconds updates, all;
    for (const LayerTrace& layer : make_trace(net, *anchored, 32, on).layers) {
      updates += layer.times.update.longest();
      all += layer.times.total().longest();
    }
    return std::pair(updates.value, (all - updates).value);
  }();
  for (const int batch : {1, 8, 32, 100}) {
    CAPTURE(batch);
    CHECK(make_trace(net, *anchored, batch, on).compute_time().longest().value ==
          Approx(update + passes * batch / 32).epsilon(kRounding));
  }
}

TEST_CASE("measured times are returned as they are, interpolated between batches, with a caveat outside") {
  const Model net = mlp();
  const MeasuredTable table(timings("fc1,fully_connected,10,2,0,4,0.5\n"
                                    "fc1,fully_connected,20,3,0,6,0.5\n"
                                    "fc2,fully_connected,10,1,1,1,\n"
                                    "fc2,fully_connected,20,2,2,2,\n",
                                    kHead + "# other_layers: zero\n"),
                            Optimizer::sgd);
  table.check_covers(net);
  const PassTimes at15 = table.times(net.layers[1], 15, device());
  CHECK(at15.forward.value == Approx(2.5).epsilon(kRounding));
  CHECK(at15.backward_data.value == 0);
  CHECK(at15.backward_weights.value == Approx(5).epsilon(kRounding));
  CHECK(at15.update.value == 0.5);
  CHECK(table.times(net.layers[1], 20, device()).forward.value == 3);
  CHECK(table.times(net.layers[2], 20, device()).total().value == 0);  // relu, contained in others
  // Not measured: 3 x 4 B x 1,010 at 0.8e9 B/s.
  CHECK(table.times(net.layers[3], 20, device()).update.value == Approx(12 * 1010 / 0.8e9).epsilon(kRounding));
  CHECK(table.caveats(10).empty());
  CHECK(table.caveats(20).empty());
  CHECK_THAT(table.caveats(21).at(0), Catch::Contains("batch 21 is extrapolated"));
}

TEST_CASE("of measured times, those of gradients that nobody needs are left out") {
  const MeasuredTable table(
      timings("fc1,fully_connected,10,2,0,4,\nfc2,fully_connected,10,1,8,16,\n", kHead + "# other_layers: zero\n"),
      Optimizer::sgd);
  const auto trace = [&](const Model& net) { return make_trace(net, table, 10, device()).compute_time().longest(); };
  // Forward 2 + 1, backward 4 + 8 + 16, and 12 bytes at 0.8 GB/s for each of 100,100 and 1,010 parameters.
  CHECK(trace(mlp()).value == Approx(31 + 12 * 101'110 / 0.8e9).epsilon(kRounding));
  // Behind a frozen layer only fc2's own gradient, 16, is made.
  Model second_only = mlp();
  const Model frozen = untrained(mlp());
  for (std::size_t l = 0; l < second_only.layers.size() && second_only.layers[l].name != "fc2"; ++l)
    second_only.layers[l] = frozen.layers[l];
  REQUIRE(second_only.layers.back().name != "fc1");
  for (Layer& layer : second_only.layers)
    if (layer.name == "fc2") layer.backward_data_flop = 0;
  CHECK(trace(second_only).value == Approx(3 + 16 + 12 * 1010 / 0.8e9).epsilon(kRounding));
  // An evaluation makes none.
  CHECK(trace(untrained(mlp())).value == 3);
}

TEST_CASE("measured times on another device come with a caveat") {
  Device on = device();
  const auto caveats = [&](const std::string& model) {
    on.model = model;
    return make("{cost_model: measured, timings: skylake_tf1_vgg16}", load_model(kRoot / "workloads/models/vgg16.yaml"),
                on)
        ->caveats(32);
  };
  CHECK(caveats("2x Intel Xeon Platinum 8180").empty());  // the file's "(inferred ...)" is no difference
  CHECK(caveats("NVIDIA H100 SXM5 80GB") ==
        std::vector<std::string>{"timings 'skylake_tf1_vgg16' are of 2x Intel Xeon Platinum 8180 (inferred from 112 "
                                 "logical cores a node); the platform's device is NVIDIA H100 SXM5 80GB"});
}

TEST_CASE("timings that do not fit the model are refused") {
  const Model net = mlp();
  const auto check = [&](const std::string& rows, const std::string& head) {
    return message([&] { MeasuredTable(timings(rows, head), Optimizer::sgd).check_covers(net); });
  };
  const std::string zero = kHead + "# other_layers: zero\n";
  const std::string fc1 = "fc1,fully_connected,10,1,0,1,\n";
  const std::string fc2 = "fc2,fully_connected,10,1,1,1,\n";
  CHECK(check(fc1 + fc2, zero) == "no error");
  CHECK_THAT(check(fc1 + fc2, kHead), Catch::Contains("fc1.relu") && Catch::Contains("other_layers"));
  CHECK_THAT(check(fc1, zero), Catch::StartsWith("t.csv:6: layer: has no row for layer 'fc2'"));
  CHECK_THAT(check(fc1 + fc2 + "fc3,fully_connected,10,1,1,1,\n", zero),
             Catch::StartsWith("t.csv:8: layer: model 'mlp'"));
  CHECK_THAT(check(fc1 + "fc2,convolution,10,1,1,1,\n", zero), Catch::StartsWith("t.csv:7: kind"));
  CHECK_THAT(check(fc1 + "fc2,fully_connected,10,1,0,1,\n", zero), Catch::Contains("is 0 for layer 'fc2' at batch 10"));
}

TEST_CASE("bad timings files are refused with file and line") {
  struct Mistake {
    std::string rows, expected;
    std::string head = kHead, columns = kColumns;
  };
  const std::string good = "a,convolution,1,1,1,1,1\n";
  const std::vector<Mistake> mistakes{
      {"a,convolution,1,nan,1,1,1\n", "t.csv:5:17: forward_s"},
      {"a,convolution,1,inf,1,1,1\n", "t.csv:5:17: forward_s"},
      {"a,convolution,1,-1,1,1,1\n", "t.csv:5:17: forward_s"},
      {"a,convolution,1,0,1,1,1\n", "t.csv:5:17: forward_s"},
      {"a,convolution,1,1,1,0,1\n", "t.csv:5:21: backward_weights_s"},
      {"a,convolution,1,1 ms,1,1,1\n", "t.csv:5:17: forward_s"},
      {"a,convolution,1,1e9,1,1,1\n", "t.csv:5:17: forward_s"},
      {"a,convolution,1,,1,1,1\n", "t.csv:5:17: forward_s"},
      {"a,convolution,0,1,1,1,1\n", "t.csv:5:15: batch"},
      {"a,convolution,1.5,1,1,1,1\n", "t.csv:5:15: batch"},
      {"a,convolutoin,1,1,1,1,1\n", "did you mean 'convolution'"},
      {",convolution,1,1,1,1,1\n", "t.csv:5:1: layer"},
      {"a,convolution,1,1,1,1\n", "6 fields instead of 7"},
      {good + good, "t.csv:6:1: layer: there is already a row"},
      {"", "no timings"},
      {good, "unknown column 'forwrd_s' (did you mean 'forward_s'?)", kHead,
       "layer,kind,batch,forwrd_s,backward_data_s,backward_weights_s,update_s\n"},
      {good, "column 'update_s' is missing", kHead, "layer,kind,batch,forward_s,backward_data_s,backward_weights_s\n"},
      {good, "appears twice", kHead, "layer,layer,kind,batch,forward_s,backward_data_s,backward_weights_s,update_s\n"},
      {good, "device: is missing", "# source: y\n# precision: fp32\n"},
      {good, "only fp32", "# device: x\n# source: y\n# precision: fp16\n"},
      {good, "is given twice", kHead + "# device: z\n"},
      {good, "did you mean 'threads'", kHead + "# thread: 4\n"},
      {good, "must be 'zero'", kHead + "# other_layers: none\n"},
  };
  for (const Mistake& mistake : mistakes) {
    INFO(mistake.head << mistake.columns << mistake.rows);
    const std::string text = message([&] { timings(mistake.rows, mistake.head, mistake.columns); });
    CHECK_THAT(text, Catch::Contains(mistake.expected));
    CHECK_THAT(text, Catch::StartsWith("t.csv:"));
  }
  CHECK_THAT(message([] { load_timings("no_such.csv"); }), Catch::Contains("no_such.csv"));
}

TEST_CASE("shipped timings: the VGG-16 step on Skylake is the published one") {
  const Model vgg = load_model(kRoot / "workloads/models/vgg16.yaml");
  const auto skylake = make("{cost_model: measured, timings: skylake_tf1_vgg16}", vgg, device());
  // Eserol 2019, Table 5.15, N=1, batch 32: 9536 s for 102,400 images; times in the file have nine digits.
  CHECK(make_trace(vgg, *skylake, 32, device()).compute_time().longest().value == Approx(9536.0 / 3200).epsilon(1e-8));
  const auto gpu = make("{cost_model: measured, timings: pipedream_vgg16}", vgg, device());
  CHECK(make_trace(vgg, *gpu, 64, device()).compute_time().longest() > Seconds(0));
}

TEST_CASE("a study's compute map: defaults, unknown names and keys") {
  const Model net = mlp();
  const Device on = device();
  const auto fails = [&](const std::string& compute) { return message([&] { make(compute, net, on); }); };
  CHECK(fails("{cost_model: roofline, efficiency: 0.4, memory_efficiency: 0.7, overhead: 5 us}") == "no error");
  CHECK_THAT(fails("{cost_model: rofline}"), Catch::Contains("did you mean 'roofline'"));
  CHECK_THAT(fails("{cost_model: measured}"), Catch::Contains("timings"));
  CHECK_THAT(fails("{cost_model: measured, timings: skylake}"), Catch::Contains("unknown timings 'skylake'"));
  CHECK_THAT(fails("{cost_model: measured, timings: pipedream_vgg16}"),
             Catch::Contains("model 'mlp'") || Catch::Contains("no row for layer 'fc1'"));
  CHECK_THAT(fails("{efficiency: 0}"), Catch::Contains("efficiency"));
  CHECK_THAT(fails("{efficeincy: 0.5}"), Catch::Contains("did you mean 'efficiency'"));
  CHECK_THAT(fails("{step_time: {batch: 32, time: 1.9}}"), Catch::Contains("step_time.time"));
  CHECK_THAT(fails("{step_time: {batch: 0, time: 1 s}}"), Catch::Contains("step_time.batch"));
  CHECK_THAT(fails("{step_time: {batch: 32, time: 0 s}}"), Catch::Contains("step_time.time"));
  CHECK_THAT(fails("{step_time: []}"), Catch::Contains("step_time"));
  CHECK_THAT(fails("{step_time: [{batch: 1, time: 1 s}, {batch: 1, time: 2 s}]}"),
             Catch::Contains("already a step time"));
  CHECK_THAT(fails("roofline"), Catch::Contains("must be a map"));
}

TEST_CASE("every registered cost model documents its parameters") {
  for (const EntryInfo& info : make_cost_model_registry({}).infos()) {
    INFO(info.name);
    CHECK(!info.description.empty());
    CHECK(!info.parameters.empty());
    for (const ParameterInfo& parameter : info.parameters) {
      INFO(parameter.name);
      CHECK(!parameter.range.empty());
      CHECK(!parameter.default_value.empty());
      CHECK(!parameter.description.empty());
    }
  }
}

TEST_CASE("the trace carries bytes, gradients and memory; its text reads back") {
  const Model net = mlp();
  const WorkloadTrace trace = make_trace(net, Roofline({}), 10, device());
  CHECK(trace.layers.size() == net.layers.size());
  CHECK(trace.layers[0].times.total().longest().value == 0);
  CHECK(trace.layers[1].gradients.at(0).bytes.value == 4 * 1000 * 100);
  CHECK(trace.layers[1].output.value == 4 * 10 * 100);
  CHECK(trace.parameter_bytes().value == 4 * (100'100 + 1'010));
  // kept: input 1000, relu 100 (in place of fc1's output), fc2 10 (for the loss)
  const MemoryUse memory = replica_memory(trace, Optimizer::adam);
  CHECK(memory.activations.value == 4 * 10 * 1110);
  CHECK(memory.optimizer_state.value == 2 * memory.parameters.value);
  // The peak is fc2's backward pass, with the gradients of its 10 outputs and 100 inputs.
  CHECK(memory.activation_gradients.value == 4 * 10 * 110);
  CHECK(memory.moment == "backward fc2");
  CHECK(memory.total().value ==
        4 * memory.parameters.value + memory.activations.value + memory.activation_gradients.value);

  std::ostringstream csv;
  write_trace_csv(csv, trace);
  CHECK_THAT(csv.str(), Catch::StartsWith("layer,kind,inputs,forward_s,"));
  CHECK_THAT(csv.str(), Catch::Contains("\nfc1,fully_connected,input,"));
  std::ostringstream text;
  write_trace_json(text, trace);
  const auto document = nlohmann::json::parse(text.str());
  CHECK(document["batch"] == 10);
  CHECK(document["layers"][1]["forward_s"] == trace.layers[1].times.forward.longest().value);
  CHECK(document["layers"][3]["inputs"][0] == "fc1.relu");
  CHECK(document["layers"][1]["gradients"].size() == 2);
}

TEST_CASE("batch sizes below 1 make no trace; optimizers have names") {
  CHECK_THROWS_AS(make_trace(mlp(), Roofline({}), 0, device()), ConfigError);
  for (const std::string& name : optimizer_names()) CHECK(to_string(parse_optimizer(name)) == name);
  CHECK_THROWS_AS(parse_optimizer("sdg"), std::invalid_argument);
  // Weight, gradient, weight; both moments in and out; LAMB: all gradients for their norm, weights and updates for
  // theirs, and a step that reads both and writes one.
  CHECK(optimizer_accesses(Optimizer::adam) == 3 + 2 * 2);
  CHECK(optimizer_accesses(Optimizer::lion) == 3 + 2);
  CHECK(optimizer_accesses(Optimizer::lamb) == 7 + 1 + 2 + 3);
  // By operation, a scaling being 2 and a sum 3: decay and step; momentum between them; decay, two moments, root,
  // correction, epsilon, and a step that reads three.
  CHECK(foreach_accesses(Optimizer::sgd) == 3 + 3);
  CHECK(foreach_accesses(Optimizer::momentum) == 3 + 2 + 3 + 3);
  CHECK(foreach_accesses(Optimizer::adam) == 2 + 3 + (2 + 3) + 2 + 2 + 2 + 4);
  CHECK(foreach_accesses(Optimizer::lion) == 2 + (2 + 2 + 3 + 2) + 3 + (2 + 3));
  CHECK(foreach_accesses(Optimizer::lamb) == 1 + 2 + (2 + 3) + (2 + 3) + (2 + 2 + 2) + (2 + 3) + 3 + (1 + 1) + 2 + 3);
  CHECK(optimizer_bytes_per_value(Optimizer::lion, Precision::bf16) == 4 + 4);  // moment, copy of the weight
  CHECK(optimizer_bytes_per_value(Optimizer::lamb, Precision::bf16) == 8 + 4);
}

}  // namespace epocast::cost_model_test
