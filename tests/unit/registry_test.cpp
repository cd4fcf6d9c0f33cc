#include "sim/registry.hpp"

#include <memory>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace epocast::registry_test {

namespace {

struct Shape {
  std::string kind;
  std::int64_t size = 0;
};

Registry<Shape> shapes() {
  Registry<Shape> registry("shape");
  for (const char* name : {"square", "circle"}) {
    registry.add({name, "a test shape", {{"size", "count", "1..9", "1", "edge length"}}},
                 [name](const ConfigNode& options) {
                   return std::make_unique<Shape>(Shape{name, options.get("size", 1, {1, 9})});
                 });
  }
  return registry;
}

}  // namespace

TEST_CASE("a registry makes what a name stands for, from the options beside it", "[registry]") {
  const ConfigNode options = ConfigNode::load_text("{name: circle, size: 4}", "s.yaml");
  const auto shape = shapes().make("circle", options, options.at("name"));
  CHECK(shape->kind == "circle");
  CHECK(shape->size == 4);
  CHECK_NOTHROW(options.check_all_read());
}

TEST_CASE("an unknown name is reported at its place, with the nearest name or all of them", "[registry]") {
  const ConfigNode options = ConfigNode::load_text("shape:\n  name: sqaure\n", "s.yaml").at("shape");
  const ConfigNode name = options.at("name");
  CHECK_THROWS_WITH(shapes().make("sqaure", options, name),
                    "s.yaml:2:9: shape.name: unknown shape 'sqaure' (did you mean 'square'?)");
  CHECK_THROWS_WITH(shapes().make("dodecahedron", options, name),
                    "s.yaml:2:9: shape.name: unknown shape 'dodecahedron' (valid: square, circle)");
}

TEST_CASE("a factory's own error keeps the place of the option", "[registry]") {
  const ConfigNode options = ConfigNode::load_text("{name: circle, size: 12}", "s.yaml");
  CHECK_THROWS_WITH(shapes().make("circle", options, options), "s.yaml:1:22: size: must be between 1 and 9, got 12");
}

TEST_CASE("names, documentation and lookup come from the one table, in the order of registration", "[registry]") {
  const Registry<Shape> registry = shapes();
  CHECK(registry.names() == std::vector<std::string>{"square", "circle"});
  REQUIRE(registry.find("circle") != nullptr);
  CHECK(registry.find("circle")->parameters.at(0).range == "1..9");
  CHECK(registry.find("triangle") == nullptr);
  REQUIRE(registry.infos().size() == 2);
  CHECK(registry.infos()[0].name == "square");
}

TEST_CASE("a hint needs a near name: an unrelated one would mislead", "[registry]") {
  const std::vector<std::string> names{"batch", "workers", "model", "s"};
  CHECK(nearest_name("btach", names) == "batch");  // two neighbours swapped: one edit
  CHECK(nearest_name("batch", names) == "batch");
  CHECK(nearest_name("worker", names) == "workers");
  CHECK(nearest_name("modle", names) == "model");
  CHECK(nearest_name("x", names).empty());  // distance 1 to "s", but they share nothing
  CHECK(nearest_name("strategy", names).empty());
  CHECK(nearest_name("", names).empty());
  CHECK(nearest_name(std::string(100'000, 'a'), names).empty());
  // The threshold grows with the length: four edits in fourteen characters.
  CHECK(nearest_name("paramter_sevrr", {"parameter_server"}) == "parameter_server");
  CHECK(name_hint("btach", names) == " (did you mean 'batch'?)");
  CHECK(name_hint("strategy", names) == " (valid: batch, workers, model, s)");
  CHECK(name_hint("strategy", {}).empty());
  // Two edits in four characters share too little.
  CHECK(nearest_name("v100", {"a10"}).empty());
  CHECK(nearest_name("tiny", {"trn"}).empty());
  CHECK(nearest_name("fp61", {"fp16"}) == "fp16");
  CHECK(nearest_name("asink", {"async"}) == "async");
}

TEST_CASE("the beginning of names asks for them, rather than for what is a few typos away", "[registry]") {
  const std::vector<std::string> kinds{"a10", "v100_sxm2_16gb", "v100_pcie", "h100_sxm5", "h800"};
  CHECK(name_hint("v100", kinds) == " (did you mean 'v100_sxm2_16gb' or 'v100_pcie'?)");
  CHECK(name_hint("h100", kinds) == " (did you mean 'h100_sxm5'?)");  // h800 is one edit away
  CHECK(name_hint("h80", kinds) == " (did you mean 'h800'?)");
  CHECK(name_hint("hour", {"device_hour", "node_hour"}) == " (did you mean 'device_hour' or 'node_hour'?)");
  CHECK(name_hint("server", {"servers", "server_rate"}) == " (did you mean 'servers'?)");
  CHECK(name_hint("cv", {"compute_cv"}) == " (valid: compute_cv)");  // two characters may be part of anything
}

}  // namespace epocast::registry_test
