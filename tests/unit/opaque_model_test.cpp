// A network known by its parameters only: what it sends must be right, whatever stands for its computation.
#include <catch2/catch.hpp>

#include "sim/config.hpp"
#include "tests/support/error_message.hpp"
#include "workloads/opaque_model.hpp"

namespace epocast::opaque_model_test {

namespace {
Model read(const char* text) { return opaque_model(ConfigNode::load_text(text, "study.yaml")); }
}  // namespace

TEST_CASE("an opaque model has its parameters in so many tensors") {
  // 1003 = 3 x 251 + 1 x 250
  const Model model = read("{opaque: net, parameters: 1003, tensors: 4}");
  CHECK(model.name == "net");
  REQUIRE(model.layers.size() == 5);
  CHECK(model.parameter_count() == 1003);
  CHECK(model.layers[1].parameter_count() == 251);
  CHECK(model.layers[4].parameter_count() == 250);
  for (std::size_t l = 1; l < model.layers.size(); ++l) CHECK(model.layers[l].needs_gradient);
}

TEST_CASE("what is complete only at the end of the backward pass is its first layer") {
  const Model model = read("{opaque: net, parameters: 340e6, tensors: 10, last: 40e6}");
  CHECK(model.parameter_count() == 340'000'000);
  REQUIRE(model.layers.size() == 12);
  CHECK(model.layers[1].kind == LayerKind::embedding);
  CHECK(model.layers[1].parameter_count() == 40'000'000);
  CHECK(model.layers[2].parameter_count() == 30'000'000);
}

TEST_CASE("an opaque model with impossible counts says what is wrong") {
  const auto message = [](const char* text) { return testing::message([&] { read(text); }); };
  CHECK(message("{opaque: net}").find("missing key") != std::string::npos);
  CHECK(message("{opaque: net, parameters: 10, last: 10}").find("fewer than all parameters") != std::string::npos);
  CHECK(message("{opaque: net, parameters: 10, tensors: 11}").find("no more than the parameters") != std::string::npos);
  CHECK(message("{opaque: net, parameters: 10.5}").find("whole number") != std::string::npos);
  CHECK(message("{opaque: net, parameters: 10, tenors: 2}").find("did you mean 'tensors'") != std::string::npos);
}

}  // namespace epocast::opaque_model_test
