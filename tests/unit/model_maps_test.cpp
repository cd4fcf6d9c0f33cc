// Convolutions of all kinds, and layers that bring maps to other sizes: shapes, parameters and FLOP worked out by hand.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "costmodels/layer_kernels.hpp"
#include "costmodels/roofline.hpp"
#include "tests/support/error_message.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::model_maps_test {

namespace {

Model parse_maps(const std::string& layers, const std::string& input = "{channels: 4, height: 5, width: 5}",
                 const std::string& more = "") {
  return parse_model("model: test\ninput: " + input + "\n" + more + "layers:\n" + layers, "m.yaml");
}

const Layer& layer_of(const Model& model, const std::string& name) {
  for (const Layer& candidate : model.layers)
    if (candidate.name == name) return candidate;
  FAIL("no layer " << name);
  return model.layers.front();
}

}  // namespace

TEST_CASE("a transposed convolution: out = (in - 1) stride - 2 padding + kernel + output_padding") {
  const Model model = parse_maps(
      "  - {conv: c, filters: 4, kernel: 1}\n"
      "  - {conv: t, filters: 6, kernel: 3, stride: 2, padding: 1, output_padding: 1, groups: 2, transposed: true}\n");
  const Layer& t = layer_of(model, "t");
  CHECK(t.output == Shape{6, 10, 10});  // 4 x 2 - 2 + 3 + 1
  CHECK(is_transposed(t));
  REQUIRE(t.parameters.size() == 2);
  CHECK(t.parameters[0].values == 4 * 3 * 3 * 3);  // each channel to the 6 / 2 filters of its group
  CHECK(t.parameters[1].values == 6);
  CHECK(t.forward_flop == 2.0 * 4 * 25 * 3 * 3 * 3);  // each input value meets its 27 weights
  CHECK(t.backward_data_flop == t.forward_flop);
  CHECK(t.backward_weights_flop == t.forward_flop);
  CHECK(layer_of(model, "c").keeps_output);  // the weights' gradient reads it
  CHECK(t.backward_reads_input);
}

TEST_CASE("transposed convolutions of one, two and three dimensions") {
  const auto shape = [](const std::string& layer, const std::string& input) {
    return layer_of(parse_maps("  - " + layer + "\n", input), "t").output;
  };
  // WaveGlow's frames to samples: 31 x 256 + 1024.
  CHECK(shape("{conv1d: t, filters: 80, kernel: 1024, stride: 256, transposed: true}", "{channels: 80, width: 32}") ==
        Shape{80, 1, 8960});
  CHECK(shape("{conv: t, filters: 3, kernel: [1, 4], stride: 2, padding: [0, 1], transposed: true}",
              "{channels: 4, height: 3, width: 5}") == Shape{3, 5, 10});  // 2 x 2 + 1; 4 x 2 - 2 + 4
  CHECK(shape("{conv: t, filters: 3, kernel: 3, dilation: 2, transposed: true}",
              "{channels: 4, height: 5, width: 5}") == Shape{3, 9, 9});  // 4 + 2 x 2 + 1
  CHECK(shape("{conv: t, filters: 3, kernel: 3, stride: 2, padding: same, transposed: true}",
              "{channels: 4, height: 5, width: 5}") == Shape{3, 10, 10});
  const Model volume = parse_maps("  - {conv3d: t, filters: 5, kernel: 2, stride: 2, transposed: true}\n",
                                  "{channels: 2, height: 3, width: 4, depth: 2}");
  CHECK(layer_of(volume, "t").output == Shape{5, 6, 8, 4});
  CHECK(layer_of(volume, "t").parameter_count() == 2 * 5 * 8 + 5);
  CHECK(layer_of(volume, "t").forward_flop == 2.0 * 2 * 24 * 5 * 8);
}

TEST_CASE("a transposed convolution runs the kernels of the convolution that it is the gradient of") {
  // A convolution of 10 x 10 to 5 x 5, floor((10 + 2 - 3) / 2) + 1, and the way back.
  const Model down = parse_maps(
      "  - {conv: first, filters: 6, kernel: 1}\n"
      "  - {conv: c, filters: 4, kernel: 3, stride: 2, padding: 1, groups: 2}\n",
      "{channels: 4, height: 10, width: 10}");
  const Model up = parse_maps(
      "  - {conv: first, filters: 4, kernel: 1}\n"
      "  - {conv: t, filters: 6, kernel: 3, stride: 2, padding: 1, output_padding: 1, groups: 2, transposed: true}\n");
  const auto kernel = [](const Model& model, const char* name, KernelPass pass) {
    const std::vector<LayerKernel> kernels = layer_kernels(layer_of(model, name), 7, pass);
    REQUIRE(kernels.size() == 1);
    return kernels.front().shape;
  };
  using Pair = std::pair<KernelPass, KernelPass>;
  for (const auto& [of_up, of_down] :
       {Pair{KernelPass::forward, KernelPass::backward_data}, Pair{KernelPass::backward_data, KernelPass::forward},
        Pair{KernelPass::backward_weights, KernelPass::backward_weights}}) {
    const KernelShape made = kernel(up, "t", of_up);
    CHECK(made.pass == of_down);
    CHECK(made.text() == kernel(down, "c", of_down).text());
    CHECK(kernel_work(made).flop == 7 * layer_of(up, "t").forward_flop);
  }
  const Model volume = parse_maps("  - {conv3d: t, filters: 5, kernel: 2, stride: 2, transposed: true}\n",
                                  "{channels: 2, height: 3, width: 4, depth: 2}");
  CHECK(kernel_work(kernel(volume, "t", KernelPass::forward)).flop == 7 * layer_of(volume, "t").forward_flop);
}

TEST_CASE("dilation: a kernel of k taps covers dilation (k - 1) + 1 values") {
  const auto width = [](const std::string& settings) {
    return layer_of(
               parse_maps("  - {conv1d: c, filters: 3, kernel: 3, " + settings + "}\n", "{channels: 4, width: 20}"),
               "c")
        .output.width;
  };
  CHECK(width("dilation: 4") == 12);  // 20 - 8
  CHECK(width("dilation: 4, padding: 4") == 20);
  CHECK(width("dilation: 4, padding: same") == 20);
  CHECK(width("dilation: 3, stride: 2") == 7);  // floor((20 - 7) / 2) + 1
  const Layer dense = layer_of(parse_maps("  - {conv: c, filters: 3, kernel: 3, padding: 1}\n"), "c");
  const Layer wide = layer_of(parse_maps("  - {conv: c, filters: 3, kernel: 3, padding: 2, dilation: 2}\n"), "c");
  CHECK(wide.forward_flop == dense.forward_flop);
  CHECK(wide.parameter_count() == dense.parameter_count());
}

TEST_CASE("a conv1d is a convolution along the width") {
  const Model model = parse_maps("  - {conv1d: c, filters: 3, kernel: 5, stride: 2, padding: 2, weight_norm: true}\n",
                                 "{channels: 4, width: 9}");
  const Layer& c = layer_of(model, "c");
  CHECK(c.output == Shape{3, 1, 5});
  CHECK(c.parameter_count() == 4 * 3 * 5 + 3 + 3);  // with a bias and a length of each filter
  CHECK(c.forward_flop == 2.0 * 3 * 5 * 4 * 5);
}

TEST_CASE("convolutions share weight and bias, which are read but neither counted nor updated twice") {
  const Model model = parse_maps(
      "  - {conv: a, filters: 4, kernel: 3, padding: 1}\n"
      "  - {conv: b, filters: 4, kernel: 3, padding: 1, tied: a}\n");
  CHECK(model.parameter_count() == 4 * 4 * 9 + 4);
  CHECK(layer_of(model, "b").tied_to == 1);
  CHECK(layer_of(model, "b").backward_weights_flop == layer_of(model, "a").backward_weights_flop);
  Device device;
  device.name = "slow";
  device.peak_rate = FlopPerSecond(1e30);
  device.memory_bandwidth = BytesPerSecond(4);  // a value a second
  const Roofline ideal({.efficiency = 1, .memory_efficiency = 1, .overhead = Seconds(0)});
  const PassTimes times = ideal.times(layer_of(model, "b"), 1, device);
  CHECK(times.forward.value == Approx(100 + 100 + 4 * 4 * 9));
  CHECK(times.update.value == 0);
}

TEST_CASE("what is not trained has parameters but no gradient of them, and nothing before it has gradients") {
  const Model model = parse_maps(
      "  - {conv: fixed, filters: 4, kernel: 3, padding: 1, trained: false}\n"
      "  - {batch_norm: norm, frozen: true}\n"
      "  - {conv: own, filters: 4, kernel: 1}\n"
      "  - {conv: behind, filters: 4, kernel: 1, trained: false}\n");
  CHECK(model.parameter_count() == (4 * 4 * 9 + 4) + (16 + 4) + (16 + 4));
  const Layer& fixed = layer_of(model, "fixed");
  CHECK(fixed.weight_count() == 148);
  CHECK(fixed.parameter_count() == 0);
  CHECK(!fixed.needs_gradient);
  CHECK(fixed.backward_data_flop + fixed.backward_weights_flop == 0);
  const Layer& norm = layer_of(model, "norm");
  CHECK(norm.forward_flop == 2 * 100);  // multiply-add
  CHECK(norm.parameters.empty());
  CHECK(layer_of(model, "own").backward_data_flop == 0);
  CHECK(layer_of(model, "own").backward_weights_flop > 0);
  CHECK(layer_of(model, "behind").backward_data_flop == layer_of(model, "behind").forward_flop);
  CHECK(layer_of(model, "behind").backward_weights_flop == 0);
  // Backward reads own's input, and the result; the image and what `fixed` and `own` made are read by none.
  CHECK(model.activation_values() == 2 * 100);
}

TEST_CASE("a frozen normalisation hands gradients on by one product a value") {
  const Model model = parse_maps("  - {conv: c, filters: 4, kernel: 1}\n  - {batch_norm: n, frozen: true}\n");
  CHECK(layer_of(model, "n").backward_data_flop == 100);
  CHECK(layer_of(model, "n").backward_weights_flop == 0);
}

TEST_CASE("pools of volumes cover the depth") {
  const Model model =
      parse_maps("  - {pool3d: p, kernel: 2, stride: 2}\n", "{channels: 4, height: 6, width: 8, depth: 5}");
  CHECK(layer_of(model, "p").output == Shape{4, 3, 4, 2});
  CHECK(layer_of(model, "p").forward_flop == 8.0 * 4 * 3 * 4 * 2);
}

TEST_CASE("maps are enlarged, cut, folded and seen through regions") {
  const Model model = parse_maps(
      "  - {conv: c, filters: 4, kernel: 1}\n"
      "  - {resize: twice, factor: 2}\n"
      "  - {crop: cut, height: 8, width: 6}\n"
      "  - {pixel_unshuffle: folded, factor: 2}\n"
      "  - {select: some, channels: 5, output: true}\n"
      "  - {regions: seen, inputs: [c, twice], count: 3, size: 7}\n");
  CHECK(layer_of(model, "twice").output == Shape{4, 10, 10});
  CHECK(layer_of(model, "twice").forward_flop == 0);
  CHECK(layer_of(model, "twice").backward_data_flop == 400);  // gradients of four copies each are added up
  CHECK(layer_of(model, "cut").output == Shape{4, 8, 6});
  CHECK(layer_of(model, "folded").output == Shape{16, 4, 3});
  CHECK(layer_of(model, "some").output == Shape{5, 4, 3});
  const Layer& seen = layer_of(model, "seen");
  CHECK(seen.output == Shape{4, 7, 7, 3});
  CHECK(seen.input_values == 100 + 400);
  CHECK(seen.forward_flop == 33.0 * 4 * 49 * 3);  // 4 points of 4 neighbours, a multiply-add each, and their mean
  CHECK(seen.backward_data_flop == seen.forward_flop);
  const Model sequence =
      parse_maps("  - {pixel_unshuffle: f, factor: [1, 8]}\n  - {resize: r, width: 7}\n", "{channels: 80, width: 16}");
  CHECK(layer_of(sequence, "f").output == Shape{640, 1, 2});
  CHECK(layer_of(sequence, "r").output == Shape{640, 1, 7});
}

TEST_CASE("further data of a sample is there without work") {
  const Model model = parse_maps(
      "  - {embedding: words, vocabulary: 10, units: 4}\n"
      "  - {data: sound, channels: 8, width: 6}\n"
      "  - {linear: l, units: 4}\n"
      "  - {attention: a, inputs: [l, words, words]}\n",
      "{channels: 1, width: 5}");
  const Layer& sound = layer_of(model, "sound");
  CHECK(sound.output == Shape{8, 1, 6});
  CHECK(!sound.needs_gradient);
  CHECK(sound.keeps_output);  // the gradient of l's weight reads it
  CHECK(layer_of(model, "l").backward_data_flop == 0);
  CHECK(layer_kernels(sound, 2, KernelPass::forward).empty());
}

TEST_CASE("gates: tanh of one half times the sigmoid of the other") {
  const Model model = parse_maps("  - {conv: c, filters: 6, kernel: 1}\n  - gated_tanh\n  - {exp: e}\n");
  CHECK(layer_of(model, "c.gated_tanh").output == Shape{3, 5, 5});
  CHECK(layer_of(model, "c.gated_tanh").forward_flop == 8 * 75);
  CHECK(layer_of(model, "e").forward_flop == 75);
}

TEST_CASE("`previous` is what the block before read") {
  const std::string block =
      "blocks:\n"
      "  cell:\n"
      "    - {conv: c, filters: 4, kernel: 1}\n"
      "    - {add: sum, inputs: [c, previous]}\n";
  const Model model = parse_maps(
      "  - {conv: stem, filters: 4, kernel: 1}\n"
      "  - {block: a, use: cell, repeat: 2}\n"
      "  - {relu: r}\n"
      "  - {block: b, use: cell}\n",
      "{channels: 4, height: 5, width: 5}", block);
  // Layers: 1 stem, 2 a.0.c, 3 a.0.sum, 4 a.1.c, 5 a.1.sum, 6 r, 7 b.c, 8 b.sum.
  CHECK(layer_of(model, "a.0.sum").inputs == std::vector<int>{2, 1});  // nothing before: its own input
  CHECK(layer_of(model, "a.1.sum").inputs == std::vector<int>{4, 1});
  CHECK(layer_of(model, "b.sum").inputs == std::vector<int>{7, 3});
}

TEST_CASE("mistakes in maps are found with place and remedy") {
  struct Mistake {
    std::string layers, expected;
  };
  const std::vector<Mistake> mistakes{
      {"  - {conv: t, filters: 4, kernel: 3, output_padding: 1}\n", "layers[0].output_padding: belongs to transposed"},
      {"  - {conv: t, filters: 4, kernel: 3, stride: 2, output_padding: 2, transposed: true}\n",
       "must be smaller than stride or dilation"},
      {"  - {conv: t, filters: 4, kernel: 1, padding: 3, transposed: true}\n", "padding 3 on each side leaves nothing"},
      {"  - {conv: t, filters: 4, kernel: 3, dilation: 3}\n", "kernel 3 with dilation 3 is larger than the input of 5"},
      {"  - {conv: t, filters: 4, kernel: 3, dilation: 0}\n", "layers[0].dilation"},
      {"  - {conv1d: t, filters: 4, kernel: 3}\n", "a conv1d reads a sequence (features x 1 x length), not 4x5x5"},
      {"  - {conv: a, filters: 4, kernel: 1}\n  - {conv: b, filters: 5, kernel: 1, tied: a}\n",
       "cannot share the parameters of 'a', which is no convolution of the same kind with a weight of 20 values"},
      {"  - {conv: a, filters: 4, kernel: 1}\n  - {conv: b, filters: 4, kernel: 1, tied: a, bias: false}\n",
       "layers[1].bias: is that of 'a', whose parameters are shared; leave it out"},
      {"  - {resize: r}\n", "resize, without a factor, needs a size: height, width or depth"},
      {"  - {crop: r}\n", "crop needs a size"},
      {"  - {crop: r, height: 6}\n", "cannot cut 4x6x5 out of 4x5x5"},
      {"  - {pixel_unshuffle: r, factor: 2}\n", "pixel_unshuffle by 2 x 2 does not divide 4x5x5"},
      {"  - {select: r, channels: 5}\n", "cannot select 5 channels of 4"},
      {"  - {regions: r, inputs: [], count: 2, size: 7}\n", "needs a list of at least one layer"},
      {"  - {conv: a, filters: 3, kernel: 1}\n  - {regions: r, inputs: [a, input], count: 2, size: 7}\n",
       "equally many channels and no depth, not 4x5x5"},
      {"  - {relu: previous}\n", "'previous' means what the block before read; choose another name"},
      {"  - {conv: a, filters: 3, kernel: 1}\n  - gated_tanh\n", "must be even, not 3"},
  };
  for (const Mistake& mistake : mistakes) {
    INFO(mistake.layers);
    CHECK_THAT(epocast::testing::message([&] { parse_maps(mistake.layers); }),
               Catch::Matchers::Contains(mistake.expected));
  }
}

}  // namespace epocast::model_maps_test
