// A ruler through steps, by hand.
#include "experiments/calibrate/step_ruler.hpp"

#include <catch2/catch.hpp>

namespace epocast::step_ruler_test {

TEST_CASE("a ruler through steps that lie on one says each of them") {
  // 0.1 + 0.02 x batch + 0.05 x log2(workers)
  const std::vector<RulerPoint> points{{1, 8, 0.26}, {2, 8, 0.31}, {4, 16, 0.52}, {8, 32, 0.89}, {1, 32, 0.74}};
  const auto said = ruler_left_out(points);
  REQUIRE(said.size() == points.size());
  for (std::size_t p = 0; p < points.size(); ++p) CHECK(said[p].value() == Approx(points[p].seconds));
}

TEST_CASE("a ruler is laid by relative errors, and only where the others hold it") {
  // Of one batch and one and two workers, the third says 0.2 + 0.1 x log2(4); the others, a line through two of three.
  const std::vector<RulerPoint> points{{1, 8, 0.2}, {2, 8, 0.3}, {4, 8, 0.5}};
  const auto said = ruler_left_out(points);
  CHECK(said[2].value() == Approx(0.4));
  CHECK(said[0].value() == Approx(0.1));   // 0.3 - 0.2
  CHECK(said[1].value() == Approx(0.35));  // in the middle
  CHECK_FALSE(ruler_left_out({{1, 8, 0.2}}).front());
  // Batches that grow with the doublings of workers, but for rounding.
  CHECK_FALSE(ruler_left_out({{1, 7, 0.2}, {2, 14, 0.3}, {4, 21, 0.4}, {8, 28, 0.5}, {2, 8, 0.1}})[4]);
  CHECK(ruler_left_out({{1, 8, 0.2}, {1, 16, 0.4}})[0].value() == Approx(0.4));  // of one step: that
}

}  // namespace epocast::step_ruler_test
