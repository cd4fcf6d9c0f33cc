// What sequences of unequal length cost in attention, by hand and by drawing them.
#include <catch2/catch.hpp>

#include <cmath>
#include <random>
#include <vector>

#include "experiments/packed_lengths.hpp"
#include "tests/support/error_message.hpp"
#include "tests/support/transformer.hpp"

namespace epocast::packed_lengths_test {

namespace {

PackedLengths lengths(const std::string& text) { return PackedLengths(ConfigNode::load_text(text, "lengths")); }

}  // namespace

TEST_CASE("packed sequences: the sum of squares of equal lengths, and of two", "[lengths]") {
  CHECK(lengths("[[16, 1]]").in(16).share == Approx(1));
  CHECK(lengths("[[16, 1]]").in(16).cv == Approx(0).margin(1e-12));
  CHECK(lengths("[[4, 2]]").in(16).share == Approx(0.25));  // four sequences of 16 of the 256 pairs each
  // Half have 1, half 3 positions: m1 = 2, m2 = 5, so 5/2 of 12 pairs for every position. l^2 - 2.5 l is -1.5 or 1.5;
  // a sample has six sequences: a variance of 6 x 2.25, over the mean of 30.
  const PackedLengths::Squares two = lengths("[[1, 1], [3, 1]]").in(12);
  CHECK(two.share == Approx(5.0 / 24));
  CHECK(two.cv == Approx(std::sqrt(13.5) / 30));
  // 18 positions are cut into 12 and 6: m1 = 9, m2 = 90.
  CHECK(lengths("[[18, 1]]").in(12).share == Approx(90.0 / 9 / 12));
  CHECK(lengths("{mean: 4}").in(16).share == Approx(0.25));
  CHECK(lengths("{mean: 1e6}").in(16).share == Approx(1).epsilon(1e-3));
}

TEST_CASE("packed sequences: mean and variation of a sample are those of drawn ones", "[lengths]") {
  // Log-normal of mean 100 and cv 1 in samples of 4,096: s^2 = ln 2, m = ln 100 - s^2 / 2.
  const double variance = std::log(2.0);
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> draw(std::log(100.0) - variance / 2, std::sqrt(variance));
  constexpr double kLength = 4096;
  constexpr int kSamples = 20000;
  double sum = 0, squares = 0, left = 0;
  for (int s = 0; s < kSamples; ++s) {
    double cost = 0;
    for (double room = kLength; room > 0;) {
      if (left <= 0) left = draw(random);
      const double piece = std::min(left, room);
      cost += piece * piece;
      left -= piece;
      room -= piece;
    }
    sum += cost;
    squares += cost * cost;
  }
  const double mean = sum / kSamples, cv = std::sqrt(squares / kSamples - mean * mean) / mean;
  const PackedLengths::Squares forecast = lengths("{mean: 100, cv: 1}").in(kLength);
  // Drawn sequences that a sample's end cuts cost less than whole ones: one of some forty.
  CHECK(forecast.share * kLength * kLength == Approx(mean).epsilon(0.04));
  CHECK(forecast.cv == Approx(cv).epsilon(0.1));
}

TEST_CASE("packed sequences: attention is scaled, and nothing else", "[lengths]") {
  const auto model = testing::small_transformer(2);
  const Model packed = lengths("[[4, 1]]").packed(*model);
  for (std::size_t l = 0; l < model->layers.size(); ++l) {
    const Layer &before = model->layers[l], &after = packed.layers[l];
    const double share = before.kind == LayerKind::attention ? 0.25 : 1;
    CHECK(after.forward_flop == Approx(share * before.forward_flop));
    CHECK(after.backward_data_flop == Approx(share * before.backward_data_flop));
    CHECK(static_cast<double>(after.inner_values) == Approx(share * static_cast<double>(before.inner_values)));
  }
  // Of two normal draws the larger is 1 / sqrt(pi) above the mean.
  const PackedLengths two = lengths("[[1, 1], [3, 1]]");
  const double cv = two.in(16).cv;
  (void)two.packed(*model);
  CHECK(two.slowest(2, 4) == Approx(1 + cv / 2 / std::sqrt(M_PI)).epsilon(1e-6));
  CHECK(two.slowest(1, 4) == 1);
}

TEST_CASE("lengths that make no sense are refused", "[lengths]") {
  using testing::message;
  CHECK_THAT(message([] { lengths("[[4]]"); }), Catch::Contains("[length, share of the sequences]"));
  CHECK_THAT(message([] { lengths("[]"); }), Catch::Contains("no sequences"));
  CHECK_THAT(message([] { lengths("{mean: 4, max: 3}"); }), Catch::Contains("max"));
  Model empty;
  empty.name = "empty";
  CHECK_THAT(message([&] { (void)lengths("[[4, 1]]").packed(empty); }), Catch::Contains("has no attention"));
}

}  // namespace epocast::packed_lengths_test
