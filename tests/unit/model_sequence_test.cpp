// Layers that work along sequences and volumes: shapes, parameters, FLOP and kept activations worked out by hand.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "workloads/model_reader.hpp"

namespace epocast::model_sequence_test {

namespace {

Model parse(const std::string& layers, const std::string& input) {
  return parse_model("model: test\ninput: " + input + "\nlayers:\n" + layers, "m.yaml");
}

const Layer& layer(const Model& model, const std::string& name) {
  for (const Layer& candidate : model.layers)
    if (candidate.name == name) return candidate;
  FAIL("no layer " << name);
  return model.layers.front();
}

std::string message(const std::string& layers, const std::string& input) {
  try {
    parse(layers, input);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

const std::string kWords = "  - {embedding: e, vocabulary: 100, units: 6}\n";
const std::string kTokens = "{channels: 1, width: 5}";

}  // namespace

TEST_CASE("embeddings look up one row per token; linear works on each position; a tied weight is shared") {
  const Model model = parse(kWords +
                                "  - {position_embedding: p, positions: 8}\n"
                                "  - {linear: l, units: 4}\n"
                                "  - {linear: back, units: 6, bias: false}\n"
                                "  - {linear: out, units: 100, tied: e}\n",
                            kTokens);
  CHECK(layer(model, "e").output == Shape{6, 1, 5});
  CHECK(layer(model, "e").parameter_count() == 600);
  CHECK(layer(model, "e").forward_flop == 0);
  CHECK(layer(model, "e").backward_weights_flop == 30);  // 5 rows of 6 added up
  CHECK(layer(model, "p").parameter_count() == 48);
  CHECK(layer(model, "p").forward_flop == 30);
  const Layer& linear = layer(model, "l");
  CHECK(linear.output == Shape{4, 1, 5});
  CHECK(linear.parameter_count() == 6 * 4 + 4);
  CHECK(linear.forward_flop == 2.0 * 6 * 4 * 5);
  CHECK(linear.backward_data_flop == linear.forward_flop);
  CHECK(linear.backward_weights_flop == linear.forward_flop);
  const Layer& out = layer(model, "out");
  CHECK(out.parameter_count() == 100);  // the bias alone
  CHECK(out.tied_to == 1);
  CHECK(out.backward_weights_flop == 2.0 * 6 * 100 * 5);
}

TEST_CASE("attention: scores and weighted sum are products over all pairs of positions") {
  // 5 positions, 2 heads, query, key and value of 6 features each.
  const std::string qkv = kWords + "  - {linear: qkv, units: 18}\n";
  const double product = 2.0 * 5 * 5 * 6;
  const double scores = 2 * 5 * 5;
  const Model model = parse(qkv + "  - {attention: a, heads: 2}\n", kTokens);
  const Layer& all = layer(model, "a");
  CHECK(all.output == Shape{6, 1, 5});
  CHECK(all.heads == 2);
  CHECK(all.parameters.empty());
  CHECK(all.forward_flop == 2 * product + 6 * scores);
  CHECK(all.backward_data_flop == 4 * product + 5 * scores);  // two products for each forward one
  CHECK(all.backward_weights_flop == 0);
  CHECK(all.inner_values == 50);            // the softmaxes
  CHECK(layer(model, "qkv").keeps_output);  // attention reads it again
  CHECK(all.kept_values() == 30 + 50);      // kept as the model's result too
  CHECK(model.activation_values() == 5 + 30 + 90 + 80);

  const Model causal_model = parse(qkv + "  - {attention: a, heads: 2, pairs: causal}\n", kTokens);
  const Layer& causal = layer(causal_model, "a");
  CHECK(causal.forward_flop == Approx(all.forward_flop * 15 / 25));  // 1 + 2 + ... + 5 pairs
  CHECK(causal.inner_values == 30);

  const Model fused_model = parse(qkv + "  - {attention: a, heads: 2, fused: true}\n", kTokens);
  const Layer& fused = layer(fused_model, "a");
  CHECK(fused.inner_values == 10);  // a logarithm per query and head
  CHECK(fused.backward_data_flop == 5 * product + 11 * scores);
}

TEST_CASE("attention between sequences, and with additive scores") {
  const Model model = parse(kWords +
                                "  - {select: s, positions: 3}\n"
                                "  - {linear: k, units: 4, input: e}\n"
                                "  - {linear: q, units: 4, input: s}\n"
                                "  - {attention: dot, inputs: [q, k, e]}\n"
                                "  - {attention: additive, inputs: [q, k, e], score: additive}\n"
                                "  - {add: sum, inputs: [dot, additive]}\n",
                            kTokens);
  const Layer& dot = layer(model, "dot");
  CHECK(dot.output == Shape{6, 1, 3});
  CHECK(dot.forward_flop == 2.0 * 15 * 4 + 6 * 15 + 2.0 * 15 * 6);
  const Layer& additive = layer(model, "additive");
  CHECK(additive.parameter_count() == 4);
  CHECK(additive.forward_flop == 7.0 * 15 * 4 + 6 * 15 + 2.0 * 15 * 6);
  CHECK(additive.backward_weights_flop == 2.0 * 15 * 4);
  CHECK(additive.inner_values == 15 * (1 + 4));  // softmax and the tanh of every pair
}

TEST_CASE("an LSTM has 4 h (x + h) weights, used once a step in every pass") {
  const Model model = parse(kWords + "  - {lstm: r, units: 3}\n  - {lstm: s, units: 3, biases: 2}\n", kTokens);
  const Layer& lstm = layer(model, "r");
  CHECK(lstm.output == Shape{3, 1, 5});
  CHECK(lstm.steps == 5);
  CHECK(lstm.parameter_count() == 4 * 3 * (6 + 3) + 4 * 3);
  CHECK(layer(model, "s").parameter_count() == 4 * 3 * (3 + 3) + 8 * 3);
  const double products = 2.0 * 4 * 3 * (6 + 3) * 5;
  CHECK(lstm.forward_flop == products + 25 * 3 * 5);
  CHECK(lstm.backward_weights_flop == products);
  CHECK(lstm.backward_data_flop == products + 23 * 3 * 5);
  CHECK(lstm.kept_values() == 15 + 5 * 15);  // outputs, four gates and the cell at each step
  // On data, only the hidden state's gradient is needed.
  const Model bare = parse("  - {lstm: r, units: 3}\n", "{channels: 6, width: 5}");
  CHECK(layer(bare, "r").backward_data_flop == 2.0 * 4 * 3 * 3 * 5 + 23 * 3 * 5);
}

TEST_CASE("features that come back from later layers are inputs of an LSTM's next step") {
  const Model model = parse("  - {lstm: r, units: 4, feedback: 2}\n", "{channels: 3, width: 5}");
  const Layer& r = layer(model, "r");
  CHECK(r.parameter_count() == 4 * 4 * (3 + 2) + 4 * 4 * 4 + 4 * 4);
  CHECK(r.forward_flop == 2.0 * 4 * 4 * (3 + 2 + 4) * 5 + 25 * 4 * 5);
  CHECK(r.backward_weights_flop == 2.0 * 4 * 4 * (3 + 2 + 4) * 5);
  // Of the state and of what comes back, whatever is upstream; not of the data.
  CHECK(r.backward_data_flop == 2.0 * 4 * 4 * (2 + 4) * 5 + 23 * 4 * 5);
  CHECK(r.inner_values == 5 * 4 * 5 + 2 * 5);
}

TEST_CASE("attention that sees where it looked before") {
  const Model model =
      parse(kWords +
                "  - {select: s, positions: 3}\n"
                "  - {linear: k, units: 4, input: s}\n"
                "  - {linear: q, units: 4, input: e}\n"
                "  - {attention: a, inputs: [q, k, s], score: location, location_filters: 2, location_kernel: 7}\n",
            kTokens);
  const Layer& a = layer(model, "a");
  // 5 queries, 3 keys, 4 features of scores and 6 of values; 2 filters over 7 of the last softmax and of the sum so
  // far.
  const double pairs = 15;
  const double products = pairs * 2 * 2 * (2 * 7 + 4);
  CHECK(a.steps == 5);
  CHECK(a.parameter_count() == 4 + 2 * 7 * 2 + 2 * 4);
  CHECK(a.forward_flop == pairs * (7 * 4 + 4) + 6 * pairs + 2 * pairs * 6 + products);
  CHECK(a.backward_weights_flop == 2 * pairs * 4 + products);
  CHECK(a.backward_data_flop == 2 * 2 * pairs * 6 + 5 * pairs + 6 * pairs * 4 + products);
  CHECK(a.inner_values == 15 * (1 + 4 + 2 + 1));  // softmax, tanh, features, sum of softmaxes
}

TEST_CASE("layer normalisation, GELU and products of layers") {
  const Model model = parse(kWords +
                                "  - layer_norm\n"
                                "  - gelu\n"
                                "  - {linear: l, units: 6}\n"
                                "  - {multiply: m, inputs: [l, e.gelu]}\n",
                            kTokens);
  CHECK(layer(model, "e.layer_norm").parameter_count() == 12);
  CHECK(layer(model, "e.layer_norm").forward_flop == 8 * 30);
  CHECK(layer(model, "e.layer_norm").keeps_output);  // gelu's gradient is a function of its input
  CHECK(layer(model, "e.gelu").forward_flop == 12 * 30);
  CHECK(layer(model, "m").forward_flop == 30);
  CHECK(layer(model, "m").backward_data_flop == 60);
  CHECK(layer(model, "l").keeps_output);
}

TEST_CASE("volumes: conv3d covers the depth, conv works slice by slice") {
  const Model model = parse(
      "  - {conv3d: a, filters: 5, kernel: [3, 5, 5], padding: same}\n"
      "  - {conv: b, filters: 4, kernel: 3, stride: 2, padding: 1}\n"
      "  - {conv3d: c, filters: 2, kernel: 2, stride: 2, bias: false}\n"
      "  - {global_pool: g}\n",
      "{channels: 3, depth: 4, height: 8, width: 8}");
  CHECK(layer(model, "a").output == Shape{5, 8, 8, 4});
  CHECK(layer(model, "a").parameter_count() == 5 * 3 * 75 + 5);
  CHECK(layer(model, "a").forward_flop == 2.0 * 3 * 75 * 5 * 8 * 8 * 4);
  CHECK(layer(model, "b").output == Shape{4, 4, 4, 4});
  CHECK(layer(model, "b").forward_flop == 2.0 * 5 * 9 * 4 * 4 * 4 * 4);
  CHECK(layer(model, "c").output == Shape{2, 2, 2, 2});
  CHECK(layer(model, "g").output == Shape{2, 1, 1});
  CHECK(layer(model, "g").forward_flop == 16);
  CHECK(to_string(layer(model, "a").output) == "5x4x8x8");
}

TEST_CASE("an eidetic LSTM has 7 kernels on its input and 10 on its states, and recalls all earlier cells") {
  const Model model = parse("  - {e3d_lstm: r, units: 3, kernel: [1, 3, 3], window: 2}\n",
                            "{channels: 2, depth: 6, height: 4, width: 4}");
  const Layer& cell = layer(model, "r");
  CHECK(cell.output == Shape{3, 4, 4, 6});
  CHECK(cell.steps == 3);
  // Layer norms of 4 + 7 + 4 + 1 units: scale and shift.
  CHECK(cell.parameter_count() == 7 * 9 * 2 * 3 + 10 * 9 * 3 * 3 + 2 * 3 * 3 + 18 * 3 + 2 * 16 * 3);
  const double positions = 4 * 4 * 6;
  const double scores = 32.0 * 32 * (1 + 2 + 3);  // step t reads t cells of 32 positions
  const double products = 2 * (7 * 9 * 2 * 3 + 10 * 9 * 3 * 3 + 2 * 3 * 3) * positions;
  const double normalised = 16 * 3 * positions;
  CHECK(cell.backward_weights_flop == products + 5 * normalised);
  CHECK(cell.forward_flop == products + 64 * 3 * positions + scores * (4 * 3 + 6) + 8 * normalised);
  CHECK(cell.inner_values == static_cast<std::int64_t>(scores + 12 * 3 * positions + normalised));
}

TEST_CASE("rearrangements move values without computing") {
  const Model model = parse(
      "  - {pixel_shuffle: s, factor: 2}\n"
      "  - {pad_channels: p, channels: 3}\n",
      "{channels: 8, height: 4, width: 4}");
  CHECK(layer(model, "s").output == Shape{2, 8, 8});
  CHECK(layer(model, "p").output == Shape{3, 8, 8});
  CHECK(layer(model, "s").forward_flop == 0);
}

TEST_CASE("mistakes in sequence layers are found with place and remedy") {
  struct Mistake {
    std::string layers;
    std::string expected;
    std::string input = kTokens;
  };
  const std::vector<Mistake> mistakes{
      {"  - {embedding: e, units: 6}\n", "missing key 'vocabulary'"},
      {"  - {embedding: e, vocabulary: 9, units: 6}\n", "one token per position", "{channels: 2, width: 5}"},
      {"  - embedding\n", "needs a name and settings"},
      {kWords + "  - {position_embedding: p, positions: 4}\n", "4 positions are too few for a sequence of 5"},
      {kWords + "  - {linear: l}\n", "missing key 'units'"},
      {kWords + "  - {linear: l, units: 99, tied: e}\n", "has 600 values instead of 6 x 99"},
      {kWords + "  - {linear: l, units: 99, tied: input}\n", "cannot share the weight of 'input'"},
      {kWords + "  - {linear: l, units: 99, tied: f}\n", "layers[1].tied: there is no layer 'f'"},
      {kWords + "  - {fc: l, units: 99, tied: e}\n", "unknown key 'tied'"},
      {kWords + "  - {linear: l, units: 4}\n  - {attention: a}\n", "must be a multiple of 3"},
      {kWords + "  - {attention: a, heads: 4}\n", "4 heads must divide the 2 features"},
      {kWords + "  - {attention: a, heads: 0}\n", "layers[1].heads"},
      {kWords + "  - {attention: a, inputs: [e, e]}\n", "[query, key, value]"},
      {kWords + "  - {linear: l, units: 4}\n  - {attention: a, inputs: [e, l, e]}\n",
       "query and key need equal features"},
      {kWords + "  - {select: s, positions: 2}\n  - {attention: a, inputs: [e, s, e]}\n", "equal lengths"},
      {kWords + "  - {select: s, positions: 2}\n  - {attention: a, inputs: [s, e, e], pairs: causal}\n",
       "layers[2].pairs: 'causal' needs as many keys as queries"},
      {kWords + "  - {attention: a, pairs: casual}\n", "did you mean 'causal'"},
      {kWords + "  - {attention: a, score: additive, fused: true}\n", "only dot products can be fused"},
      {kWords + "  - {attention: a, inputs: [e, e, e], score: location}\n", "missing key 'location_filters'"},
      {kWords + "  - {attention: a, inputs: [e, e, e], heads: 2, score: location}\n",
       "layers[1].heads: scores by location are those of one head, not of 2"},
      {kWords + "  - {attention: a, fused: 3}\n", "layers[1].fused"},
      {"  - {attention: a}\n", "attention reads a sequence", "{channels: 3, height: 2, width: 2}"},
      {kWords + "  - {select: s, positions: 6}\n", "cannot select 6 positions of 5"},
      {kWords + "  - {lstm: l, units: 4, biases: 3}\n", "layers[1].biases"},
      {"  - {lstm: l, units: 4}\n", "an LSTM reads a sequence", "{channels: 3, height: 2, width: 2}"},
      {"  - {lstm: l, units: 100000000}\n", "more than 2^53 values"},
      {"  - {e3d_lstm: l, units: 4, kernel: 3, window: 4}\n",
       "windows of 4 frames do not divide the input's depth of 6", "{channels: 1, depth: 6, height: 4, width: 4}"},
      {"  - {conv3d: c, filters: 4, kernel: [3, 3]}\n", "three: [depth, height, width]",
       "{channels: 1, depth: 6, height: 4, width: 4}"},
      {"  - {conv3d: c, filters: 4, kernel: 5}\n", "kernel 5 is larger than the input of 4",
       "{channels: 1, depth: 4, height: 9, width: 9}"},
      {"  - {pixel_shuffle: s, factor: 2}\n", "needs a multiple of 4 channels, not 6",
       "{channels: 6, height: 4, width: 4}"},
      {"  - {pad_channels: p, channels: 4}\n", "cannot pad 6 channels to 4", "{channels: 6, height: 4, width: 4}"},
      {kWords + "  - {multiply: m, inputs: [e]}\n", "at least two layers"},
      {kWords + "  - {select: s, positions: 2}\n  - {multiply: m, inputs: [e, s]}\n", "equal shapes"},
      {"  - relu\n", "input.width", "{channels: 1, width: 0}"},
      {"  - relu\n", "input: has more than 2^53 values", "{channels: 100000000, width: 1000000, height: 1000000}"},
  };
  for (const Mistake& mistake : mistakes) {
    INFO(mistake.layers);
    const std::string text = message(mistake.layers, mistake.input);
    CHECK_THAT(text, Catch::Contains(mistake.expected));
    CHECK_THAT(text, Catch::StartsWith("m.yaml:"));
  }
}

}  // namespace epocast::model_sequence_test
