// Times that are read beside each other.
#include "experiments/time_scale.hpp"

#include <catch2/catch.hpp>

namespace epocast::time_scale_test {

TEST_CASE("times of one scale have one unit and the same last place") {
  const TimeScale scale(0.14130);  // to_string() says 141.3 ms
  CHECK(scale.text(0.14130) == "141.30 ms");
  CHECK(scale.text(471.2e-6) == "0.47 ms");
  CHECK(scale.text(4e-6) == "<0.01 ms");
  CHECK(scale.text(0) == "0 ms");
  CHECK(TimeScale(90).text(1.5) == "0.0250 min");
  CHECK(TimeScale(0).text(0) == "0 s");
}

}  // namespace epocast::time_scale_test
