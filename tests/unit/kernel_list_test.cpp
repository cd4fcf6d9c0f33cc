// Measuring kernels here: which there are in a training step, and how what was timed becomes measurements and timings.
#include <catch2/catch.hpp>

#include <sstream>
#include <string>

#include "costmodels/measured_table.hpp"
#include "experiments/calibrate/kernel_list.hpp"
#include "experiments/calibrate/microbench.hpp"
#include "experiments/calibrate/step_check.hpp"
#include "sim/cost_model.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::kernel_list_test {

namespace {

// Two equal convolutions, of which only the second passes a gradient on; its output has two readers.
const char* const kModel = R"(
model: small
input: {channels: 8, height: 4, width: 4}
layers:
  - {conv: a, filters: 8, kernel: 3, padding: 1, bias: false}
  - {conv: b, filters: 8, kernel: 3, padding: 1, bias: false}
  - {batch_norm: n}
  - {add: s, inputs: [b, n]}
  - {fc: f, units: 10}
  - {softmax: p}
)";

MeasuredPass pass(const std::string& layer, const std::string& name, int kernel, double time) {
  return {.model = "small.yaml",
          .batch = 2,
          .layer = layer,
          .pass = name,
          .kernel = kernel,
          .repetitions = 7,
          .time = Seconds(time),
          .fastest = Seconds(time / 2),
          .spread = 0.125};
}

/// As epocast_microbench would time the model: powers of two, so that sums tell what they consist of.
MeasuredKernels measured_small() {
  MeasuredKernels m;
  m.device = "a CPU, 1 core";
  m.library = "a library";
  m.date = "2026-01-31";
  m.threads = "1";
  m.peak_rate = FlopPerSecond(1e11);
  m.memory_bandwidth = BytesPerSecond(1e10);
  m.units = 1;
  m.passes = {pass("a", "forward", 0, 1),
              pass("b", "forward", 0, 1),
              pass("n", "forward", 1, 2),
              pass("s", "forward", 2, 4),
              pass("f", "forward", 3, 8),
              pass("p", "forward", 4, 16),
              pass("p", "backward_data", 5, 32),
              pass("f", "backward_data", 6, 64),
              pass("f", "backward_weights", 7, 128),
              pass("n", "backward", 8, 256),
              pass("b", "gradient_sum", 9, 512),
              pass("b", "backward_data", 10, 1024),
              pass("b", "backward_weights", 11, 2048),
              pass("a", "backward_weights", 11, 2048),
              pass("a", "update", 12, 4096),
              pass("", "step", -1, 12000)};
  return m;
}

}  // namespace

TEST_CASE("kernels of a step: layers, sums of gradients, updates") {
  const Model model = parse_model(kModel, "small.yaml");
  const auto text = [&](int layer, const char* name) {
    const auto kernel = step_kernel(model, layer, 2, name, Optimizer::momentum);
    return kernel ? std::string(kernel->family()) + " " + to_string(kernel->pass) + " " + kernel->text() : "none";
  };
  CHECK(text(1, "forward") == "convolution forward n=2 c=8 h=4 w=4 k=8 r=3 s=3 oh=4 ow=4 stride=1");
  CHECK(text(1, "backward_data") == "none");  // nothing before it is trained
  // Momentum reads and writes 5 values for each of the 8 x 8 x 9 weights.
  CHECK(text(1, "update") == "memory forward op=update_momentum values=" + std::to_string(5 * 8 * 8 * 9));
  CHECK(text(4, "update") == "none");
  // b's output is read twice: two gradients in and one out, each 2 samples of 8 x 4 x 4.
  CHECK(text(2, "gradient_sum") == "memory backward_data op=gradient_sum values=" + std::to_string(3 * 2 * 128));
  CHECK(text(1, "gradient_sum") == "none");
  // Batch norm: input, output, and 2 x 8 parameters.
  CHECK(text(3, "backward") ==
        "memory backward op=batch_norm values=" + std::to_string(2 * 2 * 128 + 16) + " channels=8");
}

TEST_CASE("the list of kernels names each distinct one once") {
  const Model model = parse_model(kModel, "small.yaml");
  std::ostringstream out;
  write_kernel_list(out, {model, model}, {2}, Optimizer::sgd);
  std::istringstream in(out.str());
  const CsvTable table = CsvTable::read(in, "list");
  // Forward: a and b are the same, n, s, f, p: 5. Backward data: b, n, f, p: 4 (an addition has none). Backward
  // weights: a and b the same, n, f: 3. Gradient sum: b. Updates: a and b the same, n, f: 3.
  CHECK(table.rows().size() == 5 + 4 + 3 + 1 + 3);
  for (const CsvRow& row : table.rows())
    CHECK_NOTHROW(parse_kernel_shape(row.text("operator"), row.text("pass"), row.text("shape")));
}

TEST_CASE("timed kernels become measurements, each distinct one once, and read back with repetitions and spread") {
  const Model model = parse_model(kModel, "small.yaml");
  MeasureOptions options;
  options.models = {"small.yaml"};
  options.batches = {2};
  const KernelMeasurements m = to_kernel_measurements(measured_small(), {model}, options);
  CHECK(m.timings.size() == 13);  // kernels 0 to 12; the step is none
  std::ostringstream out;
  write_kernel_measurements(out, m, "");
  std::istringstream in(out.str());
  const CsvTable table = CsvTable::read(in, "m.csv");
  const KernelMeasurements back = read_kernel_measurements(table);
  REQUIRE(back.timings.size() == m.timings.size());
  for (std::size_t i = 0; i < m.timings.size(); ++i) {
    CHECK(back.timings[i].shape.text() == m.timings[i].shape.text());
    CHECK(back.timings[i].time.value == m.timings[i].time.value);
    CHECK(back.timings[i].repetitions == 7);
    CHECK(back.timings[i].spread == 0.125);
  }
  CHECK(back.threads == "1");
  CHECK(back.library == "a library");
}

TEST_CASE("timed kernels become layer timings whose trace is the sum of all kernels") {
  const Model model = parse_model(kModel, "small.yaml");
  const std::string text = to_layer_timings(measured_small(), model, "small.yaml");
  std::istringstream in(text);
  const MeasuredTable table(read_timings(in, "t.csv"), Optimizer::sgd);
  table.check_covers(model);
  const WorkloadTrace trace = make_trace(model, table, 2, Device{});
  CHECK(trace.layers[2].times.backward_data.longest().value == 512 + 1024);  // with the sum of gradients
  CHECK(trace.layers[3].times.backward_data.longest().value == 128);  // both gradients in one kernel: half to each
  CHECK(trace.layers[3].times.backward_weights.longest().value == 128);
  // 1 + 1 + 2 + 4 + ... + 1024 is 2048; twice 2048 for the two gradients of weights; 4096 for the update.
  CHECK(trace.compute_time().longest().value == 2048 + 2 * 2048 + 4096);

  MeasureOptions options;
  options.models = {"small.yaml"};
  options.batches = {2};
  const std::vector<CheckedStep> steps = check_steps(measured_small(), {model}, options);
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].predicted.value == 10240);
  CHECK(steps[0].predicted_fastest.value == 5120);
  CHECK(steps[0].error() == Approx(10240.0 / 12000 - 1));
  CHECK((steps[0].kernels == 15 && steps[0].distinct == 13));
  std::ostringstream out;
  CHECK_FALSE(print_check(out, measured_small(), steps));  // -14.7 %
  CHECK_THAT(out.str(), Catch::Contains("-14.7 %") && Catch::Contains("missed"));
}

}  // namespace epocast::kernel_list_test
