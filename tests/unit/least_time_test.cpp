// What a graph takes at least, against times worked out by hand.

#include "sim/least_time.hpp"

#include <catch2/catch.hpp>

namespace epocast::least_time_test {

TEST_CASE("a run takes as long as its longest cycle, once around for each iteration") {
  // A cycle of 3 s over 2 iterations: 10 iterations are five times around.
  const LeastTime two_iterations{.busy = 1, .cycle = 3, .lag = 2};
  CHECK(two_iterations.iteration() == 1.5);
  CHECK(two_iterations.total(10) == 15);
  CHECK(two_iterations.total(11) == 15);  // the eleventh may end with the tenth
  // A queue that is busy for longer than any cycle decides.
  const LeastTime busy{.busy = 2, .cycle = 3, .lag = 2};
  CHECK(busy.iteration() == 2);
  CHECK(busy.total(10) == 20);
}

}  // namespace epocast::least_time_test
