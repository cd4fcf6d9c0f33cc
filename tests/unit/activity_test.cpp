// At every moment a device is in one of four states: idle, computing, communicating, or both. The four times add up to
// the time observed, whatever overlaps.
#include <catch2/catch.hpp>

#include "sim/activity.hpp"

namespace epocast::activity_test {

TEST_CASE("a device's time splits into idle, compute, communication and both", "[activity]") {
  //   time        0  1  2  3  4  5  6  7  8  9 10
  //   compute        |-----------|        |--|        1..5 and 8..9
  //   message A            |-----------|              3..7
  //   message B               |--|                    4..5, inside A: no more communication for it
  ActivityAccounts accounts(2, 0.0);
  accounts.compute_begins(0, 1);
  accounts.communication_begins(0, 3);
  accounts.communication_begins(0, 4);
  accounts.compute_ends(0, 5);
  accounts.communication_ends(0, 5);
  accounts.communication_ends(0, 7);
  accounts.compute_begins(0, 8);
  accounts.compute_ends(0, 9);

  const ActivityTimes times = accounts.times(0, 10);
  CHECK(times.compute_only == 3);        // 1..3 and 8..9
  CHECK(times.both == 2);                // 3..5
  CHECK(times.communication_only == 2);  // 5..7
  CHECK(times.idle == 3);                // 0..1, 7..8, 9..10
  CHECK(times.compute() == 5);
  CHECK(times.communication() == 4);
  CHECK(times.total() == 10);
  CHECK(accounts.times(1, 10).idle == 10);  // the other device never did anything
}

TEST_CASE("an account can be read while its device is busy, again and again", "[activity]") {
  ActivityAccounts accounts(1, 100.0);  // observed from 100 s on
  accounts.compute_begins(0, 101);
  CHECK(accounts.times(0, 103).compute_only == 2);
  CHECK(accounts.times(0, 103).compute_only == 2);  // reading changes nothing
  const ActivityTimes since = accounts.times(0, 105) - accounts.times(0, 103);
  CHECK(since.compute_only == 2);
  CHECK(since.idle == 0);
  CHECK(accounts.times(0, 105).total() == 5);
}

TEST_CASE("two computations at once count once", "[activity]") {
  // A device with two compute queues (streams): 0..4 and 2..6 make 6 s of computing.
  ActivityAccounts accounts(1, 0.0);
  accounts.compute_begins(0, 0);
  accounts.compute_begins(0, 2);
  accounts.compute_ends(0, 4);
  accounts.compute_ends(0, 6);
  CHECK(accounts.times(0, 6).compute() == 6);
  CHECK(accounts.times(0, 6).idle == 0);
}

}  // namespace epocast::activity_test
