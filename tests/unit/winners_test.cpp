// Which of two measured runs is faster, and whether the forecast knows.
#include "experiments/reproduce/winners.hpp"

#include <catch2/catch.hpp>

namespace epocast::winners_test {

namespace {

TargetRow row(const std::string& name, const std::string& rivals, double published, double simulated) {
  TargetRow out;
  out.row = name;
  out.published = published;
  out.simulated = simulated;
  out.rivals = rivals;
  return out;
}

}  // namespace

TEST_CASE("pairs of rivals whose measurements differ by more than was asked") {
  // Samples per second. a and b differ by 10 %, a and c by 2 %, c and b by 7.84 %; d is nobody's rival, e another's.
  std::vector<TargetRow> rows{row("a", "x", 110, 110), row("b", "x", 100, 112), row("c", "x", 107.84, 120),
                              row("d", "", 200, 1), row("e", "y", 300, 1)};
  std::vector<WinnerPair> pairs = winner_pairs(rows, 3, false);
  REQUIRE(pairs.size() == 2);
  CHECK(pairs[0].name() == "a before b");  // the wrong ones first
  CHECK(pairs[0].published_gap == Approx(10));
  CHECK(pairs[0].simulated_gap == Approx(100 * (110. / 112 - 1)));
  CHECK_FALSE(pairs[0].is_right());
  CHECK(pairs[1].name() == "c before b");
  CHECK(pairs[1].is_right());

  // As times, the smaller one wins: b before a by 10 %, b before c by 7.84 %.
  pairs = winner_pairs(rows, 3, true);
  REQUIRE(pairs.size() == 2);
  CHECK(pairs[0].name() == "b before a");
  CHECK_FALSE(pairs[0].is_right());
  CHECK(pairs[1].name() == "b before c");
  CHECK(pairs[1].is_right());

  // Equal forecasts know nothing; inputs are no predictions.
  rows[1].simulated = 110;
  CHECK_FALSE(winner_pairs(rows, 3, false)[0].is_right());
  rows[0].role = Role::input;
  CHECK(winner_pairs(rows, 3, false).size() == 1);
}

}  // namespace epocast::winners_test
