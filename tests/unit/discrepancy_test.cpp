#include "experiments/calibrate/discrepancy.hpp"

#include <catch2/catch.hpp>
#include <cmath>

namespace epocast::discrepancy_test {

namespace {

StepPlace place(double workers, double batch, const std::string& model = "vgg16") {
  return {"skylake", model, "data_parallel", workers, batch};
}

}  // namespace

TEST_CASE("a measured step pulls computing near it, by hand", "[calibration]") {
  // One step is 5 % slower than the constants say, all of it computing: a quarter of the variance is its own, so that
  // 1 / 1.25 of it is the process'.
  const Discrepancy one = find_discrepancy({place(4, 32)}, {{.error = 0.05}});
  CHECK(one.factor(place(4, 32)) == Approx(std::exp(0.04)).epsilon(1e-12));
  // Four times the workers, or the batch, are two doublings, over which correlations fall to exp(-1/2).
  CHECK(one.factor(place(16, 32)) == Approx(std::exp(0.04 * std::exp(-0.5))).epsilon(1e-12));
  CHECK(one.factor(place(1, 32)) == Approx(one.factor(place(16, 32))).epsilon(1e-12));
  CHECK(one.factor(place(4, 8)) == Approx(one.factor(place(16, 32))).epsilon(1e-12));
  CHECK(one.factor(place(16, 128)) == Approx(std::exp(0.04 * std::exp(-1))).epsilon(1e-12));
  CHECK(one.factor(place(4096, 32)) == Approx(1).epsilon(1e-6));
  CHECK(one.factor(place(4, 32, "resnet50")) == 1);
  CHECK(Discrepancy().factor(place(4, 32)) == 1);
}

TEST_CASE("steps at one place are averaged, and wild ones have less of a say", "[calibration]") {
  // Two at one place: sum of errors / (2 + 0.25).
  const std::vector<StepPlace> twice{place(4, 32), place(4, 32)};
  CHECK(find_discrepancy(twice, {{.error = 0.05}, {.error = 0.01}}).factor(place(4, 32)) ==
        Approx(std::exp(0.06 / 2.25)).epsilon(1e-12));
  CHECK(find_discrepancy({place(4, 32)}, {{.error = 0.05, .doubt = 4}}).factor(place(4, 32)) ==
        Approx(std::exp(0.05 / 2)).epsilon(1e-12));
}

TEST_CASE("a step that computing has half a part in needs a larger factor, one that waits for links tells nothing",
          "[calibration]") {
  // slope x error / (slope^2 + 0.25)
  CHECK(find_discrepancy({place(4, 32)}, {{.error = 0.05, .slope = 0.5}}).factor(place(4, 32)) ==
        Approx(std::exp(0.5 * 0.05 / 0.5)).epsilon(1e-12));
  CHECK(find_discrepancy({place(4, 32)}, {{.error = 0.05, .slope = 0}}).factor(place(4, 32)) == 1);
}

}  // namespace epocast::discrepancy_test
