// Local SGD on two workers and two layers, worked out by hand. All times are in ms; a local step takes 103.
#include "tests/support/hand_timeline.hpp"

namespace epocast::local_sgd_test {

using testing::check;

TEST_CASE("local SGD: two steps alone, one in detail, then 30 MB of parameters are averaged", "[local_sgd]") {
  check({"local_sgd",
         "{period: 3}",
         341,
         {{"local steps", 0, 206},
          {"forward A", 206, 216},
          {"forward B", 216, 236},
          {"backward B", 236, 266},
          {"backward A", 266, 306},
          {"update B", 306, 308},
          {"update A", 308, 309},
          {"all-reduce B..A", 309, 341}},
         309});
}

TEST_CASE("local SGD with overlap: averaging hides behind the next round", "[local_sgd]") {
  check({"local_sgd",
         "{period: 3, overlap: true}",
         309,
         {{"local steps", 0, 206},
          {"forward A", 206, 216},
          {"forward B", 216, 236},
          {"backward B", 236, 266},
          {"backward A", 266, 306},
          {"update B", 306, 308},
          {"update A", 308, 309},
          {"all-reduce B..A", 309, 341}},
         309});
}

TEST_CASE("period 1 moves the bytes of synchronous data parallelism", "[local_sgd]") {
  check({"local_sgd",
         "{period: 1}",
         135,
         {{"forward A", 0, 10},
          {"forward B", 10, 30},
          {"backward B", 30, 60},
          {"backward A", 60, 100},
          {"update B", 100, 102},
          {"update A", 102, 103},
          {"all-reduce B..A", 103, 135}}});
}

}  // namespace epocast::local_sgd_test
