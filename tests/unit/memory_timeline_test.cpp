// Memory over the passes of a step: timelines derived by hand for a chain, a residual block, in-place layers, segments
// that are computed again, and stages of a pipeline; totals of real networks.
#include "sim/memory_timeline.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "costmodels/roofline.hpp"
#include "sim/cost_model.hpp"
#include "sim/recompute.hpp"
#include "tests/support/synthetic.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::memory_timeline_test {

using epocast::testing::chain;
using epocast::testing::layer;

namespace {

/// One line per pass: "backward b: activations 18, gradients 30".
std::vector<std::string> lines(const WorkloadTrace& trace, const std::vector<MemoryMoment>& timeline) {
  std::vector<std::string> out;
  for (const MemoryMoment& m : timeline)
    out.push_back(std::string(to_string(m.pass)) + " " + trace.layers[m.layer].name + ": " +
                  std::to_string(static_cast<int>(m.use.activations.value)) + " " +
                  std::to_string(static_cast<int>(m.use.activation_gradients.value)));
  return out;
}

LayerTrace sized(const std::string& name, double bytes) {
  LayerTrace out = layer(name, 1, 2, 0, {});
  out.output = out.kept_activations = Bytes(bytes);
  return out;
}

/// data (8 B) -> a 10 -> b 20 -> c 30; all read their input in backward, as convolutions do.
WorkloadTrace small_chain() {
  WorkloadTrace trace = chain({sized("a", 10), sized("b", 20), sized("c", 30)});
  trace.layers[0].output = trace.layers[0].kept_activations = Bytes(8);
  return trace;
}

/// Layers of 10 B each, after data of 10 B.
WorkloadTrace equal_chain(int layers) {
  std::vector<LayerTrace> all;
  for (int l = 1; l <= layers; ++l) all.push_back(sized("l" + std::to_string(l), 10));
  WorkloadTrace trace = chain(std::move(all));
  trace.layers[0].output = trace.layers[0].kept_activations = Bytes(10);
  return trace;
}

/// data 8 -> a 10 -> b 10; s = b + a; t in place of s (relu); o 4.
WorkloadTrace residual() {
  WorkloadTrace trace = chain({sized("a", 10), sized("b", 10), sized("s", 10), sized("t", 10), sized("o", 4)});
  trace.layers[0].output = trace.layers[0].kept_activations = Bytes(8);
  LayerTrace& s = trace.layers[3];
  s.kind = LayerKind::add;
  s.inputs = {2, 1};
  s.backward_reads_input = false;
  LayerTrace& t = trace.layers[4];
  t.kind = LayerKind::activation;
  t.backward_reads_input = false;
  t.backward_reads_output = true;
  t.stored_in = 3;
  trace.layers[2].kept_activations = trace.layers[3].kept_activations = Bytes(0);
  return trace;
}

Model zoo_model(const std::string& name) {
  return load_model(std::filesystem::path(EPOCAST_SOURCE_DIR) / "workloads" / "models" / (name + ".yaml"));
}

WorkloadTrace zoo_trace(const std::string& name, std::int64_t batch) {
  Device device;
  device.peak_rate = FlopPerSecond(1e13);
  device.memory_bandwidth = BytesPerSecond(1e12);
  return make_trace(zoo_model(name), Roofline({}), batch, device);
}

}  // namespace

TEST_CASE("a chain: activations pile up in forward and go in backward, each gradient lives for two passes") {
  const WorkloadTrace trace = small_chain();
  // backward c reads b (to make its weights' gradient), c (the loss), and makes b's gradient from its own: 8 + 10 + 20
  // + 30 and 30 + 20. Then b and c are free; backward b reads a: 8 + 10 and 20 + 10. The data needs no gradient.
  CHECK(lines(trace, memory_timeline(trace, Optimizer::sgd)) ==
        std::vector<std::string>{"forward data: 8 0", "forward a: 18 0", "forward b: 38 0", "forward c: 68 0",
                                 "backward c: 68 50", "backward b: 18 30", "backward a: 8 10"});
  const MemoryUse peak = replica_memory(trace, Optimizer::sgd);
  CHECK(peak.total().value == 118);
  CHECK(peak.moment == "backward c");
}

TEST_CASE("a residual block: the shortcut's gradient waits for the branch") {
  const WorkloadTrace trace = residual();
  // b is free once added up. backward t changes the gradient in place; backward s hands it to both b and a; backward b
  // makes its part of a's gradient beside it, then adds.
  CHECK(lines(trace, memory_timeline(trace, Optimizer::sgd)) ==
        std::vector<std::string>{"forward data: 8 0", "forward a: 18 0", "forward b: 28 0", "forward s: 38 0",
                                 "forward t: 28 0", "forward o: 32 0", "backward o: 32 14", "backward t: 28 10",
                                 "backward s: 18 10", "backward b: 18 20", "backward a: 8 10"});
}

TEST_CASE("parameters, gradients, state and workspace come on top") {
  WorkloadTrace trace = small_chain();
  trace.layers[1].parameters = Bytes(100);
  trace.layers[1].gradients = {{"weight", Bytes(100)}};
  trace.layers[1].workspace = Bytes(1000);
  const std::vector<MemoryMoment> timeline = memory_timeline(trace, Optimizer::adam);
  CHECK(timeline.back().pass == Pass::update);  // of a, the only layer with parameters
  CHECK(timeline.back().use.total().value == 400);
  CHECK(timeline[1].use.workspace.value == 1000);
  CHECK(timeline[2].use.workspace.value == 0);
  // a's passes: forward 18 + 1000, backward 8 + 10 + 1000; both more than backward c's 118.
  const MemoryUse peak = replica_memory(trace, Optimizer::adam);
  CHECK(peak.moment == "forward a");
  CHECK(peak.total().value == 400 + 18 + 1000);
}

TEST_CASE("segments that forget: kept at their ends, computed again before their backward passes") {
  WorkloadTrace trace = equal_chain(9);
  // 100 B are kept in all; cuts at thirds fall nearest to where 30 and 70 B are kept: after l2 and l6.
  CHECK(segment_starts(trace, {Recompute::Segments::count, 3}) == std::vector<std::size_t>{3, 7});
  apply_recompute(trace, {Recompute::Segments::count, 3});
  // Kept: data, l2, l6 and the last segment's l7, l8, l9.
  CHECK(trace.kept_activation_bytes().value == 60);
  const std::vector<std::string> all = lines(trace, memory_timeline(trace, Optimizer::sgd));
  // The whole segment runs again, its last layer too, though l2 and l6 were kept for those that read them.
  CHECK(std::vector<std::string>(all.begin() + 10, all.end()) ==
        std::vector<std::string>{"backward l9: 60 20", "backward l8: 40 20", "backward l7: 30 20",
                                 "recompute l3: 30 10", "recompute l4: 40 10", "recompute l5: 50 10",
                                 "recompute l6: 60 10", "backward l6: 50 20", "backward l5: 40 20",
                                 "backward l4: 30 20", "backward l3: 20 20", "recompute l1: 20 10",
                                 "recompute l2: 30 10", "backward l2: 20 20", "backward l1: 10 10"});
  double again = 0;
  for (const LayerTrace& l : trace.layers) again += l.times.recompute.longest().value;
  CHECK(again == 6);  // forward passes of a second: l1 .. l6
  CHECK(trace.compute_time().longest().value == 9 * 3 + 6);
}

TEST_CASE("a checkpointed block runs its whole forward pass again, its last product too") {
  // Two blocks that end with an addition, and an output layer. torch.utils.checkpoint calls the block's forward once
  // more: both convolutions and the addition, a third of a second pass each of 1 s. The last segment forgets nothing.
  WorkloadTrace trace = chain({sized("a1", 10), sized("b1", 10), sized("s1", 10), sized("a2", 10), sized("b2", 10),
                               sized("s2", 10), sized("o", 4)});
  for (const std::size_t sum : {3, 6}) {
    trace.layers[sum].kind = LayerKind::add;
    trace.layers[sum].inputs = {static_cast<int>(sum) - 1, static_cast<int>(sum) - 3};
    trace.layers[sum].backward_reads_input = false;
  }
  trace.layers[3].inputs = {2, 1};
  trace.layers[2].kept_activations = trace.layers[5].kept_activations = Bytes(0);  // b1 and b2, which sums only read
  const double before = trace.compute_time().longest().value;
  apply_recompute(trace, {Recompute::Segments::blocks});
  std::vector<std::string> again;
  for (const LayerTrace& l : trace.layers)
    if (l.times.recompute.longest().value > 0) again.push_back(l.name);
  CHECK(again == std::vector<std::string>{"a1", "b1", "s1", "a2", "b2", "s2"});
  CHECK(trace.compute_time().longest().value == before + 6);
}

TEST_CASE("a cut never parts an activation in place from its input, and blocks end where branches join") {
  const WorkloadTrace trace = residual();
  for (int segments = 2; segments <= 6; ++segments)
    for (const std::size_t start : segment_starts(trace, {Recompute::Segments::count, segments})) CHECK(start != 4);
  CHECK(segment_starts(trace, {Recompute::Segments::blocks}) == std::vector<std::size_t>{5});
  CHECK(segment_starts(small_chain(), {Recompute::Segments::blocks}).empty());
}

TEST_CASE("the root of n segments keeps a chain of n layers within a multiple of the root") {
  // Chen et al. 2016, section 4.3: about 2 sqrt(n). Here beside the ends of sqrt(n) segments of sqrt(n) layers live the
  // data, one gradient more than in a layer, and what rounding moves: at most 2 sqrt(n) + 4 layers of 10 B.
  for (const int n : {16, 100, 1024}) {
    WorkloadTrace trace = equal_chain(n);
    const double before = replica_memory(trace, Optimizer::sgd).total().value;
    CHECK(before == 10 * (n + 1) + 20);
    const double time = trace.compute_time().longest().value;
    apply_recompute(trace, {Recompute::Segments::sqrt});
    CHECK(replica_memory(trace, Optimizer::sgd).total().value <= 10 * (2 * std::sqrt(n) + 4));
    // Backward is twice forward: a second forward pass of everything would be a third more.
    CHECK(trace.compute_time().longest().value > time);
    CHECK(trace.compute_time().longest().value < time * 4 / 3);
  }
}

TEST_CASE("stages: copies in flight, versions, and what arrives from outside") {
  WorkloadTrace trace = small_chain();
  for (LayerTrace& l : trace.layers) {
    if (l.name == "data") continue;
    l.parameters = Bytes(100);
    l.gradients = {{"weight", Bytes(100)}};
  }
  // Stage [b, c]: a arrives (10), b 20 and c 30 are made; gradients of c 30 and b 20, then b 20 and a 10.
  const std::vector<MemoryMoment> timeline = memory_timeline(trace, Optimizer::sgd, {.first = 2, .last = 3});
  CHECK(lines(trace, timeline) == std::vector<std::string>{"forward b: 30 0", "forward c: 60 0", "backward c: 60 50",
                                                           "backward b: 10 30", "update b: 0 0", "update c: 0 0"});
  const double one = stage_memory(trace, Optimizer::sgd, {.first = 2, .last = 3}).total().value;
  CHECK(one == 60 + 50 + 400);
  // Each further micro-batch in flight holds a, b and c; each version of the weights 200.
  CHECK(stage_memory(trace, Optimizer::sgd, {.first = 2, .last = 3, .in_flight = 4}).total().value == one + 3 * 60);
  CHECK(stage_memory(trace, Optimizer::sgd, {.first = 2, .last = 3, .weight_versions = 3}).total().value ==
        one + 2 * 200);
  // Stage [a]: its gradient is received.
  CHECK(lines(trace, memory_timeline(trace, Optimizer::sgd, {.first = 0, .last = 1})) ==
        std::vector<std::string>{"forward data: 8 0", "forward a: 18 0", "backward a: 8 10", "update a: 0 0"});
}

TEST_CASE("networks of the zoo: what is alive between forward and backward is what the trace says is kept") {
  for (const char* name : {"vgg16", "resnet50", "inception_v3", "densenet121", "gpt2", "bert_base", "gnmt", "trn",
                           "char_crn", "e3d_lstm", "edsr", "mlp_mnist", "alexnet", "wrn"}) {
    INFO(name);
    WorkloadTrace trace = zoo_trace(name, 2);
    for (LayerTrace& l : trace.layers) l.workspace = Bytes(0);
    const auto kept_is_kept = [&] {
      Bytes sum;
      for (const Bytes b : kept_by_layer(trace)) sum += b;
      CHECK(sum.value == trace.kept_activation_bytes().value);
      for (const MemoryMoment& m : memory_timeline(trace, Optimizer::momentum)) {
        REQUIRE(m.use.activations.value >= 0);
        REQUIRE(m.use.activation_gradients.value >= 0);
        REQUIRE(m.use.parameters.value == trace.parameter_bytes().value);
      }
    };
    kept_is_kept();
    const MemoryUse before = replica_memory(trace, Optimizer::sgd);
    const Seconds forward_again = trace.compute_time().longest();
    apply_recompute(trace, {Recompute::Segments::sqrt});
    kept_is_kept();
    const MemoryUse after = replica_memory(trace, Optimizer::sgd);
    CHECK((after.activations + after.activation_gradients) < (before.activations + before.activation_gradients));
    CHECK(trace.compute_time().longest() > forward_again);
  }
}

TEST_CASE("VGG-16 by the list of its layers' sizes") {
  // Stanford's CS231n, "Case studies", lists the values of each layer of VGG-16 for one image of 224x224x3: the image
  // 150,528; 64 x 224^2 twice, then a pool; 128 x 112^2 twice; 256 x 56^2, 512 x 28^2 and 512 x 14^2 three times each;
  // two of 4096 and one of 1000. (Its sum, printed as 24 M values, is 15.2 M.) Dropout after the first two fully
  // connected layers, which the list leaves out, makes 4096 values each that the next layer reads.
  const double listed = 150528 + 64 * (2 * 224 * 224 + 112 * 112) + 128 * (2 * 112 * 112 + 56 * 56) +
                        256 * (3 * 56 * 56 + 28 * 28) + 512 * (3 * 28 * 28 + 14 * 14) + 512 * (3 * 14 * 14 + 7 * 7) +
                        2 * 4096 + 1000 + 2 * 4096;
  const WorkloadTrace trace = zoo_trace("vgg16", 1);
  CHECK(trace.parameter_bytes().value == 4 * 138357544.0);  // 553.4 MB
  // The scores before softmax are not read by any backward pass, so its output takes their place: 1000 once.
  CHECK(trace.kept_activation_bytes().value == 4 * listed);
  // conv1_2 unfolds 64 channels x 9 taps at 224^2 places: 115.6 MB, more than any other layer.
  CHECK(std::max_element(trace.layers.begin(), trace.layers.end(), [](const LayerTrace& a, const LayerTrace& b) {
          return a.workspace < b.workspace;
        })->workspace.value == 4.0 * 64 * 9 * 224 * 224);
}

TEST_CASE("only convolutions that unfold their input need room for that") {
  // ResNet-50's 1x1 convolutions read their input as it is, but for those of stride 2, whose windows lie apart; conv1
  // unfolds 3 channels x 49 taps at 112^2 places.
  const WorkloadTrace trace = zoo_trace("resnet50", 1);
  const Model model = zoo_model("resnet50");
  int unfolded = 0, read_as_is = 0;
  for (std::size_t l = 0; l < trace.layers.size(); ++l) {
    const Layer& layer = model.layers[l];
    if (layer.kind != LayerKind::convolution) {
      CHECK(trace.layers[l].workspace.value == 0);
    } else if (layer.kernel_height == 1 && layer.stride == 1) {
      CHECK(trace.layers[l].workspace.value == 0);
      ++read_as_is;
    } else {
      CHECK(trace.layers[l].workspace.value > 0);
      ++unfolded;
    }
  }
  CHECK(read_as_is == 33);  // two in each of 16 blocks and four shortcuts, of which three have a stride
  CHECK(unfolded == 53 - 33);
}

}  // namespace epocast::memory_timeline_test
