// Parameters of model files: defaults, expressions, variants and a study's overrides. Every mistake is a ConfigError
// with its place.
#include <catch2/catch.hpp>

#include <filesystem>
#include <string>

#include "tests/support/temporary_folder.hpp"
#include "workloads/integer_expression.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::model_parameters_test {

namespace {

const std::filesystem::path kRoot = EPOCAST_SOURCE_DIR;

Model named(const std::string& value) {
  const ConfigNode study = ConfigNode::load_text("model: " + value, "study.yaml");
  Model model = load_model_named(study.at("model"), kRoot);
  study.check_all_read();
  return model;
}

template <class Action>
std::string message(const Action& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

std::int64_t evaluate(const std::string& text) {
  return evaluate_expression(text, [](const std::string& name) { return name == "w" ? std::int64_t{6} : 7; });
}

}  // namespace

TEST_CASE("expressions are whole-number arithmetic with the usual precedence") {
  CHECK(evaluate("2+3*4") == 14);
  CHECK(evaluate("(2+3)*4") == 20);
  CHECK(evaluate("10-4-3") == 3);
  CHECK(evaluate(" 4 * w / 3 ") == 8);
  CHECK(evaluate("-w+other_1") == 1);
  CHECK(evaluate("((w))") == 6);
  CHECK_THAT(message([] { evaluate("w/4"); }), Catch::Contains("6 / 4 is not a whole number"));
  CHECK_THAT(message([] { evaluate("w/(w-6)"); }), Catch::Contains("division by zero"));
  CHECK_THAT(message([] { evaluate("(w"); }), Catch::Contains("not closed"));
  CHECK_THAT(message([] { evaluate("w w"); }), Catch::Contains("'w' cannot stand there"));
  CHECK_THAT(message([] { evaluate("2*"); }), Catch::Contains("ends where"));
  CHECK_THAT(message([] { evaluate(""); }), Catch::Contains("ends where"));
  CHECK_THAT(message([] { evaluate("2^3"); }), Catch::Contains("'^' cannot stand there"));
  CHECK_THAT(message([] { evaluate("99999999999999999999"); }), Catch::Contains("2^53"));
  CHECK_THAT(message([] { evaluate("9000000000000000*9000000000000000"); }), Catch::Contains("2^53"));
  CHECK_THAT(message([] { evaluate(std::string(100, '(')); }), Catch::Contains("too deeply"));
}

TEST_CASE("a parameter's default may be made from others, and blocks see it unless their user gives another") {
  const std::string text =
      "model: m\ninput: {channels: $width, height: 8, width: 8}\n"
      "parameters: {width: 4, inner: $(3*width), shape: same}\n"
      "blocks:\n"
      "  unit:\n    - {conv: c, filters: $inner, kernel: 3, padding: $shape}\n"
      "layers:\n"
      "  - {block: a, use: unit}\n"
      "  - {block: b, use: unit, inner: $(inner-2)}\n";
  const Model model = parse_model(text, "m.yaml");
  CHECK(model.layers[1].output == Shape{12, 8, 8});
  CHECK(model.layers[2].output == Shape{10, 8, 8});
}

TEST_CASE("a block may be used no times: it is checked, and its name means what it would have read") {
  const std::string text =
      "model: m\ninput: {channels: 4, height: 8, width: 8}\n"
      "parameters: {extra: 0}\n"
      "blocks: {unit: [{conv: c, filters: $n, kernel: 1}]}\n"
      "layers:\n"
      "  - {conv: first, filters: 2, kernel: 1}\n"
      "  - {block: b, use: unit, repeat: $extra, n: 3}\n"
      "  - {fc: out, units: 5, input: b}\n";
  const Model model = parse_model(text, "m.yaml");
  REQUIRE(model.layers.size() == 3);
  CHECK(model.layers[2].inputs == std::vector<int>{1});
  std::string bad = text;
  bad.replace(bad.find("kernel: 1}]"), 9, "kernel: 9");
  CHECK_THAT(message([&] { parse_model(bad, "m.yaml"); }), Catch::Contains("kernel 9 is larger"));
}

TEST_CASE("a study sets parameters, and the model's name tells") {
  const Model model = named("{name: gpt2, layers: 2, width: 128, heads: 2, sequence: 16}");
  CHECK(model.name == "gpt2 layers=2 width=128 heads=2 sequence=16");
  // Per block 12 d^2 + 13 d; table, positions and the last normalisation.
  CHECK(model.parameter_count() == 2 * (12 * 128 * 128 + 13 * 128) + 50257 * 128 + 16 * 128 + 2 * 128);
  CHECK(named("{name: vgg16}").name == "vgg16");
  CHECK(named("{name: resnet101, classes: 10}").parameter_count() == 44'549'160 - 990 * 2049);
}

TEST_CASE("a file may be based on another") {
  const testing::TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    return folder.write(name, text).string();
  };
  const std::string base =
      write("mine.yaml", "model: mine\ninput: {channels: 3}\nparameters: {n: 5}\nlayers: [{fc: f, units: $n}]\n");
  const std::string variant = write("wide.yaml", "model: wide\nbased_on: mine\nparameters: {n: 50}\n");
  CHECK(load_model(base).parameter_count() == 20);
  CHECK(load_model(variant).parameter_count() == 200);
  CHECK(load_model(variant).name == "wide");
  CHECK(named("{name: " + variant + ", n: 7}").parameter_count() == 28);

  const auto fails = [&](const std::string& text) {
    const std::string file = write("bad.yaml", text);
    return message([&] { load_model(file); });
  };
  CHECK_THAT(fails("model: bad\nbased_on: mine\nparameters: {m: 1}\n"), Catch::Contains("bad.yaml:3:17") &&
                                                                            Catch::Contains("has no parameter 'm'") &&
                                                                            Catch::Contains("valid: n"));
  CHECK_THAT(fails("model: bad\nbased_on: mine\nparameters: {n: 0}\n"), Catch::Contains("bad.yaml:3:17"));
  CHECK_THAT(fails("model: bad\nbased_on: mine\nlayers: [relu]\n"), Catch::Contains("unknown key 'layers'"));
  CHECK_THAT(fails("model: bad\nbased_on: mien\n"), Catch::Contains("bad.yaml:2:11"));
  CHECK_THAT(fails("model: bad\nbased_on: bad\n"), Catch::Contains("circle"));
}

TEST_CASE("mistakes in parameters are found with place and remedy") {
  CHECK_THAT(message([] { named("{name: gpt2, layrs: 2}"); }),
             Catch::Contains("study.yaml:1:") && Catch::Contains("did you mean 'layers'"));
  CHECK_THAT(message([] { named("{name: lenet, layers: 2}"); }), Catch::Contains("it has none at all"));
  CHECK_THAT(message([] { named("{name: gpt2, layers: many}"); }), Catch::StartsWith("study.yaml:1:"));
  CHECK_THAT(message([] { named("{name: gpt2, layers: [2]}"); }), Catch::Contains("single value"));
  CHECK_THAT(message([] { named("{name: gpt2, heads: 7}"); }), Catch::Contains("7 heads must divide the 768 features"));
  CHECK_THAT(message([] { named("{name: resnet20, depth: 21}"); }), Catch::Contains("19 / 6 is not a whole number"));
  CHECK_THAT(message([] { named("{layers: 2}"); }), Catch::Contains("missing key 'name'"));

  const auto text = [](const std::string& parameters, const std::string& units) {
    return message([&] {
      parse_model(
          "model: m\ninput: {channels: 3}\nparameters: " + parameters + "\nlayers: [{fc: f, units: " + units + "}]",
          "m.yaml");
    });
  };
  CHECK_THAT(text("{n: 5}", "3"), Catch::Contains("m.yaml:3:17") && Catch::Contains("'n' is never used"));
  CHECK_THAT(text("{n: [5]}", "$n"), Catch::Contains("m.yaml:3:") && Catch::Contains("single value"));
  CHECK_THAT(text("{n: $n}", "$n"), Catch::Contains("stands for itself"));
  CHECK_THAT(text("{n: $(2*m), m: $(n/2)}", "$n"), Catch::Contains("go round in a circle"));
  CHECK_THAT(text("{n: 5}", "$m"), Catch::Contains("m.yaml:4:") && Catch::Contains("valid: n"));
  CHECK_THAT(text("{n: 5}", "$(m+n)"), Catch::Contains("valid: n"));
  CHECK_THAT(text("{n: 5}", "$(n-5)"), Catch::Contains("'$(n-5)' is 0, which is too small here"));
  CHECK_THAT(text("{n: 5}", "$(n"), Catch::Contains("lacks the closing parenthesis"));
  CHECK_THAT(text("{n: 5}", "$(n/2)"), Catch::Contains("m.yaml:4:25: layers[0].units: $(n/2): 5 / 2"));
}

}  // namespace epocast::model_parameters_test
