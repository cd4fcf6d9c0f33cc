// Stragglers of a study as factors on devices.
#include "experiments/disturbance_reader.hpp"

#include <catch2/catch.hpp>

#include "tests/support/simulate.hpp"

namespace epocast::disturbance_reader_test {

namespace {

Irregularity read(const std::string& text) {
  const testing::Star star(3, 1e9, 0);
  return read_irregularity(ConfigNode::load_text(text, "study.yaml"), star.cluster(), {{0, 1}});
}

}  // namespace

TEST_CASE("a worker that is named twice is slowed down by both", "[disturbance]") {
  CHECK(read("stragglers: [{worker: 0, slowdown: 2}, {worker: 0, slowdown: 1}]").slowdown ==
        std::vector<double>{2, 1, 1});
  CHECK(read("stragglers: [{worker: 0, slowdown: 2}, {worker: 1, slowdown: 5}, {worker: 0, slowdown: 3}]").slowdown ==
        std::vector<double>{6, 5, 1});
  // For a while: one window each.
  const Irregularity windows = read(
      "stragglers: [{worker: 0, slowdown: 2, from: 0 s, until: 10 s}, {worker: 0, slowdown: 3, from: 5 s, until: 9 "
      "s}]");
  CHECK(windows.slowdown.empty());
  CHECK(windows.slow_devices.size() == 2);
}

}  // namespace epocast::disturbance_reader_test
