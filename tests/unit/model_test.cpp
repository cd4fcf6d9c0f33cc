// Reading models: shapes, counts and names follow from the layer list by textbook formulas, worked out by hand in each
// test; every mistake in a file is a ConfigError that names its place and the way out.
#include <catch2/catch.hpp>

#include <functional>
#include <string>

#include "tests/support/error_message.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::model_test {

using epocast::testing::message;

namespace {

Model parse(const std::string& layers, const std::string& input = "{channels: 4, height: 8, width: 8}",
            const std::string& more = "") {
  return parse_model("model: test\ninput: " + input + "\n" + more + "layers:\n" + layers, "m.yaml");
}

const Layer& layer(const Model& model, const std::string& name) {
  for (const Layer& candidate : model.layers)
    if (candidate.name == name) return candidate;
  FAIL("no layer " << name);
  return model.layers.front();
}

std::string parse_message(const std::string& layers, const std::string& more = "") {
  return message([&] { parse(layers, "{channels: 4, height: 8, width: 8}", more); });
}

}  // namespace

TEST_CASE("a convolution's sizes: out = floor((in + 2 padding - kernel) / stride) + 1") {
  const Model model = parse("  - {conv: c, filters: 6, kernel: 3, stride: 2, padding: 1, groups: 2}\n");
  const Layer& conv = layer(model, "c");
  CHECK(conv.output == Shape{6, 4, 4});  // floor((8 + 2 - 3) / 2) + 1 = 4
  REQUIRE(conv.parameters.size() == 2);
  CHECK(conv.parameters[0].name == "c.weight");
  CHECK(conv.parameters[0].values == 6 * 2 * 3 * 3);  // each filter sees 4 / 2 channels
  CHECK(conv.parameters[1].values == 6);
  CHECK(conv.forward_flop == 2.0 * 6 * 4 * 4 * 2 * 3 * 3);
  CHECK(conv.backward_weights_flop == conv.forward_flop);
  CHECK(conv.backward_data_flop == 0);  // the image needs no gradient
}

TEST_CASE("rectangular kernels and same padding keep or divide sizes") {
  const Model model = parse(
      "  - {conv: a, filters: 4, kernel: [1, 7], padding: [0, 3], bias: false}\n"
      "  - {conv: b, filters: 4, kernel: [7, 1], padding: same, bias: false}\n"
      "  - {conv: c, filters: 4, kernel: 3, stride: 3, padding: same}\n");
  CHECK(layer(model, "a").output == Shape{4, 8, 8});
  CHECK(layer(model, "a").parameter_count() == 4 * 4 * 7);
  CHECK(layer(model, "b").output == Shape{4, 8, 8});
  CHECK(layer(model, "b").padding_height == 3);
  CHECK(layer(model, "b").padding_width == 0);
  CHECK(layer(model, "c").output == Shape{4, 3, 3});  // ceil(8 / 3)
  CHECK(layer(model, "b").backward_data_flop == layer(model, "b").forward_flop);
}

TEST_CASE("ceil_mode rounds a pool up, but no window lies wholly in the padding") {
  CHECK(layer(parse("  - {pool: p, kernel: 3, stride: 2}\n"), "p").output.height == 3);  // floor(5/2)+1
  CHECK(layer(parse("  - {pool: p, kernel: 3, stride: 2, ceil_mode: true}\n"), "p").output.height == 4);  // ceil(5/2)+1
  // ceil((8 + 2 - 2) / 3) + 1 = 4, but the fourth window would start at 9 = 8 + padding: outside.
  CHECK(layer(parse("  - {pool: p, kernel: 2, stride: 3, padding: 1, ceil_mode: true}\n"), "p").output.height == 3);
}

TEST_CASE("branches: concat adds channels, add wants equal shapes, fc flattens") {
  const Model model = parse(
      "  - {conv: a, filters: 2, kernel: 1}\n"
      "  - {conv: b, filters: 3, kernel: 3, padding: 1, input: input}\n"
      "  - {concat: both, inputs: [a, b]}\n"
      "  - {add: sum, inputs: [both, both]}\n"
      "  - {global_pool: pool}\n"
      "  - {fc: out, units: 10}\n");
  CHECK(layer(model, "both").output == Shape{5, 8, 8});
  CHECK(layer(model, "both").input_values == (2 + 3) * 64);
  CHECK(layer(model, "b").inputs == std::vector<int>{0});
  CHECK(layer(model, "sum").forward_flop == 5 * 64);
  CHECK(layer(model, "pool").output == Shape{5, 1, 1});
  CHECK(layer(model, "out").parameter_count() == 5 * 10 + 10);
}

TEST_CASE("blocks repeat layers with parameters and prefixed names") {
  const Model model = parse(
      "  - {block: stage, use: unit, repeat: 2, first: 1, width: 4}\n"
      "  - {block: last, use: pair, wide: 4}\n"
      "  - {add: end, inputs: [stage.1, stage.2.sum, last]}\n",
      "{channels: 4, height: 8, width: 8}",
      "blocks:\n"
      "  unit:\n"
      "    - {conv: c, filters: $width, kernel: 3, padding: 1}\n"
      "    - relu\n"
      "    - {add: sum, inputs: [c.relu, input]}\n"
      "  pair:\n"
      "    - {block: one, use: unit, width: $wide}\n"
      "    - {conv: two, filters: $wide, kernel: 1}\n");
  std::string names;
  for (const Layer& each : model.layers) names += each.name + " ";
  CHECK(names ==
        "input stage.1.c stage.1.c.relu stage.1.sum stage.2.c stage.2.c.relu stage.2.sum "
        "last.one.c last.one.c.relu last.one.sum last.two end ");
  CHECK(layer(model, "stage.2.sum").inputs == std::vector<int>{5, 3});
  CHECK(layer(model, "end").inputs == std::vector<int>{3, 6, 10});
  CHECK(layer(model, "last.two").parameters[0].name == "last.two.weight");
}

TEST_CASE("backward keeps what it reads: one copy where an activation works in place") {
  const Model model = parse(
      "  - {conv: a, filters: 4, kernel: 1}\n"
      "  - {batch_norm: n}\n"
      "  - {relu: r}\n"
      "  - {conv: b, filters: 4, kernel: 1}\n"
      "  - {add: s, inputs: [b, r]}\n"
      "  - {relu: t}\n"
      "  - {pool: p, kernel: 2, stride: 2, type: average}\n"
      "  - {flatten: f}\n"
      "  - {fc: o, units: 3}\n"
      "  - {softmax: m}\n");
  CHECK(model.layers[0].keeps_output);     // a's weight gradient reads the image
  CHECK(layer(model, "a").keeps_output);   // n reads it
  CHECK(!layer(model, "n").keeps_output);  // overwritten by r
  CHECK(layer(model, "r").keeps_output);   // b reads it, and r itself
  CHECK(!layer(model, "b").keeps_output);  // an addition's gradient needs no values
  CHECK(!layer(model, "s").keeps_output);  // overwritten by t
  CHECK(layer(model, "t").keeps_output);
  CHECK(layer(model, "p").keeps_output);  // o reads it, through the view f
  CHECK(!layer(model, "f").keeps_output);
  CHECK(!layer(model, "o").keeps_output);  // softmax needs its own output only
  CHECK(layer(model, "m").keeps_output);
  // image, a, r, t of 4x8x8, p of 4x4x4, m of 3
  CHECK(model.activation_values() == 4 * 256 + 64 + 3);
}

TEST_CASE("a softmax takes five operations a value forward, and one backward with cross-entropy") {
  // Find the maximum, subtract it, exponential, sum, divide; backward: probability minus label.
  const Model model = parse("  - {fc: o, units: 7}\n  - {softmax: m}\n");
  CHECK(layer(model, "m").forward_flop == 5 * 7);
  CHECK(layer(model, "m").backward_data_flop == 7);
  CHECK(layer(model, "m").backward_weights_flop == 0);
}

TEST_CASE("an activation that is not the only reader cannot work in place") {
  const Model model = parse(
      "  - {conv: a, filters: 4, kernel: 1}\n"
      "  - {relu: r}\n"
      "  - {conv: b, filters: 4, kernel: 1, input: a}\n"
      "  - {add: s, inputs: [b, r]}\n");
  CHECK(layer(model, "a").keeps_output);
  CHECK(layer(model, "r").keeps_output);
}

TEST_CASE("mistakes in models are found with place and remedy") {
  struct Mistake {
    std::string layers;
    std::string expected;  ///< part of the message
    std::string more = {};
  };
  const std::string conv = "  - {conv: a, filters: 4, kernel: 1}\n";
  const std::vector<Mistake> mistakes{
      {"  - {convv: a, filters: 4, kernel: 1}\n", "did you mean 'conv'"},
      {"  - {conv: a, kernel: 1}\n", "missing key 'filters'"},
      {"  - {conv: a, filters: 4, kernel: 9}\n", "kernel 9 is larger than the input of 8"},
      {"  - {conv: a, filters: 0, kernel: 1}\n", "m.yaml:4:24: layers[0].filters"},
      {"  - {conv: a, filters: -4, kernel: 1}\n", "layers[0].filters"},
      {"  - {conv: a, filters: 4, kernel: 1, stride: 0}\n", "layers[0].stride"},
      {"  - {conv: a, filters: 4, kernel: 1, padding: sam}\n", "layers[0].padding"},
      {"  - {conv: a, filters: 4, kernel: [1, 2, 3]}\n", "[height, width]"},
      {"  - {conv: a, filters: 4, kernel: 1, groups: 3}\n", "groups 3 must divide"},
      {"  - {conv: a, filters: 4, kernel: 1, fliters: 3}\n", "unknown key 'fliters'"},
      {"  - {conv: a, filters: 999999999999, kernel: 1}\n", "layers[0].filters"},
      {"  - {conv: a, filters: $n, kernel: 1}\n", "block's parameter"},
      {"  - {conv: a b, filters: 4, kernel: 1}\n", "a name must be"},
      {"  - {conv: input, filters: 4, kernel: 1}\n", "choose another name"},
      {"  - {conv: a, fc: b, units: 3}\n", "is both"},
      {"  - conv\n", "needs a name and settings"},
      {"  - rleu\n", "did you mean 'relu'"},
      {"  - [conv]\n", "must be a layer such as"},
      {conv + conv, "there is already a layer 'a'"},
      {conv + "  - {fc: b, units: 3, input: c}\n", "there is no layer 'c' before this one"},
      {conv + "  - {fc: b, units: 3, input: b}\n", "there is no layer 'b' before this one"},
      {conv + "  - {pool: p, kernel: 2, type: maxx}\n", "did you mean 'max'"},
      {conv + "  - {pool: p, kernel: 2}\n  - {add: s, inputs: [a, p]}\n", "cannot add 4x8x8 and 4x7x7"},
      {conv + "  - {pool: p, kernel: 2}\n  - {concat: s, inputs: [a, p]}\n", "cannot concatenate"},
      {conv + "  - {add: s, inputs: [a]}\n", "at least two layers"},
      {conv + "  - {add: s, inputs: a}\n", "at least two layers"},
      {conv + "  - {conv: b, filters: 4, kernel: 1, input: input}\n", "nobody reads the output of layer 'a'"},
      {conv + "  - {dropout: d, rate: 1}\n", "rate"},
      {conv + "  - {block: b, use: nothing}\n", "there is no block 'nothing'"},
      {conv + "  - {block: b, use: u}\n", "needs a value for 'n'", "blocks: {u: [{fc: f, units: $n}]}\n"},
      {conv + "  - {block: b, use: u, n: 3, m: 4}\n", "unknown key 'm'", "blocks: {u: [{fc: f, units: $n}]}\n"},
      {conv, "block 'u' is never used", "blocks: {u: [relu]}\n"},
      {conv + "  - {block: b, use: u}\n", "there is no block 'u' before", "blocks: {u: [{block: c, use: u}]}\n"},
      {conv + "  - {block: b, use: u, repeat: -1}\n", "layers[1].repeat", "blocks: {u: [relu]}\n"},
      {conv + "  - {block: b, use: v, repeat: 100000}\n", "more than 200,000 layers",
       "blocks: {u: [relu], v: [{block: c, use: u, repeat: 3}]}\n"},
      {"  []\n", "must be a list of layers"},
      {"  relu\n", "must be a list of layers"},
      {conv, "unknown key 'blcks'", "blcks: {}\n"},
      // 1e8 x 1e8 weights = 1e16 > 2^53
      {"  - {fc: a, units: 100000000}\n  - {fc: b, units: 100000000}\n", "more than 2^53 values"},
  };
  for (const Mistake& mistake : mistakes) {
    INFO(mistake.more << mistake.layers);
    const std::string text = parse_message(mistake.layers, mistake.more);
    CHECK_THAT(text, Catch::Contains(mistake.expected));
    CHECK_THAT(text, Catch::StartsWith("m.yaml:"));
  }
}

TEST_CASE("models lacking a part say which") {
  const auto text = [](const std::string& yaml) { return message([&] { parse_model(yaml, "m.yaml"); }); };
  CHECK_THAT(text("model: a\ninput: {channels: 1}\n"), Catch::Contains("layers"));
  CHECK_THAT(text("model: a\nlayers: [relu]\n"), Catch::Contains("input"));
  CHECK_THAT(text("input: {channels: 1}\nlayers: [relu]\n"), Catch::Contains("model"));
  CHECK_THAT(text("model: a\ninput: {channels: 0}\nlayers: [relu]\n"), Catch::Contains("input.channels"));
  CHECK_THAT(text("- relu\n"), Catch::Contains("must be a model"));
  CHECK_THAT(message([] { load_model("no_such_model.yaml"); }), Catch::Contains("no_such_model.yaml"));
}

TEST_CASE("a study names a model by its name or a path, and a typo gets a hint") {
  const std::filesystem::path root = EPOCAST_SOURCE_DIR;
  const auto named = [&](const std::string& name) {
    return load_model_named(ConfigNode::load_text("model: " + name, "study.yaml").at("model"), root);
  };
  CHECK(named("vgg16").name == "vgg16");
  CHECK(named((root / "workloads/models/vgg16.yaml").string()).name == "vgg16");
  CHECK_THAT(message([&] { named("vgg61"); }), Catch::Contains("did you mean 'vgg16'"));
  CHECK_THAT(message([&] { named("./vgg16.yaml"); }),
             Catch::StartsWith("study.yaml:1:8: model: there is no model file"));
}

TEST_CASE("what a model leaves out is read, and handed on to variants") {
  const auto left_out = [](const std::string& name) {
    const std::filesystem::path root = EPOCAST_SOURCE_DIR;
    return load_model_named(ConfigNode::load_text("model: " + name, "study.yaml").at("model"), root).left_out;
  };
  CHECK(parse("  - relu\n", "{channels: 4}", "left_out: the teacher\n").left_out == "the teacher");
  CHECK(parse("  - relu\n", "{channels: 4}").left_out.empty());
  CHECK_THAT(left_out("mask_rcnn"), Catch::Contains("proposals"));
  CHECK(left_out("{name: mask_rcnn, regions: 256}") == left_out("mask_rcnn"));
  CHECK_THAT(left_out("distilbert"), Catch::Contains("teacher"));  // its base leaves out nothing
  CHECK(left_out("roberta_base").empty());
}

TEST_CASE("every shipped model loads and tells its source") {
  const auto models = list_models(std::filesystem::path(EPOCAST_SOURCE_DIR) / "workloads" / "models");
  CHECK(models.size() >= 45);
  for (const ModelSummary& model : models) {
    INFO(model.name);
    CHECK(!model.description.empty());
    CHECK(!model.source.empty());
    CHECK(model.parameters > 0);
    CHECK(model.forward_flop > 0);
  }
}

}  // namespace epocast::model_test
