// The training step that kernels are timed in is a real one: its gradients are those of its loss.
#include <catch2/catch.hpp>

#include <cmath>
#include <set>

#include "workloads/microbench/kernel_timer.hpp"
#include "workloads/model_reader.hpp"

using namespace epocast;

namespace {

class RunningStep {
 public:
  RunningStep(const char* text, std::int64_t batch, Optimizer optimizer = Optimizer::sgd)
      : model(parse_model(text, "test.yaml")), step(model, batch, optimizer), stream_(cpu_engine()) {
    step.allocate();
  }
  void run(const std::set<StepPass>& passes) {
    for (const Kernel& kernel : step.kernels())
      if (passes.contains(kernel.pass())) kernel.run(stream_);
  }
  /// Mean cross-entropy; runs the forward pass.
  double loss() {
    run({StepPass::forward});
    const KernelTensor& out = step.output(static_cast<int>(model.layers.size()) - 1);
    const auto samples = out.desc.dims()[0];
    const auto classes = out.desc.dims()[1];
    double sum = 0;
    for (std::int64_t i = 0; i < samples; ++i)
      sum -= std::log(static_cast<double>(out.buffer->floats()[i * classes + step.labels().buffer->integers()[i]]));
    return sum / static_cast<double>(samples);
  }
  void backward() {
    run({StepPass::backward_data, StepPass::backward_weights, StepPass::backward, StepPass::gradient_sum});
  }

  Model model;
  ExecutedStep step;

 private:
  dnnl::stream stream_;
};

/// Compares a few values of each gradient with central differences of the loss over 2 h. fp32 leaves about 1e-6 of a
/// loss near 2, and so 1e-4 to 1e-3 of the quotient; curvature adds a little.
void check_gradients(const char* text, std::int64_t batch, float h) {
  RunningStep net(text, batch);
  net.loss();
  net.backward();
  for (const Parameters& p : net.step.parameters()) {
    const std::size_t n = p.value.buffer->values();
    for (std::size_t i = 0; i < n; i += std::max<std::size_t>(1, n / 5)) {
      float& value = p.value.buffer->floats()[i];
      const float before = value;
      value = before + h;
      const double above = net.loss();
      value = before - h;
      const double below = net.loss();
      value = before;
      CAPTURE(net.model.layers[static_cast<std::size_t>(p.layer)].name, i);
      CHECK((above - below) / (2 * h) == Approx(p.gradient.buffer->floats()[i]).margin(2e-3).epsilon(0.02));
    }
  }
}

}  // namespace

// Activations are smooth in these networks: a difference across relu's or max pooling's kink is no derivative.
TEST_CASE("gradients of a network with branches, normalisation and pooling are those of its loss") {
  check_gradients(R"(
model: branches
input: {channels: 3, height: 9, width: 9}
layers:
  - {conv: a, filters: 16, kernel: 3, stride: 2}
  - batch_norm
  - {tanh: t}
  - {conv: b, filters: 16, kernel: 3, padding: 1, bias: false}
  - {add: s, inputs: [b, t]}
  - {pool: q, kernel: 2, stride: 2, type: average}
  - {conv: c, input: s, filters: 16, kernel: 2, stride: 2, groups: 2}
  - {concat: j, inputs: [q, c]}
  - lrn
  - {sigmoid: z}
  - {fc: d, units: 12}
  - {tanh: u}
  - {fc: e, units: 5}
  - {softmax: p}
)",
                  3, 0.01F);
}

TEST_CASE("gradients of transposed and dilated convolutions are those of the loss") {
  check_gradients(R"(
model: up_and_down
input: {channels: 3, height: 9, width: 9}
layers:
  - {conv: a, filters: 16, kernel: 3, stride: 2}
  - {tanh: t}
  - {conv: b, filters: 16, kernel: 4, stride: 2, padding: 1, groups: 2, transposed: true}
  - {tanh: u}
  - {conv: c, filters: 16, kernel: 3, dilation: 2, bias: false}
  - {tanh: v}
  - {fc: e, units: 5}
  - {softmax: p}
)",
                  3, 0.01F);
}

TEST_CASE("gradients along sequences are those of the loss") {
  check_gradients(R"(
model: sequence
input: {channels: 1, width: 6}
layers:
  - {embedding: words, vocabulary: 11, units: 16}
  - {position_embedding: places, positions: 6}
  - {layer_norm: n}
  - {linear: h, units: 24}
  - {gelu: g}
  - {lstm: l, units: 16}
  - {linear: k, units: 16}
  - {multiply: m, inputs: [k, l]}
  - flatten
  - {fc: e, units: 5}
  - {softmax: p}
)",
                  2, 0.001F);  // tables hold values up to 0.02
}

TEST_CASE("updates go against the gradient") {
  const char* const text = "model: line\ninput: {channels: 4}\nlayers:\n  - {fc: a, units: 3}\n  - {softmax: p}\n";
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::momentum, Optimizer::adam}) {
    RunningStep net(text, 2, optimizer);
    const double before = net.loss();
    net.backward();
    const Parameters& p = net.step.parameters().front();
    // The learning rate is 1e-6, too small to see in one step; gradients 1e4 times as large make it visible.
    for (std::size_t i = 0; i < p.gradient.buffer->values(); ++i) p.gradient.buffer->floats()[i] *= 1e4F;
    for (int i = 0; i < (optimizer == Optimizer::adam ? 2000 : 1); ++i) net.run({StepPass::update});
    CAPTURE(to_string(optimizer));
    CHECK(net.loss() < before - 1e-5);
  }
}

TEST_CASE("maximum and relu pass gradients to where values came from") {
  RunningStep net(R"(
model: kinks
input: {channels: 16, height: 8, width: 8}
layers:
  - {conv: a, filters: 16, kernel: 3}
  - relu
  - {pool: m, kernel: 2, stride: 2, type: max}
  - flatten
  - {fc: e, units: 5}
  - {softmax: p}
)",
                  2);
  net.loss();
  net.backward();
  // Along the gradient g the loss rises by |g|^2: a step so short that few values cross a kink.
  constexpr float kStep = 1e-3F;
  double square = 0;
  const auto move = [&](float by) {
    for (const Parameters& p : net.step.parameters())
      for (std::size_t i = 0; i < p.value.buffer->values(); ++i)
        p.value.buffer->floats()[i] += by * p.gradient.buffer->floats()[i];
  };
  for (const Parameters& p : net.step.parameters())
    for (std::size_t i = 0; i < p.gradient.buffer->values(); ++i)
      square += std::pow(static_cast<double>(p.gradient.buffer->floats()[i]), 2);
  move(kStep);
  const double above = net.loss();
  move(-2 * kStep);
  CHECK((above - net.loss()) / (2 * kStep) == Approx(square).epsilon(0.05));
}

TEST_CASE("dropout keeps half of the values, doubled, and their gradients") {
  RunningStep net("model: d\ninput: {channels: 4}\nlayers:\n  - {fc: a, units: 1000}\n  - {dropout: o}\n", 2);
  net.run({StepPass::forward});
  net.backward();
  const float* in = net.step.output(1).buffer->floats();
  const float* out = net.step.output(2).buffer->floats();
  int kept = 0;
  for (int i = 0; i < 2000; ++i) {
    CHECK((out[i] == 0 || out[i] == 2 * in[i]));
    if (out[i] != 0) ++kept;
  }
  CHECK(std::abs(kept - 1000) < 4 * std::sqrt(2000 * 0.25));  // four standard deviations
}

TEST_CASE("every distinct kernel of a step is timed, alone and within the step") {
  const Model model = parse_model(
      "model: m\ninput: {channels: 16, height: 6, width: 6}\nlayers:\n  - {conv: a, filters: 16, kernel: 3, padding: "
      "1}\n"
      "  - relu\n  - {conv: b, filters: 16, kernel: 3, padding: 1}\n  - relu\n  - {fc: e, units: 5}\n  - {softmax: "
      "p}\n",
      "m.yaml");
  for (const bool whole_steps : {false, true}) {
    ExecutedStep step(model, 2, Optimizer::sgd);
    double progress = 0;
    const TimedStep timed = time_step(step, 1 << 20, {.least = 2, .most = 3}, whole_steps, [&](double share) {
      CHECK((share > 0 && share <= 1));
      progress = share;
    });
    CHECK(progress == 1);
    // Forward 6, backward data 5 (the first layer has none), backward weights 3, updates 3.
    REQUIRE(step.kernels().size() == 6 + 5 + 3 + 3);
    CHECK(timed.distinct[0] != timed.distinct[1]);
    for (const int k : timed.distinct) {
      const Sample& sample = timed.kernels[static_cast<std::size_t>(k)];
      CHECK((sample.times.size() >= 2 && sample.times.size() <= 3));
      CHECK(sample.fastest() > 0);
      CHECK(sample.median() >= sample.fastest());
    }
    CHECK(timed.step.times.empty() == !whole_steps);
    CHECK(step.left_out().empty());
  }
}

TEST_CASE("timing keeps its time, or says that it was too short") {
  const Model model =
      parse_model("model: m\ninput: {channels: 16}\nlayers:\n  - {fc: a, units: 16}\n  - {softmax: p}\n", "m.yaml");
  const auto run = [&](TimingRule rule) {
    ExecutedStep step(model, 2, Optimizer::sgd);
    const TimedStep timed = time_step(step, 1 << 20, rule, false, [](double) {});
    std::size_t repetitions = 0;
    for (const int k : timed.distinct) repetitions += timed.kernels[static_cast<std::size_t>(k)].times.size();
    return repetitions;
  };
  // A clock on which one look takes 1 ms, and an uncertainty that is never reached: only time ends it.
  double now = 0;
  const TimingRule endless{.least = 7, .most = 1 << 20, .uncertainty = -1, .clock = [&now] { return now += 1e-3; }};
  TimingRule rule = endless;
  rule.stop_at = 2;
  CHECK(run(rule) > 200);  // a repetition looks at most ten times
  CHECK(now <= 2.01);

  rule.stop_at = 100;
  rule.enough_at = now;   // over: once is enough
  CHECK(run(rule) == 5);  // forward 2, backward data of the softmax, backward weights and update of the product
  rule.stop_at = now;
  CHECK_THROWS_AS(run(rule), ConfigError);
}

TEST_CASE("samples: median, quartiles and the median's uncertainty") {
  // Of 1 ... 9 the quartiles are 3 and 7: spread 4/5; 0.93 * 0.8 / 3.
  const Sample sample{{9, 8, 7, 6, 5, 4, 3, 2, 1}};
  CHECK(sample.median() == 5);
  CHECK(sample.fastest() == 1);
  CHECK(sample.spread() == Approx(0.8));
  CHECK(sample.uncertainty() == Approx(0.248));
}
