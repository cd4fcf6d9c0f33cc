// Importing measurements: each format gives the shapes and times that were written, and every mistake in one is refused
// with its file and line.
#include <unistd.h>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "costmodels/kernel_measurements.hpp"
#include "costmodels/network_calibration.hpp"
#include "experiments/calibrate/import.hpp"
#include "experiments/calibrate/import_network.hpp"
#include "sim/error.hpp"

namespace epocast::import_test {

namespace {

/// A file that is gone at the end of the test.
class File {
 public:
  File(const std::string& name, const std::string& text)
      : path_(std::filesystem::temp_directory_path() / ("epocast_" + std::to_string(getpid()) + "_" + name)) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  operator const std::filesystem::path&() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string message(const std::function<void()>& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

KernelMeasurements read(const std::string& text) {
  std::istringstream in(text);
  const CsvTable table = CsvTable::read(in, "k.csv");
  return read_kernel_measurements(table);
}

NetworkMeasurements read_network(const std::string& text) {
  std::istringstream in(text);
  const CsvTable table = CsvTable::read(in, "n.csv");
  return read_network_measurements(table);
}

const std::string kHead = "# device: d\n# source: s\n# precision: fp32\noperator,pass,shape,time_s\n";
const std::string kRow = "gemm,forward,m=4 n=5 k=6 ta=1 tb=0,1e-3\n";
const std::string kConvolutions =
    "W,H,C,N,K,R,S,pad_h,pad_w,stride_h,stride_w,fwd_ms,bwd_inputs_ms,bwd_params_ms,device,precision,latest\n";

}  // namespace

TEST_CASE("kernel measurements are read back as they were written") {
  KernelMeasurements m = read(
      "# device: d\n# source: s\n# precision: fp32\n# peak_rate: 2 TFLOP/s\n# memory_bandwidth: 100 GB/s\n# units: 8\n"
      "operator,pass,shape,repetition,time_s\n"
      "convolution,backward_data,n=2 c=3 h=8 w=9 k=4 r=3 s=1 oh=6 ow=9 stride=1,1,0.5\n"
      "convolution,backward_data,n=2 c=3 h=8 w=9 k=4 r=3 s=1 oh=6 ow=9 stride=1,2,0.6\n"
      "memory,forward,op=pooling values=100,1,1e-5\nrecurrent,backward,gates=4 hidden=8 batch=2 steps=5,1,0.001\n");
  REQUIRE(m.timings.size() == 4);
  CHECK(m.peak_rate->value == 2e12);
  CHECK(m.units == 8.0);
  // 2 * 2*6*9 outputs * 4 filters * 3 channels * 3 taps
  CHECK(kernel_work(m.timings[0].shape).flop == 2.0 * 108 * 4 * 9);
  CHECK(m.timings[1].time.value == 0.6);
  std::ostringstream out;
  write_kernel_measurements(out, m, "");
  const KernelMeasurements again = read(out.str());
  for (std::size_t i = 0; i < m.timings.size(); ++i) {
    CHECK(again.timings[i].shape.text() == m.timings[i].shape.text());
    CHECK(again.timings[i].shape.pass == m.timings[i].shape.pass);
    CHECK(again.timings[i].time == m.timings[i].time);
  }
}

TEST_CASE("bad kernel measurements are refused with file and line") {
  struct Mistake {
    std::string text, expected;
  };
  const std::string no_unit = "# device: d\n# source: s\n# precision: fp32\noperator,pass,shape,time\n";
  const std::vector<Mistake> mistakes{
      {kHead + "gemm,forward,m=4 n=5 k=6 ta=1 tb=0,nan\n", "k.csv:5:36: time_s"},
      {kHead + "gemm,forward,m=4 n=5 k=6 ta=1 tb=0,inf\n", "k.csv:5:36: time_s"},
      {kHead + "gemm,forward,m=4 n=5 k=6 ta=1 tb=0,0\n", "is 0"},
      {kHead + "gemm,forward,m=4 n=5 k=6 ta=1 tb=0,-1\n", "k.csv:5:36: time_s"},
      {kHead + "gemm,forward,m=4 n=5 k=6 ta=1 tb=0,1 ms\n", "without a unit"},
      {kHead + kRow + kRow, "k.csv:6:14: shape: there is already a row"},
      {kHead + "gemm,forward,m=4 n=5 k=6 ta=1,1\n", "'tb' is missing"},
      {kHead + "gemm,forward,m=4 n=5 k=0 ta=1 tb=0,1\n", "k: '0'"},
      {kHead + "gemm,forward,m=4 n=5 k=6 ta=1 tb=0 q=3,1\n", "unknown key 'q'"},
      {kHead + "gem,forward,m=4 n=5 k=6 ta=1 tb=0,1\n", "did you mean 'gemm'"},
      {kHead + "gemm,forwards,m=4 n=5 k=6 ta=1 tb=0,1\n", "did you mean 'forward'"},
      {kHead + "gemm,forward,m=4 n=5 k=6 ta=1 tb=0\n", "k.csv:5: has 3 fields instead of 4; is the file cut off?"},
      {kHead + "gemm,forward,m=4 n=5 k=6 ta=1 tb=0,1e-", "cut off"},
      {kHead + "gemm,forward,\"m=4 n=5", "cut off"},
      {kHead, "no data"},
      {no_unit + kRow, "unknown column 'time' (did you mean 'time_s'?)"},
      {"# device: d\n# source: s\n# precision: fp61\noperator,pass,shape,time_s\n" + kRow,
       "k.csv:3: precision: unknown precision 'fp61'"},
      {"# device: d\n# source: s\noperator,pass,shape,time_s\n" + kRow, "precision: is missing"},
      {"# device: d\n# source: s\n# precision: fp32\n# peak_rate: 15\noperator,pass,shape,time_s\n" + kRow,
       "k.csv:4: peak_rate"},
      {"# device: d\n# device: e\noperator,pass,shape,time_s\n" + kRow, "k.csv:2: device: is given twice"},
  };
  for (const Mistake& mistake : mistakes) {
    INFO(mistake.text);
    CHECK_THAT(message([&] { read(mistake.text); }), Catch::Contains(mistake.expected));
  }
}

TEST_CASE("DeepBench tables: one device and precision, missing gradients stay missing") {
  const File file("conv.csv",
                  kConvolutions +
                      "8,8,3,2,4,3,3,1,1,1,1,1.5,,2.5,GPU,fp32,1\n8,8,4,2,4,3,3,1,1,2,2,1.5,3.5,2.5,GPU,fp32,1\n"
                      "8,8,4,2,4,3,3,1,1,2,2,1,1,1,GPU,fp16,1\n8,8,4,2,4,3,3,1,1,2,2,1,1,1,GPU,fp32,0\n"
                      "8,8,4,2,4,3,3,1,1,2,2,1,1,1,other,fp32,1\n");
  const KernelMeasurements m = import_kernels(file, {.device = "GPU", .precision = "fp32", .batch = 0, .model = {}});
  REQUIRE(m.timings.size() == 5);  // two shapes, one without the gradient of its input
  CHECK(m.timings[0].time.value == 1.5e-3);
  CHECK(m.timings[2].shape.text() == "n=2 c=4 h=8 w=8 k=4 r=3 s=3 oh=4 ow=4 stride=2");
  CHECK(m.left_out.size() == 2);  // the other precision and the older software are said to be left out
  CHECK_THAT(message([&] { import_kernels(file, {}); }), Catch::Contains("several devices"));
  CHECK_THAT(message([&] { import_kernels(file, {.device = "GPX", .precision = "fp32", .batch = 0, .model = {}}); }),
             Catch::Contains("did you mean 'GPU'"));

  const File twice("twice.csv", "M,N,K,a_transpose,b_transpose,time_ms,device\n1,2,3,N,T,1,d\n1,2,3,N,T,1,d\n");
  CHECK_THAT(message([&] { import_kernels(twice, {}); }),
             Catch::Contains("twice.csv:3:11: time_ms: there is already a row"));
  const File unknown("unknown.csv", "M,N,K,a_transpose,b_transpose,time_ms,device,colour\n1,2,3,N,T,1,d,red\n");
  CHECK_THAT(message([&] { import_kernels(unknown, {}); }), Catch::Contains("unknown column 'colour'"));
  const File alien("alien.csv", "a,b\n1,2\n");
  CHECK_THAT(message([&] { import_kernels(alien, {}); }), Catch::Contains("no known format"));
}

TEST_CASE("PipeDream profiles: shapes are pieced together from text and sizes") {
  const std::string nodes =
      "node1 -- Input -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=0.0, "
      "parameter_size=0.000\n"
      "node2 -- Conv2d(3, 8, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1)) -- forward_compute_time=1.500, "
      "backward_compute_time=2.500, "
      "activation_size=4096.0, parameter_size=896.000\n"
      "node3 -- Linear(in_features=128, out_features=10, bias=True) -- forward_compute_time=0.250, "
      "backward_compute_time=0.5, activation_size=320.0, "
      "parameter_size=5160.000\n";
  const ImportOptions options{.device = "GPU", .precision = "fp32", .batch = 0, .model = {}};
  const File file("graph.txt", nodes + "\tnode1 -- node2\n\tnode2 -- node3\n");
  const KernelMeasurements m = import_kernels(file, options);
  REQUIRE(m.timings.size() == 3);
  // The Linear's 320 B are 80 values: 10 outputs of a batch of 8. 4096 B are 1024 values: 8 samples of 8 filters of 4
  // x 4.
  CHECK(m.timings[0].shape.text() == "n=8 c=3 h=7 w=7 k=8 r=3 s=3 oh=4 ow=4 stride=2");
  CHECK(m.timings[0].time.value == 1.5e-3);
  CHECK(m.timings[1].shape.pass == KernelPass::backward);
  CHECK(m.timings[2].shape.text() == "m=10 n=8 k=128 ta=1 tb=0");
  CHECK(m.left_out.size() == 1);  // the backward time of the Linear

  const File cut("cut.txt", nodes.substr(0, nodes.size() - 60));
  CHECK_THAT(message([&] { import_kernels(cut, options); }),
             Catch::Contains("cut.txt:3") && Catch::Contains("cut off"));
  const File dangling("dangling.txt", nodes + "\tnode2 -- node9\n");
  CHECK_THAT(message([&] { import_kernels(dangling, options); }),
             Catch::Contains("dangling.txt:4") && Catch::Contains("node9"));
  CHECK_THAT(message([&] { import_kernels(file, {.device = "GPU", .precision = "fp32", .batch = 7, .model = {}}); }),
             Catch::Contains("--batch"));
  CHECK_THAT(message([&] { import_kernels(file, {}); }), Catch::Contains("--device"));
}

TEST_CASE("PyTorch profiler traces: operators take the time of the kernels they launch") {
  const std::string events = R"({"traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "aten::convolution", "ts": 10, "dur": 30, "tid": 1, "args": {"External id": 1,
     "Input Dims": [[2, 3, 8, 8], [4, 3, 3, 3], [], [], []], "Concrete Inputs": ["", "", "", "[2, 2]", "[1, 1]"]}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::cudnn_convolution", "ts": 12, "dur": 9, "tid": 1, "args": {"External id": 2}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 50, "dur": 5, "tid": 1, "args": {"External id": 3, "Input Dims": [[16, 32], [32, 8]]}},
    {"ph": "X", "cat": "kernel", "name": "k", "ts": 60, "dur": 100, "args": {"External id": 2}},
    {"ph": "X", "cat": "kernel", "name": "k", "ts": 160, "dur": 7, "args": {"External id": 3}}]})";
  const ImportOptions options{.device = "GPU", .precision = "fp32", .batch = 0, .model = {}};
  const File file("trace.json", events + "\n");
  const KernelMeasurements m = import_kernels(file, options);
  REQUIRE(m.timings.size() == 2);
  CHECK(m.timings[0].shape.text() == "n=2 c=3 h=8 w=8 k=4 r=3 s=3 oh=4 ow=4 stride=2");
  CHECK(m.timings[0].time.value == Approx(100e-6));
  CHECK(m.timings[1].shape.text() == "m=8 n=16 k=32 ta=1 tb=0");
  CHECK(m.timings[1].time.value == Approx(7e-6));
  const File cut("cut.json", events.substr(0, 700));
  CHECK_THAT(message([&] { import_kernels(cut, options); }),
             Catch::Contains("cut.json:") && Catch::Contains("cut off"));
}

TEST_CASE("PyTorch profiler traces: kernels go to the operator that launched them, also from autograd") {
  // A convolution whose kernel names its operator; its gradients, launched below autograd's own events and linked by
  // correlation only (30 + 40 us on the GPU; the launch at 210 lies within convolution_backward, within
  // ConvolutionBackward0); the first layer's, whose mask asks for the weight's only; products and a batched one; a
  // half-precision product; a kernel that nobody launched (3 us) and one of an operator without a model (20 us). The
  // GPU is busy for 100 + 30 + 40 + 50 + 7 + 9 + 5 + 3 + 20 = 264 us, of which 100 + 70 + 50 + 7 + 9 = 236 are
  // modelled.
  const std::string text = R"({"deviceProperties": [{"name": "Tesla V100"}], "displayTimeUnit": "ms",
 "traceEvents": [
  {"ph": "M", "name": "process_name", "pid": 1},
  {"ph": "X", "cat": "cpu_op", "name": "aten::conv2d", "ts": 8, "dur": 40, "pid": 1, "tid": 1, "args": {"External id": 1,
   "Input Dims": [[2, 3, 8, 8], [4, 3, 3, 3], [], [], []]}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::convolution", "ts": 10, "dur": 30, "pid": 1, "tid": 1, "args": {"External id": 2,
   "Input Dims": [[2, 3, 8, 8], [4, 3, 3, 3], [], [], []],
   "Concrete Inputs": ["", "", "", "[1, 1]", "[2, 2]", "[2, 2]", "False", "[0, 0]", "1"]}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::cudnn_convolution", "ts": 12, "dur": 9, "pid": 1, "tid": 1, "args": {"External id": 3}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 13, "dur": 2, "pid": 1, "tid": 1, "args": {"correlation": 100}},
  {"ph": "X", "cat": "kernel", "name": "implicit_gemm", "ts": 60, "dur": 100, "pid": 0, "tid": 7, "args": {"External id": 3, "correlation": 100}},
  {"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: ConvolutionBackward0", "ts": 200, "dur": 60, "pid": 1, "tid": 2, "args": {"External id": 10}},
  {"ph": "X", "cat": "cpu_op", "name": "ConvolutionBackward0", "ts": 202, "dur": 50, "pid": 1, "tid": 2, "args": {"External id": 11}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::convolution_backward", "ts": 205, "dur": 40, "pid": 1, "tid": 2, "args": {"External id": 12,
   "Input Dims": [[2, 4, 8, 8], [2, 3, 8, 8], [4, 3, 3, 3], [], [], []],
   "Concrete Inputs": ["", "", "", "[0]", "[1, 1]", "[2, 2]", "[2, 2]", "False", "[0, 0]", "1", "[True, True, False]"]}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 210, "dur": 2, "pid": 1, "tid": 2, "args": {"correlation": 101}},
  {"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernel", "ts": 220, "dur": 2, "pid": 1, "tid": 2, "args": {"correlation": 102}},
  {"ph": "X", "cat": "kernel", "name": "dgrad", "ts": 300, "dur": 30, "pid": 0, "tid": 7, "args": {"correlation": 101}},
  {"ph": "X", "cat": "kernel", "name": "wgrad", "ts": 330, "dur": 40, "pid": 0, "tid": 7, "args": {"correlation": 102, "External id": 0}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::convolution_backward", "ts": 270, "dur": 9, "pid": 1, "tid": 2, "args": {"External id": 14,
   "Input Dims": [[2, 4, 8, 8], [2, 3, 8, 8], [4, 3, 3, 3], [], [], []],
   "Concrete Inputs": ["", "", "", "[0]", "[1, 1]", "[2, 2]", "[2, 2]", "False", "[0, 0]", "1", "[False, True, False]"]}},
  {"ph": "X", "cat": "kernel", "name": "wgrad", "ts": 380, "dur": 50, "pid": 0, "tid": 7, "args": {"External id": 14}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "ts": 400, "dur": 5, "pid": 1, "tid": 1, "args": {"External id": 20, "Input Dims": [[8], [16, 32], [32, 8]]}},
  {"ph": "X", "cat": "kernel", "name": "sgemm", "ts": 440, "dur": 7, "pid": 0, "tid": 7, "args": {"External id": 20}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::bmm", "ts": 410, "dur": 5, "pid": 1, "tid": 1, "args": {"External id": 21, "Input Dims": [[12, 5, 6], [12, 6, 7]]}},
  {"ph": "X", "cat": "kernel", "name": "sgemm_batched", "ts": 450, "dur": 9, "pid": 0, "tid": 7, "args": {"External id": 21}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 420, "dur": 5, "pid": 1, "tid": 1, "args": {"External id": 22, "Input Dims": [[16, 32], [32, 8]], "Input type": ["c10::Half", "c10::Half"]}},
  {"ph": "X", "cat": "kernel", "name": "hgemm", "ts": 460, "dur": 5, "pid": 0, "tid": 7, "args": {"External id": 22}},
  {"ph": "X", "cat": "kernel", "name": "lost", "ts": 470, "dur": 3, "pid": 0, "tid": 7, "args": {}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::_native_multi_head_attention", "ts": 430, "dur": 5, "pid": 1, "tid": 1, "args": {"External id": 23, "Input Dims": [[2, 5, 6]]}},
  {"ph": "X", "cat": "kernel", "name": "attention", "ts": 480, "dur": 20, "pid": 0, "tid": 7, "args": {"External id": 23}}
 ]}
)";
  const File file("kineto.json", text);
  const KernelMeasurements m = import_kernels(file, {});
  CHECK(m.device == "Tesla V100");
  // Dilation 2 spans 5 rows: 8 + 2 x 2 - 5 + 1 = 8 of them.
  const std::string convolution = "n=2 c=3 h=8 w=8 k=4 r=3 s=3 oh=8 ow=8 stride=1";
  std::vector<std::string> found;
  for (const KernelTiming& t : m.timings)
    found.push_back(fmt::format("{} {}: {:.0f}", to_string(t.shape.pass), t.shape.text(), 1e6 * t.time.value));
  CHECK(found ==
        std::vector<std::string>{"backward " + convolution + ": 70", "backward_weights " + convolution + ": 50",
                                 "forward " + convolution + ": 100", "forward m=7 n=5 k=6 ta=1 tb=0 count=12: 9",
                                 "forward m=8 n=16 k=32 ta=1 tb=0: 7"});
  std::string left_out;
  for (const std::string& what : m.left_out) left_out += what + "\n";
  CHECK_THAT(left_out, Catch::Contains("1 calls on c10::Half; only fp32 is modelled"));
  CHECK_THAT(left_out, Catch::Contains("10.6 % of the GPU's time") &&  // 28 of 264
                           Catch::Contains("most in aten::_native_multi_head_attention, aten::mm"));

  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string wrong = text;
    REQUIRE(wrong.find(from) != std::string::npos);
    wrong.replace(wrong.find(from), from.size(), to);
    const File bad("bad.json", wrong);
    return message([&] { import_kernels(bad, {}); });
  };
  // Its place is the line on which the event begins: the fourth event is on line 9.
  CHECK_THAT(refused("\"ts\": 12, ", ""),
             Catch::Contains("bad.json:9: traceEvents[3].ts: is missing") && Catch::Contains("cut off"));
  CHECK_THAT(refused("\"dur\": 100", "\"dur\": \"x\""),
             Catch::Contains("bad.json:11: traceEvents[5].dur: must be a number"));
  CHECK_THAT(refused("\"dur\": 30, \"pid\": 0", "\"dur\": -3"), Catch::Contains("traceEvents[11].dur: must be a time"));
  CHECK_THAT(refused("[12, 5, 6]", "[-12, 5, 6]"), Catch::Contains("args.Input Dims: holds a dimension out of range"));
  CHECK_THAT(refused("traceEvents", "traceEvent"), Catch::Contains("bad.json:1: traceEvents: is missing"));
}

TEST_CASE("PyTorch profiler traces: what moves data counts as layers do, and the median of two calls is between them") {
  // By hand: a pooling 2 x 4 x 8 x 8 read and, by windows of 3 x 3 with a stride of 2, 2 x 4 x 4 x 4 written; 8 x 8 to
  // 4 x 4, as ceil_mode asks for, not to 3 x 3; 6 x 6 to 2 x 2, as the stride is the window where there is none. A sum
  // reads two tensors and writes one, of a tensor and a scalar one; norms have scale and shift; the gradient of a
  // softmax reads gradient and output. A pooling whose window was not recorded is left out.
  const std::string event = R"({"ph": "X", "cat": "cpu_op", "ts": 1, "tid": 1, )";
  std::string events;
  const auto add = [&](const std::string& name, int duration, const std::string& inputs,
                       const std::string& values = "") {
    events += fmt::format("{}\n{}\"name\": \"aten::{}\", \"dur\": {}, \"args\": {{\"Input Dims\": {}{}}}}}",
                          events.empty() ? "" : ",", event, name, duration, inputs,
                          values.empty() ? "" : ", \"Concrete Inputs\": " + values);
  };
  add("max_pool2d_with_indices", 1, "[[2, 4, 8, 8], [], [], [], [], []]",
      R"(["", "[3, 3]", "[2, 2]", "[1, 1]", "[1, 1]", "False"])");
  add("max_pool2d_with_indices", 2, "[[1, 1, 8, 8], [], [], [], [], []]",
      R"(["", "[3]", "[2]", "[0]", "[1]", "True"])");
  add("avg_pool2d", 3, "[[1, 1, 6, 6], [], [], [], []]", R"(["", "[3, 3]", "[]", "[0, 0]", "False", "True", ""])");
  add("max_pool2d_with_indices", 4, "[[2, 2, 8, 8], [], [], [], [], []]");
  add("add_", 10, "[[2, 3], [2, 3], []]");
  add("add_", 30, "[[2, 3], [2, 3], []]");
  add("add_", 5, "[[2, 3], [], []]");
  add("relu_", 6, "[[2, 3]]");
  add("native_layer_norm", 7, "[[2, 3], [], [3], [3], []]");
  add("native_batch_norm", 8, "[[2, 3, 4, 4], [3], [3], [3], [3], [], [], []]");
  add("_softmax", 9, "[[2, 5], [], []]");
  add("_softmax_backward_data", 11, "[[2, 5], [2, 5], [], []]");
  const File file("moved.json", "{\"traceEvents\": [" + events + "]}\n");
  std::vector<std::string> found;
  for (const KernelTiming& t :
       import_kernels(file, {.device = "CPU", .precision = "fp32", .batch = 0, .model = {}}).timings)
    found.push_back(fmt::format("{} {}: {:.0f}", to_string(t.shape.pass), t.shape.text(), t.time.value * 1e6));
  std::ranges::sort(found);
  CHECK(found ==
        std::vector<std::string>{"backward_data op=softmax values=30: 11", "forward op=activation values=12: 6",
                                 "forward op=add values=12: 5", "forward op=add values=18: 20",
                                 "forward op=batch_norm values=198 channels=3: 8", "forward op=layer_norm values=18: 7",
                                 "forward op=pooling values=40: 3", "forward op=pooling values=640: 1",
                                 "forward op=pooling values=80: 2", "forward op=softmax values=20: 9"});
}

TEST_CASE("collectives: own format and bad rows") {
  const std::string head = "# device: d\n# interconnect: i\n# source: s\noperation,library,ranks,bytes,time_s\n";
  const NetworkMeasurements m = read_network(head + "all_reduce,NCCL,8,1e6,2e-4\n");
  REQUIRE(m.timings.size() == 1);
  CHECK(m.timings[0].ranks == 8);
  struct Mistake {
    std::string rows, expected;
  };
  const std::vector<Mistake> mistakes{
      {"all_reduce,NCCL,1,1e6,2e-4\n", "n.csv:5:17: ranks"},
      {"all_reduce,NCCL,8,0,2e-4\n", "n.csv:5:19: bytes"},
      {"all_reduce,NCCL,8,1e6,nan\n", "n.csv:5:23: time_s"},
      {"all_reduce,NCCL,8,1e6,0\n", "is 0"},
      {"allreduce,NCCL,8,1e6,1\n", "all_reduce"},
      {"all_reduce,,8,1e6,1\n", "library: is empty"},
      {"all_reduce,NCCL,8,1e6,1\nall_reduce,NCCL,8,1e6,1\n", "n.csv:6:19: bytes: there is already"}};
  for (const Mistake& mistake : mistakes)
    CHECK_THAT(message([&] { read_network(head + mistake.rows); }), Catch::Contains(mistake.expected));

  const File nccl("nccl.csv", "device,n_gpus,size_bytes,out_of_place_us\nGPU,2,1048576,44.21\n");
  CHECK(import_collectives(nccl, {}).timings[0].time.value == Approx(44.21e-6));
  const File deepbench("ar.csv",
                       "size_bytes,procs,time_ms,algorithm,device,interconnect\n400000,2,0.09,Intel MLSL,KNL,OPA\n");
  CHECK(import_collectives(deepbench, {}).timings[0].library == "Intel MLSL");
}

}  // namespace epocast::import_test
