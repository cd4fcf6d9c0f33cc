// The kernels that layers amount to: sizes derived by hand, and FLOP against what the models count.
#include "costmodels/layer_kernels.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "costmodels/fitted.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::layer_kernels_test {

namespace {

const std::filesystem::path kRoot(EPOCAST_SOURCE_DIR);

std::string text(const std::vector<LayerKernel>& kernels) {
  std::string out;
  for (const LayerKernel& k : kernels)
    out += (k.repeats == 1 ? "" : std::to_string(static_cast<int>(k.repeats)) + " x ") + k.shape.family() + " " +
           k.shape.text() + "\n";
  return out;
}

std::string kernels(const Model& model, const std::string& layer, std::int64_t batch, KernelPass pass) {
  for (const Layer& l : model.layers)
    if (l.name == layer) return text(layer_kernels(l, batch, pass));
  return "no layer " + layer;
}

Model model_of(const std::string& layers) {
  return parse_model("model: m\nsource: a test\ninput: {channels: 6, width: 5}\nlayers:\n" + layers, "m.yaml");
}

/// FLOP of the products (not of sums, softmaxes and gates) in one pass of a model.
double product_flop(const Model& model, std::int64_t batch, KernelPass pass) {
  double sum = 0;
  for (const Layer& layer : model.layers)
    for (const LayerKernel& k : layer_kernels(layer, batch, pass)) sum += k.repeats * kernel_work(k.shape).flop;
  return sum;
}

}  // namespace

TEST_CASE("a linear layer is one product of all positions of the batch", "[layer_kernels]") {
  // 6 features to 8 at 5 positions of 4 samples: 20 vectors.
  const Model m = model_of("  - {linear: below, units: 6}\n  - {linear: l, units: 8}\n");
  CHECK(kernels(m, "l", 4, KernelPass::forward) == "gemm m=8 n=20 k=6 ta=1 tb=0\n");
  CHECK(kernels(m, "l", 4, KernelPass::backward_data) == "gemm m=6 n=20 k=8 ta=0 tb=0\n");
  CHECK(kernels(m, "l", 4, KernelPass::backward_weights) == "gemm m=6 n=8 k=20 ta=0 tb=1\n");
  CHECK(kernels(m, "below", 4, KernelPass::backward_data).empty());
}

TEST_CASE("attention is batched products of its heads around a softmax", "[layer_kernels]") {
  // 12 features x 3 from 6; 2 heads of 6 features; 5 positions; 4 samples: 8 products, 8 x 25 = 200 scores.
  const std::string below = "  - {linear: qkv, units: 36}\n";
  const Model m = model_of(below + "  - {attention: a, heads: 2}\n");
  const std::string scores = "gemm m=5 n=5 k=6 ta=1 tb=0 count=8\n", sum = "gemm m=6 n=5 k=5 ta=0 tb=0 count=8\n";
  CHECK(kernels(m, "a", 4, KernelPass::forward) == scores + "memory op=softmax values=400\n" + sum);
  CHECK(kernels(m, "a", 4, KernelPass::backward_data) ==
        sum + scores + sum + scores + "memory op=softmax values=600\n");
  CHECK(kernels(m, "a", 4, KernelPass::backward_weights).empty());
  // Fused: no scores in memory, but once more backward.
  const Model fused = model_of(below + "  - {attention: a, heads: 2, fused: true}\n");
  CHECK(kernels(fused, "a", 4, KernelPass::forward) == scores + sum);
  CHECK(kernels(fused, "a", 4, KernelPass::backward_data) == sum + scores + sum + scores + scores);
  // Causal: 15 of 25 pairs, 3 keys for a query on average.
  const Model causal = model_of(below + "  - {attention: a, heads: 2, pairs: causal}\n");
  CHECK(kernels(causal, "a", 1, KernelPass::forward) ==
        "gemm m=3 n=5 k=6 ta=1 tb=0 count=2\nmemory op=softmax values=60\ngemm m=6 n=5 k=3 ta=0 tb=0 count=2\n");
}

TEST_CASE("attention by single operations copies heads, and softmaxes come in fp32 under autocast", "[layer_kernels]") {
  // As above: 120 values of queries, keys, values and output each, 200 scores.
  const auto passes = [&](const char* kernels, Precision precision, const std::string& options, KernelPass pass) {
    const Model m = model_of("  - {linear: qkv, units: 18}\n  - {attention: a, heads: 2" + options + "}\n");
    KernelStyle style = kernel_style(precision, true);
    style.framework.autocast = std::string(kernels) == "autocast";
    style.framework.attention = parse_attention_kernels(style.framework.autocast ? "eager" : kernels);
    return text(layer_kernels(m.layers.back(), 4, pass, style));
  };
  const std::string scores = "gemm m=5 n=5 k=3 ta=1 tb=0 count=8\n", sum = "gemm m=3 n=5 k=5 ta=0 tb=0 count=8\n";
  const std::string copy = "memory op=rearrange values=240\n", inputs = copy + copy + copy;
  const auto move = [](const std::string& op, int values) {
    return "memory op=" + op + " values=" + std::to_string(values) + "\n";
  };
  const std::string scaled = move("activation", 400), masked = move("add", 400);
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    CHECK(passes("eager", precision, "", KernelPass::forward) ==
          inputs + scores + scaled + masked + move("softmax", 400) + sum + copy);
    CHECK(passes("eager", precision, "", KernelPass::backward_data) ==
          copy + sum + scores + sum + scores + move("softmax", 600) + scaled + inputs);
  }
  CHECK(passes("eager", Precision::bf16, "", KernelPass::backward_weights).empty());
  // Two bytes read and four written; four and two. With a mask of one byte: nine of 2.
  const std::string dropped = ", softmax_dropout: 1";
  CHECK(passes("autocast", Precision::bf16, dropped, KernelPass::forward) ==
        inputs + scores + scaled + masked + move("softmax", 600) + move("dropout", 900) + move("activation", 600) +
            sum + copy);
  CHECK(passes("autocast", Precision::bf16, dropped, KernelPass::backward_data) ==
        copy + sum + scores + sum + scores + move("activation", 600) + move("dropout", 900) + move("softmax", 1000) +
            scaled + inputs);
  CHECK(passes("eager", Precision::bf16, dropped, KernelPass::forward) ==
        inputs + scores + scaled + masked + move("softmax", 400) + move("dropout", 500) + sum + copy);
  // Maximum, sum and quotient each read the scores; backward gradient and softmax are read for a sum, and again, with
  // the mask, half an access of 2 bytes.
  CHECK(passes("compiled", Precision::bf16, "", KernelPass::forward) ==
        inputs + scores + move("softmax", 800) + sum + copy);
  CHECK(passes("compiled", Precision::bf16, dropped, KernelPass::forward) ==
        inputs + scores + move("softmax", 900) + sum + copy);
  CHECK(passes("compiled", Precision::bf16, dropped, KernelPass::backward_data) ==
        copy + sum + scores + sum + scores + move("softmax", 1200) + inputs);
  // One kernel has no such operations.
  CHECK(passes("eager", Precision::bf16, ", fused: true", KernelPass::forward) ==
        passes("fused_softmax", Precision::bf16, ", fused: true", KernelPass::forward));
  CHECK_THROWS_WITH(parse_attention_kernels("eagre"), Catch::Contains("did you mean 'eager'"));
}

TEST_CASE("a dropout in the kernel of the sum behind it writes a mask only", "[layer_kernels]") {
  // 6 features at 5 positions of 4 samples: 120 values of two bytes. Apart: the dropout reads, writes and masks
  // (2.5 x 120 = 300), the sum reads two and writes one (360). Together: two read, one written, a mask (3.5 x 120).
  // Backward they are apart in any case.
  const auto forward = [](const std::string& fused, const std::string& layer, KernelPass pass) {
    const Model m = model_of("  - {linear: below, units: 6}\n  - {dropout: d, mask: true, fused: " + fused +
                             "}\n  - {add: sum, inputs: [d, below]}\n");
    for (const Layer& l : m.layers)
      if (l.name == layer) return text(layer_kernels(l, 4, pass, {.traffic = Traffic::kernels}));
    return std::string("no layer " + layer);
  };
  CHECK(forward("false", "d", KernelPass::forward) == "memory op=dropout values=300\n");
  CHECK(forward("false", "sum", KernelPass::forward) == "memory op=add values=360\n");
  CHECK(forward("true", "d", KernelPass::forward).empty());
  CHECK(forward("true", "sum", KernelPass::forward) == "memory op=add values=420\n");
  for (const char* fused : {"false", "true"}) {
    CHECK(forward(fused, "d", KernelPass::backward_data) == "memory op=dropout values=300\n");
    CHECK(forward(fused, "sum", KernelPass::backward_data) == "memory op=gradient_sum values=360\n");
  }
}

TEST_CASE("accesses are of a format's values: casts and masks weigh otherwise in four bytes", "[layer_kernels]") {
  // 6 features at 5 positions of 4 samples, as above; 20 losses over 6 logits.
  const Model m = model_of(
      "  - {linear: below, units: 6}\n  - {dropout: d, mask: true}\n  - {add: sum, inputs: [d, below]}\n  - {softmax: "
      "p}\n");
  const auto in = [&](Precision precision, const std::string& layer, KernelPass pass) {
    for (const Layer& l : m.layers)
      if (l.name == layer) return text(layer_kernels(l, 4, pass, kernel_style(precision, true)));
    return std::string("no layer " + layer);
  };
  // A mask is half of an access of two bytes and a quarter of one of four.
  CHECK(in(Precision::bf16, "d", KernelPass::forward) == "memory op=dropout values=300\n");
  CHECK(in(Precision::tf32, "d", KernelPass::forward) == "memory op=dropout values=270\n");
  // Loss: 8 bytes of a logit, and 6 to cast it; backward 16 and 6.
  CHECK(in(Precision::bf16, "p", KernelPass::forward) == "memory op=loss values=840\n");  // 14 / 2 x 120
  CHECK(in(Precision::tf32, "p", KernelPass::forward) == "memory op=loss values=240\n");  // 8 / 4 x 120
  CHECK(in(Precision::bf16, "p", KernelPass::backward_data) == "memory op=loss values=1320\n");
  CHECK(in(Precision::tf32, "p", KernelPass::backward_data) == "memory op=loss values=480\n");
  // In fp32 a layer moves what it reads and writes.
  CHECK(in(Precision::fp32, "p", KernelPass::forward) == "memory op=softmax values=240\n");
}

TEST_CASE("autocast keeps norms and the sums between them in fp32, and casts for products", "[layer_kernels]") {
  // 6 features at 5 positions of 4 samples: 120 values, of two bytes or four.
  const Model m = model_of(
      "  - {linear: below, units: 6}\n  - {linear: branch, units: 6}\n  - {add: sum, inputs: [branch, below]}\n"
      "  - {layer_norm: n}\n");
  const auto passes = [&](const std::string& name, KernelPass pass, bool has_norms, Precision precision) {
    KernelStyle style = kernel_style(precision, true);
    style.framework.autocast = true;
    style.has_norms = has_norms;
    for (const Layer& l : m.layers)
      if (l.name == name) return text(layer_kernels(l, 4, pass, style));
    return std::string("no layer " + name);
  };
  const Precision half = Precision::bf16;
  const std::string cast = "memory op=activation values=360\n";  // two bytes and four
  CHECK(passes("n", KernelPass::forward, true, half) == "memory op=layer_norm values=480\n" + cast);
  CHECK(passes("n", KernelPass::backward_data, true, half) == "memory op=layer_norm values=720\n" + cast);
  CHECK(passes("n", KernelPass::backward_weights, true, half) == "memory op=layer_norm values=480\n");
  // A branch of two bytes and a sum of four make one of four; both gradients are of four, that of the branch is cast.
  CHECK(passes("sum", KernelPass::forward, true, half) == "memory op=add values=600\n");
  CHECK(passes("sum", KernelPass::backward_data, true, half) == "memory op=gradient_sum values=720\n" + cast);
  // Batch normalisation is in neither of autocast's lists.
  CHECK(passes("sum", KernelPass::forward, false, half) == "memory op=add values=360\n");
  CHECK(passes("sum", KernelPass::backward_data, false, half) == "memory op=gradient_sum values=360\n");
  CHECK(passes("n", KernelPass::forward, true, Precision::tf32) == "memory op=layer_norm values=240\n");
  CHECK(passes("sum", KernelPass::forward, true, Precision::tf32) == "memory op=add values=360\n");
}

TEST_CASE("an eager GELU reads and writes in each operation", "[layer_kernels]") {
  const Model m = model_of("  - {linear: below, units: 6}\n  - {gelu: g}\n");
  const auto passes = [&](Precision precision, bool autocast) {
    KernelStyle style = kernel_style(precision, true);
    style.framework.gelu = parse_gelu_kernels("eager");
    style.framework.autocast = autocast;
    return text(layer_kernels(m.layers.back(), 4, KernelPass::forward, style)) +
           text(layer_kernels(m.layers.back(), 4, KernelPass::backward_data, style));
  };
  const auto move = [](int accesses) { return "memory op=activation values=" + std::to_string(120 * accesses) + "\n"; };
  // Cube, two scalings, hyperbolic tangent, one more, half: 2 each; sum and product: 3 each. Back: product 3 + 3, half
  // 2, tangent 3, scalings 2 + 2, cube 2 + 2 + 3, two sums of gradients 3 each.
  for (const Precision precision : {Precision::bf16, Precision::tf32, Precision::fp32})
    CHECK(passes(precision, false) == move(6 * 2 + 2 * 3) + move(3 + 3 + 2 + 3 + 2 + 2 + 7 + 2 * 3));
  // Bytes of a value: casts 6 before and after, five kernels of 8, sum and product 10, half 4. Back: four casts of 6,
  // half 4, 12 and 10 of the product, tangent 12, scalings 16, cube 28, sums 12.
  CHECK(passes(Precision::bf16, true) ==
        move((2 * 6 + 5 * 8 + 2 * 10 + 4) / 2) + move((4 * 6 + 4 + 12 + 10 + 12 + 16 + 28 + 12) / 2));
  CHECK_THROWS_WITH(parse_gelu_kernels("egaer"), Catch::Contains("did you mean 'eager'"));
}

TEST_CASE("a fused batch normalisation takes the sum and the ReLU behind it along", "[layer_kernels]") {
  const Model m = parse_model(
      "model: m\nsource: a test\ninput: {channels: 8, height: 5, width: 5}\nlayers:\n"
      "  - {conv: c1, filters: 8, kernel: 1, bias: false}\n  - {batch_norm: n1}\n  - {relu: r1}\n"
      "  - {conv: c2, filters: 8, kernel: 1, bias: false}\n  - {batch_norm: n2}\n"
      "  - {conv: side, filters: 8, kernel: 1, bias: false, input: r1}\n  - {batch_norm: n3}\n"
      "  - {add: sum, inputs: [n2, n3]}\n  - {relu: r2}\n  - {batch_norm: n4}\n  - {sigmoid: s}\n",
      "m.yaml");
  const std::vector<FusedNorm> fused = fused_norms(m);
  const auto at = [&](const std::string& name) {
    const auto found = std::ranges::find(m.layers, name, &Layer::name);
    return static_cast<std::size_t>(found - m.layers.begin());
  };
  using enum FusedNorm;
  CHECK(std::vector{fused[at("c1")], fused[at("n1")], fused[at("r1")]} == std::vector{no, with_relu, part_of_norm});
  // The last that is added: the other is there before.
  CHECK(std::vector{fused[at("n2")], fused[at("n3")], fused[at("sum")], fused[at("r2")]} ==
        std::vector{alone, with_sum, part_of_norm, part_of_norm});
  CHECK(std::vector{fused[at("n4")], fused[at("s")]} == std::vector{alone, no});

  const auto moved = [&](const std::string& name, KernelPass pass, Precision precision) {
    KernelStyle style = kernel_style(precision, true);
    style.framework.batch_norm = parse_batch_norm_kernels("fused");
    style.fused_norm = fused[at(name)];
    return text(layer_kernels(m.layers[at(name)], 16, pass, style));
  };
  // 16 x 8 x 25 values: read twice and written, what is added, and a sixteenth of an access in two bytes for the mask;
  // backward gradient and input read twice, one or two gradients written.
  const auto accesses = [](double of_value) {
    return "memory op=activation values=" + std::to_string(static_cast<int>(3200 * of_value)) + "\n";
  };
  using enum KernelPass;
  CHECK(moved("n1", forward, Precision::fp16) == accesses(3 + 1 / 16.0));
  CHECK(moved("n3", forward, Precision::fp16) == accesses(4 + 1 / 16.0));
  CHECK(moved("n2", forward, Precision::fp16) == accesses(3));
  CHECK(moved("n1", backward_data, Precision::fp16) == accesses(5 + 1 / 16.0));
  CHECK(moved("n3", backward_data, Precision::fp32) == accesses(6 + 1 / 32.0));
  CHECK(moved("n3", backward_weights, Precision::fp16).empty());
  for (const char* name : {"r1", "r2", "sum"}) CHECK(moved(name, forward, Precision::fp16).empty());
  for (const char* name : {"r1", "r2"}) CHECK(moved(name, backward_data, Precision::fp16).empty());
  // Where the first ReLU's output is branched off, gradients are added by a kernel of their own.
  CHECK(moved("sum", backward_data, Precision::fp16) == "memory op=gradient_sum values=9600\n");
  CHECK_THROWS_WITH(parse_batch_norm_kernels("fusde"), Catch::Contains("did you mean 'fused'"));
}

TEST_CASE("the loss moves what its kernels do", "[layer_kernels]") {
  // 4 samples at 5 positions, 6 logits: 120 values.
  const Model m = model_of("  - {linear: l, units: 6}\n  - {softmax: p}\n");
  const auto passes = [&](const char* loss, Precision precision) {
    KernelStyle style = kernel_style(precision, true);
    style.framework.loss = parse_loss_kernels(loss);
    return text(layer_kernels(m.layers.back(), 4, KernelPass::forward, style)) +
           text(layer_kernels(m.layers.back(), 4, KernelPass::backward_data, style));
  };
  // 38 and 22 bytes of two each; of four 32 and 16, without casts.
  CHECK(passes("vocabulary_parallel", Precision::bf16) == "memory op=loss values=2280\nmemory op=loss values=1320\n");
  CHECK(passes("vocabulary_parallel", Precision::tf32) == "memory op=loss values=960\nmemory op=loss values=480\n");
  CHECK(passes("framework", Precision::bf16) == "memory op=loss values=840\nmemory op=loss values=1320\n");
  // Read once; read and written.
  for (const Precision precision : {Precision::bf16, Precision::tf32})
    CHECK(passes("fused", precision) == "memory op=loss values=120\nmemory op=loss values=240\n");
  // Metrics: a framework's forward pass each, 14 bytes of two.
  KernelStyle style = kernel_style(Precision::bf16, true);
  style.framework.loss = LossKernels::fused;
  style.framework.metrics = 2;
  CHECK(text(layer_kernels(m.layers.back(), 4, KernelPass::forward, style)) ==
        "memory op=loss values=120\n2 x memory op=loss values=840\n");
  CHECK(text(layer_kernels(m.layers.back(), 4, KernelPass::backward_data, style)) == "memory op=loss values=240\n");
  // In fp32 as much is added to what the layer reads and writes, 8 bytes of four.
  style = kernel_style(Precision::fp32, true);
  style.framework.metrics = 2;
  CHECK(text(layer_kernels(m.layers.back(), 4, KernelPass::forward, style)) ==
        "memory op=softmax values=240\n2 x memory op=loss values=240\n");
  CHECK(text(layer_kernels(m.layers.back(), 4, KernelPass::backward_data, style)) ==
        text(layer_kernels(m.layers.back(), 4, KernelPass::backward_data, kernel_style(Precision::fp32, true))));
  CHECK_THROWS_WITH(parse_loss_kernels("fusd"), Catch::Contains("did you mean 'fused'"));
}

TEST_CASE("choices of a framework are told where they differ from the defaults", "[layer_kernels]") {
  CHECK(in_words(FrameworkKernels{}).empty());
  FrameworkKernels kernels;
  kernels.attention = AttentionKernels::eager;
  kernels.autocast = true;
  kernels.metrics = 2;
  CHECK(in_words(kernels) == "eager attention, autocast, the loss 2 more times");
}

TEST_CASE("an LSTM is a product of its inputs and a recurrence", "[layer_kernels]") {
  // 6 inputs, 8 units, 5 steps, 4 samples: 32 gates from 20 vectors.
  const Model m = model_of("  - {lstm: below, units: 6}\n  - {lstm: l, units: 8}\n");
  const std::string recurrent = "recurrent gates=4 hidden=8 batch=4 steps=5\n";
  CHECK(kernels(m, "l", 4, KernelPass::forward) == "gemm m=32 n=20 k=6 ta=1 tb=0\n" + recurrent);
  CHECK(kernels(m, "l", 4, KernelPass::backward_data) == "gemm m=6 n=20 k=32 ta=0 tb=0\n" + recurrent);
  CHECK(kernels(m, "l", 4, KernelPass::backward_weights) == "gemm m=6 n=32 k=20 ta=0 tb=1\n" + recurrent);
  CHECK(kernels(m, "below", 4, KernelPass::backward_data) == "recurrent gates=4 hidden=6 batch=4 steps=5\n");
  // Without a recurrent fit: 32 gates from 8 units for 4 samples, 5 times; gradients of weights over all steps.
  const RecurrentShape shape{4, 8, 4, 5};
  CHECK(KernelShape{as_products(shape, KernelPass::forward).shape}.text() == "m=32 n=4 k=8 ta=1 tb=0");
  CHECK(as_products(shape, KernelPass::forward).repeats == 5);
  CHECK(KernelShape{as_products(shape, KernelPass::backward_data).shape}.text() == "m=8 n=4 k=32 ta=0 tb=0");
  CHECK(KernelShape{as_products(shape, KernelPass::backward_weights).shape}.text() == "m=8 n=32 k=20 ta=0 tb=1");
  CHECK(as_products(shape, KernelPass::backward_weights).repeats == 1);
}

TEST_CASE("what comes back to an LSTM is a product in each step", "[layer_kernels]") {
  const Model m = model_of("  - {lstm: r, units: 3, feedback: 2}\n");
  // 2 features and 12 gates of 4 samples at a time; gradients of the weights likewise.
  CHECK(kernels(m, "r", 4, KernelPass::forward) ==
        "gemm m=12 n=20 k=6 ta=1 tb=0\nrecurrent gates=4 hidden=3 batch=4 steps=5\n5 x gemm m=12 n=4 k=2 ta=1 tb=0\n");
  CHECK(kernels(m, "r", 4, KernelPass::backward_data) ==
        "recurrent gates=4 hidden=3 batch=4 steps=5\n5 x gemm m=2 n=4 k=12 ta=0 tb=0\n");
}

TEST_CASE("attention by location goes query by query", "[layer_kernels]") {
  const Model m = model_of(
      "  - {linear: k, units: 8}\n"
      "  - {attention: a, inputs: [k, k, input], score: location, location_filters: 3, location_kernel: 7}\n");
  // 2 samples of 5 keys: 14 values of softmaxes to 3 features, those to 8; the sum of 6 features of the values.
  CHECK(kernels(m, "a", 2, KernelPass::forward) ==
        "5 x gemm m=3 n=10 k=14 ta=1 tb=0\n5 x gemm m=8 n=10 k=3 ta=1 tb=0\n5 x gemm m=6 n=1 k=5 ta=0 tb=0 count=2\n"
        "5 x memory op=attention values=160\n5 x memory op=softmax values=20\n");
}

TEST_CASE("a batched product has the work of its parts, and more to spread over cores", "[layer_kernels]") {
  const KernelShape one{GemmShape{64, 32, 16, true, false}}, twelve{GemmShape{64, 32, 16, true, false, 12}};
  CHECK(kernel_work(twelve).flop == 12 * kernel_work(one).flop);
  CHECK(kernel_work(twelve).bytes == 12 * kernel_work(one).bytes);
  CHECK(parse_kernel_shape("gemm", "forward", twelve.text()).text() == twelve.text());
  const ComputeCalibration v100 = load_compute_calibration(kRoot / "costmodels/calibrations/v100.yaml");
  const KernelFit& fit = *v100.find("gemm", KernelPass::forward);
  const double alone = fit.physical_time(kernel_work(one), v100.rates);
  const double together = fit.physical_time(kernel_work(twelve), v100.rates);
  CHECK(together > alone);
  CHECK(together < 12 * alone);
}

TEST_CASE("products of sequence models have the FLOP that the models count", "[layer_kernels]") {
  // What is no product (softmax, gates, norms, GELU) is below 4 % of these models, and never negative.
  for (const char* name :
       {"bert_base", "bert_large", "gpt2", "gnmt", "word_rnn", "e3d_lstm", "fastpitch", "waveglow"}) {
    CAPTURE(name);
    const Model model = load_model(kRoot / "workloads/models" / (std::string(name) + ".yaml"));
    double forward = 0, data = 0, weights = 0;
    for (const Layer& l : model.layers) {
      forward += l.forward_flop;
      data += l.backward_data_flop;
      weights += l.backward_weights_flop;
    }
    const auto share = [&](double counted, KernelPass pass) { return product_flop(model, 3, pass) / (3 * counted); };
    CHECK(share(forward, KernelPass::forward) == Approx(0.98).margin(0.021));
    CHECK(share(data, KernelPass::backward_data) == Approx(0.98).margin(0.021));
    CHECK(share(weights, KernelPass::backward_weights) == Approx(0.98).margin(0.021));
  }
}

TEST_CASE("fitted times of sequence models lie above the peak rate and within reason", "[layer_kernels][fitted]") {
  // No device does these models faster than its peak (there is no Winograd among products), nor, at batches that fill
  // it, five times slower.
  for (const char* device : {"v100", "p100", "knl7250"})
    for (const char* name : {"bert_base", "gpt2", "gnmt", "word_rnn"}) {
      CAPTURE(device, name);
      const ComputeCalibration c =
          load_compute_calibration(kRoot / "costmodels/calibrations" / (std::string(device) + ".yaml"));
      const Model model = load_model(kRoot / "workloads/models" / (std::string(name) + ".yaml"));
      Device d;
      d.name = "d";
      d.peak_rate = c.rates.peak_rate;
      d.memory_bandwidth = c.rates.memory_bandwidth;
      const Fitted fitted(c, device, Optimizer::sgd, model, d);
      const WorkloadTrace trace = make_trace(model, fitted, 32, d);
      double flop = 0;
      for (const LayerTrace& layer : trace.layers) flop += (layer.forward_flop + layer.backward_flop).value;
      const double least = flop / c.rates.peak_rate.value;
      INFO(trace.compute_time().longest().value / least);
      CHECK(trace.compute_time().longest().value > least);
      CHECK(trace.compute_time().longest().value < 5 * least);
    }
}

}  // namespace epocast::layer_kernels_test
